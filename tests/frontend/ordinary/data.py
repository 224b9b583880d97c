"""Rows, queries, code and translations: cleaning, labelling, repairing."""

# Programs as users write them.
# pyright: basic

import csv
import io
import re
import sqlite3
import string
from collections import Counter, defaultdict, namedtuple
from difflib import SequenceMatcher

import lmc

Row = namedtuple("Row", "name city amount")


@lmc.jit
def clean_csv(s, text: str):
    """Parse CSV, repair what code can repair, ask the model about the rest."""
    cleaned = []
    problems = Counter()
    for record in csv.DictReader(io.StringIO(text)):
        name = record["name"].strip().title()
        city = record["city"].strip()
        if city.lower() not in ("paris", "rome", "oslo"):
            problems["city"] += 1
            fixer = s.copy()
            fixer += f"Which city is {city!r}?"
            city = fixer.gen("city", choices=[" Paris", " Rome", " Oslo"]).strip()
        try:
            amount = float(record["amount"].replace(",", "."))
        except ValueError:
            problems["amount"] += 1
            fixer = s.copy()
            fixer += lmc.user(f"How much is {record['amount']!r}?")
            amount = float(fixer.gen("amount", regex=r"[1-9][0-9]?"))
        cleaned.append(Row(name, city, amount))
    totals = defaultdict(float)
    for row in cleaned:
        totals[row.city] += row.amount
    return [row._asdict() for row in cleaned], dict(totals), dict(problems)


@lmc.jit
def sql_repair(s, question: str, orders: list[tuple[str, int]]):
    """Write a query, run it, show the error of the database, repair it."""
    database = sqlite3.connect(":memory:")
    database.execute("create table orders (item text, price integer)")
    database.executemany("insert into orders values (?, ?)", orders)
    s += lmc.system("Table: orders(item, price).")
    s += lmc.user(question)
    pattern = r"select (max|min|sum|avg|median)\((price|prices)\) from (orders|order)( where price > [0-9])?"
    errors = []
    try:
        for _ in range(4):
            query = s.gen("query", regex=pattern)
            try:
                [(value,)] = database.execute(query).fetchall()
            except sqlite3.Error as error:
                errors.append(str(error))
                s += lmc.user(f"{error}. Repair the query.")
                continue
            if value is None:
                s += lmc.user("The result is empty. Try without a condition.")
                continue
            return value, errors
    finally:
        database.close()
    return None, errors


@lmc.jit
def label_and_evaluate(s, examples: list[tuple[str, str]]):
    """Label texts whose labels are known and count hits and confusions."""
    labels = sorted({label for _, label in examples})
    confusion = Counter()
    for text, truth in examples:
        rater = s.copy()
        rater += lmc.user(f"Label of {text!r}?")
        confusion[truth, rater.select("label", labels)] += 1
    accuracy = sum(count for (truth, guess), count in confusion.items() if truth == guess) / len(examples)
    table = ["".rjust(8) + "".join(label.rjust(8) for label in labels)]
    for truth in labels:
        table.append(truth.rjust(8) + "".join(str(confusion[truth, guess]).rjust(8) for guess in labels))
    if accuracy < 0.5:
        (truth, guess), count = max(
            ((k, v) for k, v in confusion.items() if k[0] != k[1]), key=lambda item: (item[1], item[0])
        )
        s += lmc.user(f"{count} times {truth} was taken for {guess}. Why?")
        s.gen("why", max_tokens=12, stop="\n")
    return f"{accuracy:.2f}", table


@lmc.jit
def deduplicate_faq(s, questions: list[str], threshold: float = 0.6):
    """Similar questions are merged if the model agrees; each group gets one wording."""
    groups: list[list[str]] = []
    for question in questions:
        for group in groups:
            ratio = SequenceMatcher(None, question.lower(), group[0].lower()).ratio()
            if ratio >= threshold:
                judge = s.copy()
                judge += lmc.user(f"Same question?\n1. {group[0]}\n2. {question}")
                if judge.select("same", ["same", "different"]) == "same":
                    group.append(question)
                    break
        else:
            groups.append([question])
    result = []
    for group in groups:
        if len(group) == 1:
            result.append((group[0], 1))
            continue
        writer = s.copy()
        writer += lmc.user("Write one question for:\n" + "\n".join(group))
        wording = writer.gen("wording", max_tokens=12, stop=["?", "\n"]).strip().capitalize()
        result.append((wording + "?" if wording else min(group, key=len), len(group)))
    return result


GLOSSARY = {"cart": "Warenkorb", "checkout": "Kasse", "order": "Bestellung"}


def terms_in(text: str) -> dict[str, str]:
    words = text.lower().translate(str.maketrans("", "", string.punctuation)).split()
    return {term: GLOSSARY[term] for term in sorted(set(words) & GLOSSARY.keys())}


@lmc.jit
def translate_with_glossary(s, sentences: list[str]):
    """Translate with the terms that occur; terms that are missing afterwards are put in."""
    done: dict[str, str] = {}
    corrections = 0
    for sentence in sentences:
        if sentence in done:
            continue
        terms = terms_in(sentence)
        translator = s.copy()
        if terms:
            translator += lmc.system("Terms: " + ", ".join(f"{a}={b}" for a, b in terms.items()))
        translator += lmc.user(sentence)
        translation = translator.gen("translation", max_tokens=16, stop="\n").strip()
        for term, wanted in terms.items():
            if wanted.lower() not in translation.lower():
                corrections += 1
                translator += lmc.user(f"Use {wanted} for {term}.")
                how = translator.select("how", ["replace", "append"])
                translation = f"{wanted} {translation}" if how == "replace" else f"{translation} ({wanted})"
        done[sentence] = translation
    return [done[sentence] for sentence in sentences], corrections


@lmc.jit
def back_translation(s, sentence: str, languages: list[str]):
    """Through several languages and back; the loss is measured in words."""
    text = sentence
    for language in [*languages, "English"]:
        translator = s.copy()
        translator += lmc.user(f"Into {language}: {text}")
        text = translator.gen("text", max_tokens=20, stop="\n").strip() or text
    before, after = set(sentence.lower().split()), set(text.lower().split())
    lost = len(before - after) / len(before) if before else 0.0
    if lost > 0.5:
        s += lmc.user(f"{sentence}\n{text}\nDo these mean the same?")
        return text, s.select("same", ["yes", "no"])
    return text, f"{lost:.0%} lost"


def hunks(diff: str):
    """(file, lines) of every hunk of a unified diff."""
    file, lines = None, []
    for line in diff.splitlines():
        if line.startswith("+++ "):
            if lines:
                yield file, lines
            file, lines = line[4:].removeprefix("b/"), []
        elif line.startswith("@@"):
            if lines:
                yield file, lines
            lines = []
        elif line[:1] in "+- " and file is not None and not line.startswith("---"):
            lines.append(line)
    if lines:
        yield file, lines


@lmc.jit
def code_review(s, diff: str):
    """Review each hunk; only added lines get comments, and blockers decide."""
    comments = []
    severities = Counter()
    for file, lines in hunks(diff):
        added = [line[1:].strip() for line in lines if line.startswith("+")]
        if not added:
            continue
        reviewer = s.copy()
        reviewer += lmc.user(f"{file}:\n" + "\n".join(lines))
        severity = reviewer.select("severity", ["fine", "nit", "blocker"])
        severities[severity] += 1
        if severity == "fine":
            continue
        reviewer += lmc.user("Comment:")
        comment = reviewer.gen("comment", max_tokens=12, stop="\n").strip()
        comments.append(f"{file}: {severity}: {comment}")
    verdict = "request changes" if severities["blocker"] else "approve"
    return verdict, comments, severities.total()


@lmc.jit
def unit_test_writer(s, function: str, cases: list[tuple[int, int]]):
    """The model writes a formula; it is run against the cases until all pass."""
    s += lmc.user(f"Write {function} as a formula of x.")
    failures = []
    for attempt in range(5):
        formula = s.gen("formula", regex=r"x( \* [2-4])?( \+ [0-3])?|[0-9] - x")
        code = compile(formula, "<formula>", "eval")
        failing = [(x, expected) for x, expected in cases if eval(code, {"x": x}) != expected]
        if not failing:
            return formula, attempt + 1
        failures.append(len(failing))
        x, expected = failing[0]
        s += lmc.user(f"{formula} is wrong: for x={x} it should be {expected}.")
    return None, failures


@lmc.jit
def anonymise(s, text: str):
    """Mask addresses and numbers with regular expressions, names with the model's help."""
    text = re.sub(r"[\w.]+@[\w.]+", "<mail>", text)
    text, numbers = re.subn(r"\b\d[\d ]{4,}\d\b", "<number>", text)
    names = []
    for word in dict.fromkeys(re.findall(r"\b[A-Z][a-z]+\b", text)):
        checker = s.copy()
        checker += f"{word} is a"
        if checker.select("kind", [" person", " thing"]) == " person":
            names.append(word)
            text = text.replace(word, f"P{len(names)}")
    s += text
    return text, names, numbers


@lmc.jit
def schema_mapping(s, source: list[str], target: list[str]):
    """Map columns: equal names first, then the model among what is left."""
    mapping = {}
    free = list(target)
    for column in source:
        key = column.lower().replace("_", "")
        exact = next((name for name in free if name.lower().replace("_", "") == key), None)
        if exact is not None:
            mapping[column] = exact
            free.remove(exact)
    for column in (column for column in source if column not in mapping):
        if not free:
            mapping[column] = None
            continue
        s += lmc.user(f"Which of {free} is {column}?")
        choice = s.select("choice", [*free, "none"])
        if choice == "none":
            mapping[column] = None
        else:
            mapping[column] = choice
            free.remove(choice)
    return mapping, free
