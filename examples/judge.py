"""Judge an essay: is it on topic, one view per dimension in parallel, then a verdict over the joined views.

lmc compile examples/judge.py --remarks
lmc run examples/judge.py --input examples/data/essays.jsonl
"""

import json
from pathlib import Path

import lmc

DIMENSIONS = ("clarity", "evidence", "structure", "tone", "grammar")
ESSAYS = Path(__file__).parent / "data" / "essays.jsonl"


@lmc.jit
def judge(s, essay: str):
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay:\n{essay}\nIs it on topic?")
    on_topic = s.select("on_topic", ["yes", "no"])

    views = s.fork(len(DIMENSIONS))
    for view, dimension in zip(views, DIMENSIONS, strict=True):
        view += lmc.user(f"Judge its {dimension}.")
        view.gen("judgement", max_tokens=32, stop="\n")

    s += lmc.user("Views:\n" + "\n".join(view["judgement"] for view in views))
    verdict = s.select("verdict", ["accept", "revise", "reject"])
    return {"on_topic": on_topic, "verdict": verdict, "views": [view["judgement"] for view in views]}


def main() -> None:
    essays = [json.loads(line) for line in ESSAYS.read_text(encoding="utf-8").splitlines()]
    for result in judge.batch(essays[:4]):
        print(result.value["on_topic"], result.value["verdict"], *result.value["views"], sep="\n  ")


if __name__ == "__main__":
    main()
