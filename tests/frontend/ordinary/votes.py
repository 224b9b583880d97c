"""Asking several times, or several people, and counting."""

# Programs as users write them.
# pyright: basic

from collections import Counter, defaultdict

import lmc

PERSONAS = {
    "lawyer": "You are a careful lawyer.",
    "engineer": "You are a pragmatic engineer.",
    "salesperson": "You sell things.",
    "accountant": "You count every cent.",
}


def normalise(answer: str) -> str:
    return " ".join(answer.lower().replace(",", " ").split())


@lmc.jit
def majority_vote(s, question: str, samples: int):
    """Sample some chains of thought and take the answer that most of them end with."""
    s += lmc.system("Think step by step, then give the answer on a line of its own.")
    s += lmc.user(question)
    thoughts = s.gen("thought", n=samples, max_tokens=24, temperature=0.8)
    answers = []
    for thought in thoughts:
        lines = [line.strip() for line in thought.splitlines() if line.strip()]
        if lines:
            answers.append(normalise(lines[-1]))
    if not answers:
        return None, 0.0
    counts = Counter(answers)
    winner, votes = counts.most_common(1)[0]
    return winner, votes / len(answers)


@lmc.jit
def weighted_vote(s, claim: str):
    """Each persona votes and says how sure it is; the heavier side wins."""
    weights = defaultdict(float)
    reasons = {}
    for name, manner in PERSONAS.items():
        member = s.copy()
        member += lmc.system(manner)
        member += lmc.user(f"Claim: {claim}\nTrue or false?")
        vote = member.select("vote", ["true", "false"])
        member += lmc.user("How sure are you, from 1 to 5?")
        weight = int(member.gen("sure", regex="[1-5]"))
        if weight >= 4:
            member += lmc.user("Why?")
            reasons[name] = member.gen("why", max_tokens=16, stop="\n").strip()
        weights[vote] += weight
    verdict = max(weights, key=lambda side: weights[side])
    return {"verdict": verdict, "margin": abs(weights["true"] - weights["false"]), "reasons": reasons}


@lmc.jit
def first_to_three(s, question: str, options: list[str]):
    """Stop asking as soon as one option has three votes."""
    votes = Counter()
    for attempt in range(1, 8):
        voter = s.copy()
        voter += f"Voter {attempt}. {question}\nOptions: {', '.join(options)}\nVote:"
        choice = voter.gen("vote", choices=options)
        votes[choice] += 1
        if votes[choice] == 3:
            result = f"{choice} wins after {attempt} votes"
            break
    else:
        top = votes.most_common(2)
        s += "No majority. Leaders: " + ", ".join(f"{name} ({count})" for name, count in top) + "\nDecide:"
        result = s.gen("decision", choices=[name for name, _ in top]) + " by decision"
    return result, dict(votes)


@lmc.jit
def ranked_choice(s, topic: str, candidates: list[str], voters: int):
    """Instant run-off: the candidate with the fewest first votes leaves until one has a majority."""
    ballots = []
    for number in range(voters):
        voter = s.copy()
        voter += lmc.user(f"You are voter {number} on {topic}. Rank {', '.join(candidates)}.")
        left = list(candidates)
        ballot = []
        while len(left) > 1:
            pick = voter.select("pick", left)
            ballot.append(pick)
            left.remove(pick)
        ballot.extend(left)
        ballots.append(ballot)

    standing = set(candidates)
    rounds = []
    while True:
        counts = Counter(next(c for c in ballot if c in standing) for ballot in ballots)
        rounds.append(dict(sorted(counts.items())))
        leader, most = max(counts.items(), key=lambda item: (item[1], item[0]))
        if most * 2 > voters or len(standing) == 1:
            break
        loser = min(standing, key=lambda c: (counts[c], c))
        standing.discard(loser)
    s += lmc.user(f"{leader} won the vote on {topic} in {len(rounds)} rounds. Announce it.")
    s.gen("announcement", max_tokens=20, stop=".")
    return leader, rounds
