"""Conversations: windows over a history, summaries as memory, two speakers, moderation."""

# Programs as users write them.
# pyright: basic

from collections import deque
from dataclasses import dataclass, field

import lmc


@lmc.jit
def windowed_chat(s, messages: list[str], window: int):
    """Every turn sees only the last few exchanges."""
    history = deque(maxlen=window)
    replies = []
    for message in messages:
        turn = s.copy()
        turn += lmc.system("You chat.")
        for question, answer in history:
            turn += lmc.user(question)
            turn += lmc.assistant(answer)
        turn += lmc.user(message)
        reply = turn.gen("reply", max_tokens=12, stop="\n").strip()
        history.append((message, reply))
        replies.append(reply)
    return replies, len(history)


@dataclass
class Memory:
    limit: int
    summary: str = ""
    recent: list[str] = field(default_factory=list)

    def add(self, line: str) -> bool:
        """Whether it is time to sum up."""
        self.recent.append(line)
        return sum(len(entry) for entry in self.recent) > self.limit

    def compress(self, summary: str) -> None:
        self.summary = summary
        self.recent = self.recent[-1:]

    def render(self) -> str:
        head = f"Summary: {self.summary}\n" if self.summary else ""
        return head + "\n".join(self.recent)


@lmc.jit
def chat_with_memory(s, messages: list[str], limit: int):
    """Old turns are summed up by the model once they become too long."""
    memory = Memory(limit)
    for message in messages:
        turn = s.copy()
        turn += lmc.user(f"{memory.render()}\nUser: {message}")
        answer = turn.gen("answer", max_tokens=16, stop="\n").strip()
        if memory.add(f"{message} -> {answer}"):
            note_taker = s.copy()
            note_taker += lmc.user("Sum up:\n" + memory.render())
            memory.compress(note_taker.gen("summary", max_tokens=16, stop="\n").strip())
    return memory.render()


@lmc.jit
def two_speakers(s, topic: str, turns: int):
    """Two personas talk to each other until one of them says goodbye."""
    ann, bob = s.fork(2)
    ann += lmc.system("You are Ann, an optimist.")
    bob += lmc.system("You are Bob, a pessimist.")
    last = f"Let's talk about {topic}."
    transcript = [("Ann", last)]
    speakers = {"Bob": bob, "Ann": ann}
    names = ["Bob", "Ann"]
    for turn in range(turns):
        name = names[turn % 2]
        speaker = speakers[name]
        speaker += lmc.user(last)
        last = speaker.gen("line", max_tokens=14, stop="\n").strip()
        transcript.append((name, last))
        speaker += lmc.user("Do you want to go on?")
        if speaker.select("on", ["go on", "goodbye"]) == "goodbye":
            transcript.append((name, "Goodbye."))
            break
    s += "\n".join(f"{who}: {what}" for who, what in transcript)
    return len(transcript), transcript[-1][0]


BLOCKED = ("bomb", "poison")


@lmc.jit
def moderated_chat(s, messages: list[str]):
    """Block bad words at once, ask the model about the rest, end after two warnings."""
    warnings = 0
    log = []
    for number, message in enumerate(messages, 1):
        if any(word in message.lower() for word in BLOCKED):
            warnings += 1
            log.append(f"{number}: blocked")
        else:
            guard = s.copy()
            guard += lmc.user(f"Is this polite?\n{message}")
            if guard.select("polite", ["yes", "no"]) == "no":
                warnings += 1
                log.append(f"{number}: impolite")
            else:
                s += lmc.user(message)
                reply = s.gen("reply", max_tokens=14, stop="\n")
                log.append(f"{number}: {reply.strip()}")
        if warnings >= 2:
            log.append("closed")
            return log
    return log


@lmc.jit
def interview(s, subject: str, questions: list[str]):
    """Prepared questions, with a follow-up where an answer is short or vague."""
    s += lmc.system(f"You are {subject}.")
    transcript = []
    follow_ups = 0
    for question in questions:
        s += lmc.user(question)
        answer = s.gen("answer", max_tokens=16, stop="\n").strip()
        transcript.append(f"Q: {question}\nA: {answer}")
        vague = len(answer.split()) < 3 or answer.endswith(",")
        if vague and follow_ups < 2:
            follow_ups += 1
            s += lmc.user("Could you say more?")
            more = s.gen("more", max_tokens=24, stop="\n").strip()
            transcript[-1] += f"\nA: {more}"
    s += lmc.user("Thank you. One last word?")
    transcript.append("A: " + s.gen("last", max_tokens=6, stop=["\n", "."]).strip())
    return "\n\n".join(transcript)


@lmc.jit
def tutor(s, exercise: str, solution: int, hints: list[str]):
    """The pupil answers; wrong answers get hints, one after the other, then the solution."""
    s += lmc.system("You are a pupil.")
    s += lmc.user(exercise)
    remaining = iter(hints)
    attempts = []
    while (guess := s.gen("guess", dtype=int, max_tokens=2)) != solution:
        attempts.append(guess)
        hint = next(remaining, None)
        if hint is None:
            s += lmc.user(f"The solution is {solution}. Did you understand?")
            understood = s.select("understood", ["yes", "no"]) == "yes"
            break
        size = "too large" if guess > solution else "too small"
        s += lmc.user(f"{guess} is {size}. {hint}")
    else:
        understood = True
    return understood, attempts
