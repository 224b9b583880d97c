"""Asking again: JSON that may not parse, dates, validation errors, fallbacks."""

# Programs as users write them.
# pyright: basic

import json
import logging
import re
from datetime import date, datetime, timedelta

from pydantic import BaseModel, Field, ValidationError

import lmc

log = logging.getLogger(__name__)
LOOSE_OBJECT = r'\{"name": "[a-z]{2,8}", "age": [1-9][0-9]?,?( "city": "[a-z]{2,8}"\}|\}|)'


class ExtractionError(Exception):
    """Nothing usable came back."""


@lmc.jit
def json_with_retries(s, text: str, attempts: int):
    """Ask for JSON, show the parser's error, ask again; give up with an error of its own."""
    s += lmc.system("Reply with JSON.")
    s += lmc.user(f"Extract name, age and city.\n{text}")
    for attempt in range(attempts):
        raw = s.gen("raw", regex=LOOSE_OBJECT, max_tokens=80)
        try:
            data = json.loads(raw)
        except json.JSONDecodeError as error:
            log.warning("attempt %d failed: %s", attempt + 1, error.msg)
            s += lmc.user(f"That is no JSON ({error.msg} at {error.pos}). Try again.")
            continue
        if "city" not in data:
            s += lmc.user("The city is missing. Try again.")
            continue
        return data
    raise ExtractionError(f"no JSON after {attempts} attempts")


def parse_score(text: str) -> int:
    match = re.search(r"\d+", text)
    if match is None:
        raise ValueError(f"no number in {text.strip()!r}")
    score = int(match.group())
    if not 0 <= score <= 100:
        raise ValueError(f"{score} is not between 0 and 100")
    return score


@lmc.jit
def score_from_free_text(s, review: str):
    """The score is found in free text; what is wrong with it goes back to the model."""
    s += lmc.user(f"Review: {review}\nHow satisfied is the writer, from 0 to 100?")
    errors = []
    while len(errors) < 4:
        answer = s.gen("answer", max_tokens=12, stop="\n")
        try:
            score = parse_score(answer)
            break
        except ValueError as error:
            errors.append(str(error))
            s += lmc.user(f"{error}. A number, please.")
    else:
        score = None
    return score, errors


class Booking(BaseModel):
    guest: str = Field(min_length=1, max_length=12)
    nights: int = Field(ge=1, le=14)
    breakfast: bool = False


@lmc.jit
def validated_booking(s, request: str):
    """Free JSON is validated by pydantic; after two failures the schema is enforced."""
    s += lmc.user(f"Book this: {request}")
    pattern = r'\{"guest": "[a-z]{0,6}", "nights": [0-9]{1,2}(, "breakfast": (true|false|"maybe"))?\}'
    problems = 0
    booking = None
    while booking is None:
        if problems == 2:
            booking = s.gen("booking", schema=Booking, max_tokens=80)
            break
        raw = s.gen("raw", regex=pattern, max_tokens=80)
        try:
            booking = Booking.model_validate_json(raw)
        except ValidationError as error:
            problems += error.error_count()
            fields = ", ".join(".".join(map(str, item["loc"])) or "no JSON" for item in error.errors())
            s += lmc.user(f"Wrong: {fields}.")
            if problems > 2:
                problems = 2
    price = booking.nights * 80 + (booking.nights * 12 if booking.breakfast else 0)
    return booking, price, problems


@lmc.jit
def date_from_text(s, message: str, today: str):
    """Understand a date, absolute or relative, and check that it lies in the future."""
    base = date.fromisoformat(today)
    s += lmc.user(f"Today is {base:%A, %d %B %Y}. When is: {message}?")
    kind = s.select("kind", ["absolute", "relative", "unclear"])
    if kind == "unclear":
        return None
    if kind == "relative":
        days = int(s.gen("days", regex="[1-9]|[12][0-9]"))
        return (base + timedelta(days=days)).isoformat()
    for _ in range(3):
        text = s.gen("date", regex="20[23][0-9]-[01][0-9]-[0-3][0-9]")
        try:
            found = datetime.strptime(text, "%Y-%m-%d").date()
        except ValueError:
            s += lmc.user(f"{text} is not in the calendar.")
            continue
        if found >= base:
            return found.isoformat()
        s += lmc.user(f"{text} is {(base - found).days} days ago.")
    return "gave up"


@lmc.jit
def cascade(s, question: str, minimum: float):
    """A short answer first; longer ones only where the model is not sure enough."""
    budgets = [4, 8, 16]
    history = []
    for tokens in budgets:
        attempt = s.copy()
        attempt += lmc.user(f"{question}\nAnswer in at most {tokens} tokens.")
        answer = attempt.gen("answer", max_tokens=tokens, stop="\n").strip()
        attempt += lmc.user("How sure are you, in percent?")
        confidence = int(attempt.gen("confidence", regex="[1-9][0-9]|100")) / 100
        history.append(f"{tokens:>3} tokens: {confidence:.0%}")
        if confidence >= minimum:
            return answer, history
    s += lmc.user(f"{question}\nTake your time.")
    return s.gen("answer", max_tokens=32, stop="\n").strip(), history
