"""Agents: tools, plans, memory, teams."""

# Programs as users write them.
# pyright: basic, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import lmc

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
NOTES: dict[str, str] = {}
WEATHER = {"oslo": "snow", "rome": "sun", "lima": "fog"}


def evaluate(expression: str) -> int:
    def walk(node):
        if isinstance(node, ast.Constant):
            return node.value
        return OPERATORS[type(node.op)](walk(node.left), walk(node.right))

    return walk(ast.parse(expression, mode="eval").body)


@lmc.tool(effect="pure")
def calculator(expression: str) -> str:
    try:
        return str(evaluate(expression))
    except (SyntaxError, KeyError) as error:
        return f"error: {type(error).__name__}"


@lmc.tool(effect="reads")
def weather(city: str) -> str:
    return WEATHER.get(city.lower(), "unknown")


@lmc.tool
def remember(key: str, value: str) -> str:
    NOTES[key] = value
    return f"saved {key}"


TOOLS: dict[str, Callable[..., str]] = {"calculator": calculator, "weather": weather}
CALL = r"(calculator\([0-9] [+*-] [0-9]\)|weather\((oslo|rome|lima|paris)\)|finish\([a-z]{2,6}\))"


@lmc.jit
def react_agent(s, question: str, max_steps: int):
    """Thought, action, observation; actions are parsed from text."""
    s += lmc.system("Use calculator(x), weather(city) or finish(answer).")
    s += lmc.user(question)
    trace = []
    for step in range(max_steps):
        s += f"Thought {step + 1}:"
        s.gen("thought", max_tokens=10, stop="\n")
        s += "\nAction: "
        action = s.gen("action", regex=CALL)
        name, _, rest = action.partition("(")
        argument = rest.rstrip(")")
        if name == "finish":
            return argument, trace
        observation = TOOLS[name](argument)
        trace.append(f"{name}: {observation}")
        s += f"\nObservation: {observation}\n"
    return None, trace


class Assistant:
    """An agent that remembers what it was told, as an object with state."""

    def __init__(self, name: str, max_facts: int = 2):
        self.name = name
        self.max_facts = max_facts
        self.facts: list[str] = []
        self.turns = 0

    def prompt(self) -> str:
        facts = "; ".join(self.facts) or "nothing yet"
        return f"You are {self.name}. You know: {facts}."

    def learn(self, fact: str) -> None:
        if fact and fact not in self.facts:
            self.facts.append(fact)
        if len(self.facts) > self.max_facts:
            self.facts.pop(0)

    @lmc.jit
    def reply(self, s, message: str):
        self.turns += 1
        s += lmc.system(self.prompt())
        s += lmc.user(message)
        answer = s.gen("answer", max_tokens=14, stop="\n").strip()
        s += lmc.user("Is there a fact to remember?")
        if s.select("fact", ["yes", "no"]) == "yes":
            self.learn(s.gen("what", max_tokens=8, stop=["\n", "."]).strip())
        return answer


@lmc.jit
def talk_to_assistant(s, name: str, messages: list[str]):
    """A session with such an object, made in the program."""
    assistant = Assistant(name)
    answers = [assistant.reply(message) for message in messages]
    s += lmc.user(assistant.prompt() + " Introduce yourself.")
    introduction = s.gen("introduction", max_tokens=12, stop="\n")
    return answers, assistant.facts, introduction.strip()


@dataclass
class Task:
    title: str
    owner: str | None = None
    result: str = ""
    attempts: int = 0


@dataclass
class Team:
    members: dict[str, str]
    done: list[Task] = field(default_factory=list)

    def work(self, s, task: Task) -> bool:
        task.attempts += 1
        worker = s.copy()
        worker += lmc.system(self.members[task.owner])
        worker += lmc.user(f"Task: {task.title}")
        task.result = worker.gen("result", max_tokens=12, stop="\n").strip()
        reviewer = s.copy()
        reviewer += lmc.user(f"{task.title}: {task.result}\nAccept?")
        return reviewer.select("accept", ["accept", "reject"]) == "accept"


@lmc.jit
def manager(s, goal: str, titles: list[str]):
    """A manager assigns tasks; what is rejected is tried once more by someone else."""
    team = Team({"ada": "You write code.", "bea": "You write texts."})
    failed = []
    for title in titles:
        task = Task(title)
        s += lmc.user(f"Goal: {goal}. Who does: {title}?")
        task.owner = s.select("owner", list(team.members))
        if not team.work(s, task):
            task.owner = next(name for name in team.members if name != task.owner)
            if not team.work(s, task):
                failed.append(task.title)
                continue
        team.done.append(task)
    summary = ", ".join(f"{task.title} by {task.owner}" for task in team.done) or "nothing"
    s += lmc.user(f"Done: {summary}. Failed: {len(failed)}. Report.")
    report = s.gen("report", max_tokens=16, stop="\n").strip()
    return {"done": [(task.title, task.owner, task.attempts) for task in team.done], "failed": failed, "report": report}


@lmc.jit
def plan_and_execute(s, goal: str):
    """Plan steps as a list, execute each with a tool, replan once when a step fails."""
    s += lmc.system("You plan with the tools calculator and weather.")
    s += lmc.user(goal)
    plan = s.gen("plan", regex=r"(- (calculator [0-9][+*/][0-9]|weather (oslo|rome|york))\n){1,3}")
    results = []
    replanned = False
    queue = [line.removeprefix("- ") for line in plan.strip().split("\n")]
    while queue:
        name, argument = queue.pop(0).split(" ", 1)
        outcome = TOOLS[name](argument)
        if outcome.startswith("error") or outcome == "unknown":
            if replanned:
                results.append(f"{argument}: gave up")
                continue
            replanned = True
            s += lmc.user(f"{name}({argument}) failed with {outcome}. Another city or sum?")
            queue.insert(0, s.gen("fix", choices=["weather oslo", "calculator 2+2", "calculator 2/2"]))
            continue
        results.append(f"{argument}: {outcome}")
    s += lmc.user("Results: " + "; ".join(results))
    return s.gen("answer", max_tokens=12, stop="\n").strip(), results


@lmc.jit
def note_keeper(s, messages: list[str]):
    """What the user wants to keep is written into a store, and read back when asked."""
    answers = []
    for message in messages:
        s += lmc.user(message)
        kind = s.select("kind", ["store", "recall", "chat"])
        if kind == "store":
            s += lmc.user("Under which key?")
            key = s.gen("key", choices=["home", "work"])
            answers.append(remember(key, message))
        elif kind == "recall" and NOTES:
            stored = "; ".join(f"{key}: {text}" for key, text in sorted(NOTES.items()))
            s += lmc.user(f"Notes: {stored}")
            answers.append(s.gen("recalled", max_tokens=10, stop="\n").strip())
        else:
            answers.append(s.gen("chat", max_tokens=8, stop="\n").strip())
    return answers


@lmc.jit
def reflexion(s, task: str, trials: int):
    """Try, test, reflect on what failed, and try again with the reflections."""
    reflections = []
    code = ""
    for trial in range(1, trials + 1):
        actor = s.copy()
        if reflections:
            actor += lmc.system("Lessons:\n" + "\n".join(reflections[-2:]))
        actor += lmc.user(task)
        code = actor.gen("code", regex=r"[2-9] [+*-] [2-9]( [+*] [0-9])?")
        value = int(calculator(code))
        if value % 2 == 0 and value > 10:
            return f"{code} = {value}", trial, reflections
        problem = "odd" if value % 2 else "too small"
        actor += lmc.user(f"The result {value} is {problem}. What did you learn?")
        lesson = re.sub(r"\s+", " ", actor.gen("lesson", max_tokens=12, stop=".")).strip()
        reflections.append(f"{trial}. {lesson or problem}")
    return code, trials, reflections


def describe(tools) -> str:
    return "\n".join(f"- {tool.__name__}" for tool in tools)


@lmc.jit
def swarm(s, request: str, hops: int = 4):
    """Agents hand a conversation over to each other until one closes it."""
    roles = {
        "triage": ("You decide who helps.", ["sales", "support"]),
        "sales": ("You sell.", ["support", "close"]),
        "support": ("You repair.", ["triage", "sales", "close"]),
    }
    current, path = "triage", []
    s += lmc.user(request)
    while current != "close" and len(path) < hops:
        path.append(current)
        manner, targets = roles[current]
        agent = s.copy()
        agent += lmc.user(manner)
        s += lmc.assistant(agent.gen("said", max_tokens=8, stop="\n").strip())
        s += lmc.user(f"{current}: to whom?")
        current = s.select("next", targets)
    status = "closed" if current == "close" else f"left with {current}"
    return status, path
