"""What a generative agent asks a model in the course of a day: when to rise, what to do, what an event means to it.

python examples/generative_agents.py
lmc run examples/generative_agents.py:live --input examples/data/agents.jsonl
"""

import json
from pathlib import Path

import lmc

AGENTS = Path(__file__).parent / "data" / "agents.jsonl"
BEDTIME = 22
PLACES = ["market", "school", "kitchen", "garden", "library"]
POIGNANT = 7
SCALE = "bread: 1\nlamp: 2\nkettle: 2\nbook: 3\nletter: 4\nbicycle: 6\nboat: 8\nring: 9\n"


@lmc.jit
def wake_up_hour(s, about: str) -> int:
    s += lmc.user(f"{about}\nWhat is waking?")
    return int(s.gen("hour", regex="[4-9]|1[01]"))


@lmc.jit
def activity(s, about: str, part: str) -> str:
    s += lmc.user(f"{about}\nWhat is {part}?")
    return s.gen("activity", max_tokens=8, stop="\n")


@lmc.jit
def event_triple(s, event: str) -> dict[str, str]:
    s += lmc.system("You extract fields from text.")
    s += lmc.user(f"Sentence: {event}\nExtract the fields name, item and city.")
    for field in ("name", "item", "city"):
        s += f"{field.capitalize()}:"
        s.gen(field, max_tokens=16, stop="\n")
        s += "\n"
    return {"subject": s["name"].strip(), "object": s["item"].strip(), "place": s["city"].strip()}


@lmc.jit
def poignancy(s, thing: str) -> int:
    s += f"{SCALE}{thing}:"
    return int(s.select("rating", [f" {rating}" for rating in range(1, 11)]))


@lmc.jit
def location(s, about: str, action: str) -> str:
    s += lmc.user(f"{about}\nWhat is {action}?")
    return s.gen("place", choices=PLACES)


@lmc.jit
def live(s, about: str, events: list[str]) -> dict[str, object]:
    schedule = []
    hour = wake_up_hour(about)
    while hour < BEDTIME:
        action = activity(about, "morning" if hour < 12 else "evening")
        schedule.append(f"{hour}: {action} ({location(about, action)})")
        hour += 6

    memories = []
    for event in events:
        triple = event_triple(event)
        rating = poignancy(triple["object"])
        memories.append({"rating": rating, **triple})
        if rating >= POIGNANT:
            break  # there is enough to think about
    s += lmc.user(
        "Results:\n"
        + "\n".join(f"{memory['object']}: {memory['rating']}" for memory in memories)
        + "\nPick the one with the highest score."
    )
    return {"schedule": schedule, "memories": memories, "focus": s.gen("focus", max_tokens=12, stop="\n")}


def main() -> None:
    rows = [json.loads(line) for line in AGENTS.read_text(encoding="utf-8").splitlines()]
    for result in live.batch(rows):
        print(json.dumps(result.value, indent=2))


if __name__ == "__main__":
    main()
