"""A debate: three reviewers of an essay make their points and vote; they hear the others and go on until they agree.

python examples/debate.py
lmc run examples/debate.py --input examples/data/essays.jsonl
"""

import json
from pathlib import Path

import lmc

ESSAYS = Path(__file__).parent / "data" / "essays.jsonl"
REVIEWERS = {
    "You are a strict teacher.": ("structure", "clarity", "grammar", "evidence"),
    "You are a fair judge.": ("tone", "evidence", "clarity", "structure"),
    "You review short texts.": ("grammar", "tone", "evidence", "clarity"),
}
ROUNDS = 2
POINTS = 2  # that a reviewer makes in a round
VERDICTS = ("accept", "revise", "reject")


def judge(reviewer, prompt: str) -> str:
    reviewer += lmc.user(prompt)
    return reviewer.gen("view", max_tokens=24, stop="\n")


def vote(reviewer, views: list[str]) -> str:
    reviewer += lmc.user("Views:\n" + "\n".join(views))
    return reviewer.select("verdict", VERDICTS)


@lmc.jit
def debate(s, essay: str) -> dict[str, object]:
    panel = s.fork(len(REVIEWERS))
    for reviewer, manner in zip(panel, REVIEWERS, strict=True):
        reviewer += lmc.system(manner)

    heard: list[str] = []
    for number in range(ROUNDS):
        said: list[str] = []
        shown = f"Essay:\n{essay}\n" if number == 0 else ""
        for reviewer, dimensions in zip(panel, REVIEWERS.values(), strict=True):
            points = dimensions[number * POINTS : (number + 1) * POINTS]
            views = [judge(reviewer, f"{shown}Judge its {points[0]}.")]
            views += [judge(reviewer, f"Judge its {point}.") for point in points[1:]]
            vote(reviewer, heard + views)
            said += views
        if len(set(panel["verdict"])) == 1:
            return {"rounds": number + 1, "verdict": panel[0]["verdict"]}
        heard += said

    # They still differ: a chair who knows only what was said decides.
    s += lmc.system("You are a judge of essays.")
    return {"rounds": ROUNDS, "verdict": vote(s, sorted(set(heard)))}


def main() -> None:
    essays = [json.loads(line) for line in ESSAYS.read_text(encoding="utf-8").splitlines()]
    for row, result in zip(essays, debate.batch(essays[:6]), strict=False):
        print(row["essay"][:24].splitlines()[0], result.value)


if __name__ == "__main__":
    main()
