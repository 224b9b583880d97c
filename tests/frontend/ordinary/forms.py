"""Structured output: forms, classification and extraction, invoices, résumés."""

# Programs as users write them.
# pyright: basic

from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Literal

from pydantic import BaseModel, Field

import lmc


class Contact(BaseModel):
    name: str | None = Field(default=None, max_length=12)
    phone: str | None = Field(default=None, pattern=r"^[0-9]{3}-[0-9]{4}$")
    email: str | None = Field(default=None, pattern=r"^[a-z]{1,8}@[a-z]{1,6}\.(com|org)$")


@lmc.jit
def fill_contact_form(s, message: str):
    """Extract what is there, then ask for each field that is missing."""
    s += lmc.user(f"Extract the contact.\n{message}")
    contact = s.gen("contact", schema=Contact, max_tokens=120)
    questions = []
    for name in Contact.model_fields:
        if getattr(contact, name) is None:
            questions.append(f"What is your {name}?")
    if not questions:
        return contact, []
    patterns = {"name": "[A-Z][a-z]{2,8}", "phone": "[0-9]{3}-[0-9]{4}", "email": r"[a-z]{1,8}@[a-z]{1,6}\.org"}
    filled = {}
    for question in questions:
        name = question.removeprefix("What is your ").rstrip("?")
        s += lmc.user(question)
        filled[name] = s.gen(name, regex=patterns[name])
    return contact.model_copy(update=filled), questions


class Kind(str, Enum):
    INVOICE = "invoice"
    LETTER = "letter"
    RESUME = "resume"


class Position(BaseModel):
    item: Literal["lamp", "chair", "desk"]
    quantity: int = Field(ge=1, le=20)
    price: int = Field(ge=1, le=500)


class Invoice(BaseModel):
    number: int = Field(ge=1, le=99999)
    positions: list[Position] = Field(min_length=1, max_length=3)
    vat: Literal[0, 7, 19] = 19

    def total(self) -> Decimal:
        net = sum(position.quantity * position.price for position in self.positions)
        return Decimal(net) * (100 + self.vat) / 100


class Letter(BaseModel):
    sender: str = Field(min_length=1, max_length=10)
    urgent: bool


@lmc.jit
def document_intake(s, document: str):
    """Classify a document, then extract with the schema of its kind."""
    s += lmc.user(f"Document:\n{document}\nWhat is it?")
    kind = Kind(s.gen("kind", choices=[kind.value for kind in Kind]))
    if kind is Kind.INVOICE:
        invoice = s.gen("invoice", schema=Invoice, max_tokens=300)
        total = invoice.total()
        if total > 2000:
            s += lmc.user(f"{total:.2f} is a lot. Approve?")
            approved = s.select("approve", ["yes", "no"]) == "yes"
            return {"kind": kind.value, "total": f"{total:.2f}", "approved": approved}
        return {"kind": kind.value, "total": f"{total:.2f}", "approved": True}
    if kind is Kind.LETTER:
        letter = s.gen("letter", schema=Letter, max_tokens=80)
        return {"kind": kind.value, "folder": "today" if letter.urgent else "later", "from": letter.sender}
    s += lmc.user("Years of experience?")
    years = s.gen("years", dtype=int, max_tokens=2)
    return {"kind": kind.value, "senior": abs(years) >= 10}


class Job(BaseModel):
    company: str = Field(min_length=1, max_length=8)
    start: int = Field(ge=1990, le=2024)
    years: int = Field(ge=0, le=12)


class Resume(BaseModel):
    name: str = Field(min_length=1, max_length=8)
    jobs: list[Job] = Field(max_length=3)
    skills: list[Literal["python", "sql", "go", "rust"]] = Field(max_length=4)


def experience(resume: Resume) -> int:
    covered: set[int] = set()
    for job in resume.jobs:
        covered |= set(range(job.start, job.start + job.years))
    return len(covered)


@lmc.jit
def screen_resume(s, text: str, required: list[str]):
    """Extract a résumé, compare it with what is required, write to the candidate."""
    s += lmc.user(f"Résumé:\n{text}")
    resume = s.gen("resume", schema=Resume, max_tokens=300)
    years = experience(resume)
    missing = sorted(set(required) - set(resume.skills))
    s += lmc.user(f"{resume.name}: {years} years, missing {', '.join(missing) or 'nothing'}.")
    if missing and years < 5:
        s.gen("rejection", max_tokens=16, stop="\n")
        return "rejected", missing
    last = max(resume.jobs, key=lambda job: job.start, default=None)
    s += lmc.user(f"Invite {resume.name}" + (f" from {last.company}." if last else "."))
    s.gen("invitation", max_tokens=16, stop="\n")
    return "invited", years


@lmc.jit
def travel_plan(s, city: str, arrival: str, nights: int):
    """A day plan: activities by choice, without repeating one, with times that do not overlap."""
    day = date.fromisoformat(arrival)
    options = {"museum": 3, "park": 2, "market": 1, "concert": 2, "walk": 1}
    plan = {}
    for number in range(nights):
        hour = 9
        entries = []
        today = s.copy()
        today += lmc.user(f"Day {number + 1} in {city}. Options: {', '.join(options)}")
        while hour < 14 and options:
            activity = today.gen("activity", choices=list(options))
            length = options.pop(activity)
            entries.append(f"{hour:02d}:00 {activity}")
            hour += length
            if today.select("tired", ["tired", "fresh"]) == "tired":
                break
        plan[day.replace(day=day.day + number).strftime("%b %d")] = entries
    return plan, sorted(options)


class Answer(BaseModel):
    reasoning: str = Field(max_length=20)
    choice: Literal["A", "B", "C", "D"]


@lmc.jit
def exam(s, questions: list[tuple[str, list[str], str]]):
    """Multiple choice with reasons; wrong answers are explained and repeated at the end."""
    wrong = []
    points = 0
    for text, options, solution in questions:
        student = s.copy()
        listed = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", options))
        student += lmc.user(f"{text}\n{listed}")
        answer = student.gen("answer", schema=Answer, max_tokens=60)
        if answer.choice == solution:
            points += 2
        else:
            wrong.append((text, solution))
    for text, solution in wrong:
        s += lmc.user(f"{text} It was {solution}. Again:")
        if s.select("second", ["A", "B", "C", "D"]) == solution:
            points += 1
    grade = points / (2 * len(questions)) if questions else 0.0
    return f"{grade:.0%}", [text for text, _ in wrong]


ORDER_SCHEMA = {
    "type": "object",
    "properties": {
        "dish": {"enum": ["soup", "fish", "cake"]},
        "size": {"enum": ["small", "large"]},
        "extras": {"type": "array", "items": {"enum": ["bread", "salt", "cream"]}, "maxItems": 3},
    },
    "required": ["dish", "size", "extras"],
    "additionalProperties": False,
}
PRICES = {"soup": 4.5, "fish": 11.0, "cake": 3.2}


@lmc.jit
def take_order(s, guest: str):
    """A JSON schema instead of a class; the bill is computed from what it says."""
    bill = []
    for course in range(1, 4):
        s += lmc.user(f"{guest}, course {course}?")
        order = s.gen("order", schema=ORDER_SCHEMA, max_tokens=120)
        price = PRICES[order["dish"]] * (1.5 if order["size"] == "large" else 1)
        price += 0.5 * len(set(order["extras"]))
        bill.append((order["dish"], price))
        s += lmc.user("Anything else?")
        if s.select("more", ["yes", "no"]) == "no":
            break
    total = sum(price for _, price in bill)
    return f"{len(bill)} courses, {total:.2f} euros", [dish for dish, _ in bill]
