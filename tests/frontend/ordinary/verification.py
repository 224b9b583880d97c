"""Checking what was said: verification, self-consistency, critique, debate."""

# Programs as users write them.
# pyright: basic

from collections import Counter
from itertools import cycle, islice, takewhile

import lmc


@lmc.jit
def chain_of_verification(s, question: str):
    """Draft, plan checks, answer each check without the draft, correct the draft where they disagree."""
    s += lmc.user(question)
    draft = s.gen("draft", max_tokens=20, stop="\n").strip()
    facts = [part.strip() for part in draft.replace(".", ",").split(",") if len(part.strip()) > 2]
    wrong = []
    for fact in facts[:3]:
        checker = s.copy()
        checker += lmc.user(f"Is this true on its own: {fact}?")
        if not checker.gen("true", dtype=bool):
            checker += lmc.user("Correct it.")
            wrong.append((fact, checker.gen("corrected", max_tokens=8, stop=["\n", "."]).strip()))
    if not wrong:
        return draft, 0
    s += lmc.user("Corrections:\n" + "\n".join(f"{fact} => {right}" for fact, right in wrong))
    final = s.gen("final", max_tokens=20, stop="\n").strip()
    return final, len(wrong)


@lmc.jit
def self_consistency(s, problem: str):
    """More samples until one number has a clear lead."""
    s += lmc.user(problem)
    tally = Counter()
    for batch in range(3):
        for text in s.gen("samples", n=3, regex=r"[1-3]", temperature=1.0, max_tokens=2, seed=batch):
            tally[int(text)] += 1
        ranked = tally.most_common()
        lead = ranked[0][1] - (ranked[1][1] if len(ranked) > 1 else 0)
        if lead >= 3:
            break
    number, votes = ranked[0]
    s += f"The answer is {number} with {votes} of {sum(tally.values())} votes."
    return number, sorted(tally.items()), batch + 1


@lmc.jit
def critique_and_revise(s, brief: str, rounds: int):
    """A writer and two critics; revisions go on while a critic objects."""
    s += lmc.user(f"Write: {brief}")
    text = s.gen("text", max_tokens=16, stop="\n").strip()
    log = []
    for number in range(1, rounds + 1):
        objections = []
        for critic in ("style", "facts"):
            reader = s.copy()
            reader += lmc.user(f"You check {critic} of: {text}\nOK?")
            if reader.select("ok", ["ok", "not ok"]) == "not ok":
                reader += lmc.user("What is wrong?")
                objections.append(f"{critic}: {reader.gen('objection', max_tokens=8, stop=chr(10)).strip()}")
        log.append(len(objections))
        if not objections:
            break
        s += lmc.user(f"Revision {number}. " + "; ".join(objections))
        revised = s.gen("text", max_tokens=16, stop="\n").strip()
        if revised == text:
            log.append(-1)
            break
        text = revised
    return text, log


@lmc.jit
def formal_debate(s, motion: str, rounds: int):
    """Two sides and a judge; a side that gives in loses at once."""
    arguments = {"pro": [], "contra": []}
    for side in islice(cycle(arguments), rounds * 2):
        other = "contra" if side == "pro" else "pro"
        speaker = s.copy()
        speaker += lmc.system(f"You argue {side}.")
        heard = "\n".join(arguments[other]) or "(nothing yet)"
        speaker += lmc.user(f"Motion: {motion}\nThe other side said:\n{heard}")
        arguments[side].append(speaker.gen("argument", max_tokens=12, stop="\n").strip())
        if len(arguments[side]) > 1 and speaker.select("stance", ["I insist", "I give in"]) == "I give in":
            return other, sum(map(len, arguments.values()))
    s += lmc.user(
        f"Motion: {motion}\n" + "\n".join(f"{side}: {text}" for side, texts in arguments.items() for text in texts)
    )
    scores = {}
    for side in arguments:
        s += lmc.user(f"Points for {side}?")
        scores[side] = int(s.gen("points", regex="[0-9]|10"))
    if scores["pro"] == scores["contra"]:
        return "tie", scores["pro"]
    return max(scores, key=lambda side: scores[side]), abs(scores["pro"] - scores["contra"])


@lmc.jit
def red_team(s, policy: str, attacks: list[str]):
    """Attacks against a policy; each breach becomes a rule, and later attacks meet the new rules."""
    rules = [policy]
    breaches = {}
    for attack in attacks:
        target = s.copy()
        target += lmc.system("\n".join(f"{number}. {rule}" for number, rule in enumerate(rules, 1)))
        target += lmc.user(attack)
        reply = target.gen("reply", max_tokens=12, stop="\n").strip()
        judge = s.copy()
        judge += lmc.user(f"Rules: {len(rules)}\nAttack: {attack}\nReply: {reply}\nBreach?")
        if judge.select("breach", ["breach", "safe"]) == "breach":
            breaches[attack] = reply
            judge += lmc.user("Write a rule against it.")
            rule = judge.gen("rule", max_tokens=10, stop=["\n", "."]).strip()
            if rule and rule not in rules:
                rules.append(rule)
    return rules, list(breaches.items())


@lmc.jit
def socratic(s, statement: str, limit: int):
    """Question a statement until it is withdrawn, kept or the questions are used up."""
    s += lmc.user(f"Statement: {statement}")
    verdicts = []
    while True:
        s += lmc.user(f"Question {len(verdicts) + 1}?")
        s.gen("question", max_tokens=10, stop=["?", "\n"])
        verdict = s.select("verdict", ["keep", "change", "withdraw"])
        verdicts.append(verdict)
        if verdict == "withdraw":
            return None, verdicts
        if verdict == "change":
            s += lmc.user("Then how?")
            statement = s.gen("statement", max_tokens=10, stop=["\n", "."]).strip() or statement
        if verdicts[-2:] == ["keep", "keep"] or len(verdicts) >= limit:
            break
    kept = len(list(takewhile(lambda v: v == "keep", reversed(verdicts))))
    return statement, verdicts, kept


@lmc.jit
def fact_check(s, claims: list[str], sources: dict[str, str]):
    """Each claim against each source; the verdict follows from how many agree."""
    table = []
    for claim in claims:
        verdicts = []
        for name, text in sources.items():
            checker = s.copy()
            checker += lmc.user(f"Source {name}: {text}\nClaim: {claim}")
            verdicts.append(checker.select("verdict", ["supported", "refuted", "silent"]))
        supported, refuted = verdicts.count("supported"), verdicts.count("refuted")
        if not supported and not refuted:
            overall = "unknown"
        elif supported and refuted:
            s += lmc.user(f"Sources disagree on: {claim}. Whom do you trust?")
            trusted = s.select("trusted", list(sources))
            overall = verdicts[list(sources).index(trusted)] + f" by {trusted}"
        else:
            overall = "true" if supported else "false"
        table.append((claim, overall))
    return table
