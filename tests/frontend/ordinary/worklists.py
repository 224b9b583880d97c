"""Queues, recursion, memoised helpers: work that makes more work."""

# Programs as users write them.
# pyright: basic

from collections import defaultdict, deque
from contextlib import contextmanager
from functools import lru_cache, partial, reduce

import lmc

PAGES = {
    "home": ("Welcome to the shop.", ["about", "products"]),
    "about": ("We are two people.", ["home", "jobs"]),
    "products": ("Lamps and chairs.", ["lamps", "chairs", "home"]),
    "lamps": ("Lamps are bright.", []),
    "chairs": ("Chairs are soft.", ["lamps"]),
    "jobs": ("No jobs at present.", ["about"]),
}


@lmc.jit
def crawl(s, start: str, looking_for: str, limit: int):
    """Follow links breadth first where the model finds them promising."""
    queue = deque([start])
    visited = {start}
    relevant = []
    while queue and len(visited) <= limit:
        name = queue.popleft()
        text, links = PAGES[name]
        reader = s.copy()
        reader += lmc.user(f"Looking for {looking_for}. Page {name}: {text}")
        if reader.select("relevant", ["yes", "no"]) == "yes":
            relevant.append(name)
        for link in links:
            if link in visited:
                continue
            reader += lmc.user(f"Follow the link {link}?")
            if reader.select("follow", ["follow", "skip"]) == "follow":
                visited.add(link)
                queue.append(link)
    return relevant, sorted(visited)


@lmc.jit
def expand_outline(s, title: str, max_items: int):
    """An outline whose items are split as long as the model calls them complex."""
    todo = [(title, 0)]
    outline = []
    while todo:
        item, depth = todo.pop()
        outline.append("  " * depth + item)
        if depth >= 2 or len(outline) >= max_items:
            continue
        editor = s.copy()
        editor += lmc.user(f"Outline so far:\n" + "\n".join(outline) + f"\nIs {item} simple or complex?")
        if editor.select("size", ["simple", "complex"]) == "complex":
            editor += lmc.user("Split it into two parts.")
            first = editor.gen("first", max_tokens=5, stop=["\n", ",", "."]).strip() or "Part one"
            second = editor.gen("second", max_tokens=5, stop=["\n", ",", "."]).strip() or "Part two"
            todo += [(second, depth + 1), (first, depth + 1)]
    return "\n".join(outline)


def in_order(dependencies: dict[str, list[str]]) -> list[str]:
    """Topological order, alphabetical among equals."""
    missing = {name: set(needed) for name, needed in dependencies.items()}
    order = []
    while missing:
        ready = sorted(name for name, needed in missing.items() if not needed)
        if not ready:
            raise ValueError(f"cycle among {', '.join(sorted(missing))}")
        for name in ready:
            del missing[name]
        for needed in missing.values():
            needed.difference_update(ready)
        order.extend(ready)
    return order


@lmc.jit
def build_pipeline(s, dependencies: dict[str, list[str]]):
    """Run steps in the order of their dependencies; what depends on a failed step is skipped."""
    results = {}
    failed = set()
    for step in in_order(dependencies):
        blockers = failed.intersection(dependencies[step])
        if blockers:
            results[step] = f"skipped because of {min(blockers)}"
            failed.add(step)
            continue
        runner = s.copy()
        inputs = [results[name] for name in dependencies[step]]
        runner += lmc.user(f"Step {step}. Inputs: {inputs}")
        results[step] = runner.gen("output", max_tokens=8, stop="\n").strip()
        if runner.select("status", ["ok", "failed"]) == "failed":
            failed.add(step)
    return results, sorted(failed)


@lru_cache(maxsize=None)
def edit_distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return edit_distance(a[1:], b[1:])
    return 1 + min(edit_distance(a[1:], b), edit_distance(a, b[1:]), edit_distance(a[1:], b[1:]))


@lmc.jit
def spelling_bee(s, words: list[str]):
    """The speller gets a second chance for near misses."""
    scores = []
    for word in words:
        s += lmc.user(f"Spell: {word}")
        letters = "".join(sorted(set(word)))
        attempt = s.gen("attempt", regex=f"[{letters}]{{{len(word)}}}")
        distance = edit_distance(attempt, word)
        if 0 < distance <= 2:
            s += lmc.user(f"Almost! {distance} wrong.")
            attempt = s.gen("attempt", regex=f"[{letters}]{{{len(word)}}}")
            distance = edit_distance(attempt, word)
        scores.append(max(0, len(word) - distance))
    return scores, reduce(lambda total, score: total * 10 + score, scores, 0)


@lmc.jit
def memoised_classifier(s, words: list[str]):
    """Each different word is classified once; the rest come from a dict."""
    cache: dict[str, str] = {}
    hits = 0

    def classify(word: str) -> str:
        nonlocal hits
        key = word.strip().lower()
        if key in cache:
            hits += 1
            return cache[key]
        branch = s.copy()
        branch += f"{key} is a"
        cache[key] = branch.gen("kind", choices=[" noun", " verb", " adjective"]).strip()
        return cache[key]

    grouped = defaultdict(list)
    for word in words:
        grouped[classify(word)].append(word)
    return dict(grouped), hits


@contextmanager
def counted(budget: dict[str, int], kind: str):
    budget[kind] = budget.get(kind, 0) + 1
    try:
        yield budget[kind]
    finally:
        budget["last"] = budget[kind]


@lmc.jit
def budgeted(s, questions: list[str], limit: int):
    """A context manager counts calls; questions beyond the limit are not asked."""
    budget: dict[str, int] = {}
    answers = []
    for question in questions:
        if budget.get("ask", 0) >= limit:
            answers.append("-")
            continue
        with counted(budget, "ask") as number:
            s += lmc.user(f"({number}/{limit}) {question}")
            answers.append(s.gen("answer", max_tokens=8, stop="\n").strip())
        if answers[-1] and answers[-1][-1].isdigit():
            with counted(budget, "check"):
                s += lmc.user("Is the number right?")
                if s.select("right", ["right", "wrong"]) == "wrong":
                    answers[-1] += " (?)"
    return answers, budget


def summarise(s, label: str, text: str, *, words: int = 6) -> str:
    s += lmc.user(f"{label} in {words} words:\n{text}")
    return s.gen("summary", max_tokens=words * 2, stop="\n").strip()


def combine(s, parts: list[str], merge) -> str:
    """Merge neighbours until one text is left."""
    while len(parts) > 1:
        merged = [merge(s.copy(), text=" | ".join(parts[i : i + 2])) for i in range(0, len(parts) - 1, 2)]
        if len(parts) % 2:
            merged.append(parts[-1])
        parts = merged
    return parts[0]


@lmc.jit
def hierarchical_summary(s, paragraphs: list[str]):
    """Summaries of summaries, with a partial as the merging function."""
    if not paragraphs:
        return ""
    short = [p if len(p) < 20 else summarise(s.copy(), "Shorten", p) for p in paragraphs]
    return combine(s, short, partial(summarise, label="Merge", words=5))


def quiz(*questions: str, **options):
    """Questions with the options that their names stand for."""
    yield from ((question, options.get(f"q{number}", ["yes", "no"])) for number, question in enumerate(questions))


@lmc.jit
def questionnaire(s, name: str):
    """Questions from a generator function; the answer to one may end the questionnaire."""
    s += lmc.system(f"You are {name}.")
    answers = {}
    for question, options in quiz(
        "Are you hungry?", "What do you eat?", "And to drink?", q1=["soup", "rice"], q2=["tea", "milk"]
    ):
        s += lmc.user(question)
        answers[question] = answer = s.select(None, options)
        if answer == "no":
            break
    return answers


@lmc.jit
def argument_tree(s, claim: str, depth: int):
    """Arguments for and against, and again for and against those."""

    def grow(statement: str, level: int):
        if level == 0:
            return {"claim": statement}
        children = []
        for side in ("for", "against"):
            arguer = s.copy()
            arguer += lmc.user(f"Argue {side}: {statement}")
            argument = arguer.gen("argument", max_tokens=8, stop=["\n", "."]).strip()
            if argument:
                children.append({"side": side, **grow(argument, level - 1)})
        return {"claim": statement, "children": children}

    def strength(node) -> int:
        return sum(
            (1 if child["side"] == "for" else -1) * (1 + abs(strength(child))) for child in node.get("children", [])
        )

    tree = grow(claim, depth)
    score = strength(tree)
    s += lmc.user(f"{claim}: balance {score:+d}. Conclude.")
    return tree, score, s.gen("conclusion", max_tokens=10, stop="\n").strip()
