"""Sending work to where it belongs: intents, dispatch tables, match statements, triage."""

# Programs as users write them.
# pyright: basic

from collections import defaultdict
from dataclasses import dataclass

import lmc

OUTBOX: list[tuple[str, str]] = []
STOCK = {"lamp": 3, "chair": 0, "desk": 7}


@lmc.tool
def send(to: str, text: str) -> None:
    OUTBOX.append((to, text))


@lmc.tool(effect="reads")
def in_stock(item: str) -> int:
    return STOCK.get(item, 0)


def handle_refund(s, message: str) -> str:
    s += lmc.user("How much do they want back, in euros?")
    amount = int(s.gen("amount", regex="[1-9][0-9]{0,2}"))
    if amount > 200:
        send("manager", f"refund of {amount} asked: {message}")
        return "forwarded"
    return f"refunded {amount} euros"


def handle_question(s, message: str) -> str:
    s += lmc.user("Answer in a sentence.")
    return s.gen("reply", max_tokens=20, stop=[".", "\n"]).strip() + "."


def handle_order(s, message: str) -> str:
    s += lmc.user("Which item?")
    item = s.gen("item", choices=list(STOCK))
    left = in_stock(item)
    if not left:
        s += lmc.user(f"There is no {item} left. Apologise.")
        return s.gen("apology", max_tokens=16, stop="\n").strip()
    send("warehouse", item)
    return f"{item} ordered, {left - 1} left"


HANDLERS = {"refund": handle_refund, "question": handle_question, "order": handle_order}


@lmc.jit
def customer_service(s, message: str):
    """Classify the intent and call its handler."""
    s += lmc.system("You work in customer service.")
    s += lmc.user(message)
    intent = s.select("intent", [*HANDLERS, "other"])
    handler = HANDLERS.get(intent)
    if handler is None:
        send("human", message)
        return "A colleague will answer."
    return handler(s, message)


@lmc.jit
def smart_home(s, command: str):
    """Slots first, then a match statement decides what is done."""
    s += lmc.system("You control a home.")
    s += lmc.user(command)
    device = s.select("device", ["light", "heating", "music", "none"])
    if device == "none":
        return "I did not understand."
    s += lmc.user("On, off or a level?")
    action = s.gen("action", regex="on|off|level [1-9]")
    match action.split():
        case ["on" | "off" as state]:
            send(device, state)
            reply = f"The {device} is {state}."
        case ["level", number] if device != "music":
            send(device, number)
            reply = f"The {device} is at {number}."
        case ["level", number]:
            volume = int(number) * 10
            send("music", f"volume {volume}")
            reply = "That is loud!" if volume > 50 else f"Volume {volume}."
        case _:
            reply = "?"
    return reply


@lmc.jit
def mail_triage(s, mails: list[str]):
    """Sort mails into folders, draft answers to the urgent ones, sum up the rest."""
    folders = defaultdict(list)
    drafts = {}
    for number, mail in enumerate(mails):
        reader = s.copy()
        reader += lmc.user(f"Mail:\n{mail}\nFolder?")
        folder = reader.select("folder", ["urgent", "later", "spam"])
        folders[folder].append(number)
        if folder == "urgent":
            reader += lmc.user("Draft an answer.")
            drafts[number] = reader.gen("draft", max_tokens=20, stop="\n\n").strip()
    if folders["later"]:
        listed = "\n".join(f"* {mails[number][:20]}" for number in folders["later"])
        s += lmc.user(f"Sum up:\n{listed}")
        s.gen("summary", max_tokens=16, stop="\n")
    return {name: numbers for name, numbers in sorted(folders.items())}, drafts


@dataclass
class Ticket:
    title: str
    body: str
    team: str = "unassigned"
    priority: int = 3
    labels: tuple[str, ...] = ()


@lmc.jit
def assign_ticket(s, title: str, body: str):
    """Fill in a ticket step by step; what is critical is escalated."""
    ticket = Ticket(title, body)
    s += lmc.user(f"{ticket.title}\n{ticket.body}")
    ticket.team = s.select("team", ["backend", "frontend", "infrastructure"])
    s += lmc.user("Priority from 1 (critical) to 4?")
    ticket.priority = int(s.gen("priority", regex="[1-4]"))
    labels = []
    for label in ("bug", "security", "regression"):
        check = s.copy()
        check += lmc.user(f"Is this a {label}?")
        if check.select("is", ["yes", "no"]) == "yes":
            labels.append(label)
    ticket.labels = tuple(labels)
    if "security" in ticket.labels or ticket.priority == 1:
        send("on-call", f"[{ticket.team}] {ticket.title}")
    return ticket


@lmc.jit
def language_router(s, text: str):
    """Detect the language, translate if needed, answer in the language of the question."""
    s += lmc.user(f"Which language is this?\n{text}")
    language = s.select("language", ["english", "french", "german", "other"])
    if language == "other":
        return None
    question = text
    if language != "english":
        s += lmc.user("Translate it into English.")
        question = s.gen("translation", max_tokens=20, stop="\n").strip() or text
    expert = s.copy()
    expert += lmc.user(f"Answer: {question}")
    answer = expert.gen("answer", max_tokens=16, stop="\n").strip()
    if language != "english":
        expert += lmc.user(f"Now in {language.title()}.")
        answer = expert.gen("answer", max_tokens=16, stop="\n").strip()
    return {"language": language, "question": question, "answer": answer}
