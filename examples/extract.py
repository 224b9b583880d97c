"""Extract a city's facts from a page about it, as an instance of a pydantic class.

lmc run examples/extract.py --input examples/data/pages.jsonl
lmc compile examples/extract.py --emit grammar
"""

import json
from pathlib import Path

from pydantic import BaseModel, Field

import lmc

PAGES = Path(__file__).parent / "data" / "pages.jsonl"


class City(BaseModel):
    name: str = Field(min_length=1, max_length=24)
    country: str = Field(min_length=1, max_length=24)
    latitude: float
    population: int = Field(ge=0)
    landmarks: list[str] = Field(alias="top 3 landmarks", min_length=3, max_length=3)


@lmc.jit
def extract(s, page: str) -> City:
    s += lmc.system("You write JSON only.")
    s += lmc.user(f"Page:\n{page}\nGive the city of the page as JSON.")
    # The built-in model writes such objects over several lines: what it may say leaves it that.
    return s.gen("city", schema=City, whitespace="flexible", max_tokens=200)


def main() -> None:
    rows = [json.loads(line) for line in PAGES.read_text(encoding="utf-8").splitlines()]
    for result in extract.batch(rows):
        city: City = result.value
        print(f"{city.name}, {city.country}: {city.population} people, see {', '.join(city.landmarks)}")


if __name__ == "__main__":
    main()
