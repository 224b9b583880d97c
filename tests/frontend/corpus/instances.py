"""Objects of the program's own classes in lists whose length only a run knows, named tuples, errors."""

from collections import defaultdict, deque, namedtuple
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from tests.frontend.corpus.cases import case


class Turn(NamedTuple):
    speaker: str
    text: str
    score: int = 0


Row = namedtuple("Row", "word size", defaults=[2])  # pyright: ignore[reportUntypedNamedTuple]


@dataclass
class Task:
    title: str
    owner: str | None = None
    result: str = ""
    notes: list[str] = field(default_factory=list)

    def note(self, text):
        self.notes.append(text)
        return len(self.notes)


@case("a")
def tasks_of_words(s, a: str):
    tasks = [Task(word) for word in s.gen("words", max_tokens=12).split()]
    for task in tasks:
        s += task.title
        task.result = s.gen("result", max_tokens=3)
        task.note(task.result[:1])
    tasks.sort(key=lambda task: len(task.result), reverse=True)
    return [(task.title, task.result, task.notes) for task in tasks]


@case("a", "b")
def a_task_that_some_rounds_keep(s, a: str, b: str):
    kept = []
    for title in (a, b, "c"):
        task = Task(title)
        task.owner = s.select("owner", ["ann", "bob"])
        if s.select("keep", ["yes", "no"]) == "no":
            task.owner = next(name for name in ("ann", "bob") if name != task.owner)
            if s.select("again", ["yes", "no"]) == "no":
                continue
        task.note(title)
        kept.append(task)
    return [(task.title, task.owner, task.notes) for task in kept]


@case("a")
def equal_tasks_do_not_share_lists(s, a: str):
    tasks = []
    for _ in range(2):
        if "e" in s.gen("x", max_tokens=4):
            tasks.append(Task(a))
    tasks += [Task(a), Task(a)]
    tasks[-1].note("n")
    return [task.notes for task in tasks], tasks[-1] == tasks[-2], tasks[-1] is tasks[-2]


@case("a")
def a_task_that_a_name_keeps_too(s, a: str):
    tasks = []
    last = Task(a)
    if s.gen(dtype=bool):
        tasks.append(last)
    last.note("later")
    return [task.notes for task in tasks], last.notes


@case("a")
def tasks_ranked_by_answers(s, a: str):
    tasks = [Task(a), Task("b"), Task("c")]
    for task in tasks:
        task.result = s.gen("result", max_tokens=3)
    ranked = sorted(tasks, key=lambda task: len(task.result))
    for rank, task in enumerate(ranked):
        task.note(str(rank))
    best = max(tasks, key=lambda task: task.result)
    return best.title, best is ranked[0], ranked, [task.notes for task in tasks]


@case("a")
def a_task_by_a_number_of_the_run(s, a: str):
    tasks = [Task(a), Task("b"), Task("c")]
    owners = {"ann": Task("for ann"), "bob": Task("for bob")}
    for _ in range(2):
        tasks[int(s.gen("which", regex="[0-2]"))].note(a)
        owners[s.select("owner", ["ann", "bob"])].note(a)
    return [task.notes for task in tasks], [task.notes for task in owners.values()]


@case("a")
def two_results_that_may_be_one_task(s, a: str):
    one, other, third = Task(a), Task("b"), Task("c")
    first, second = s.gen("first", regex="[0-3]"), s.gen("second", regex="[0-3]")
    left = one if first == "0" else (other if first == "1" else third)
    right = one if second == "0" else (other if second == "1" else third)
    left.note("left")
    right.note("right")
    return left, right


@case("a")
def named_tuples_that_change(s, a: str):
    turn = Turn("user", a)
    turn = turn._replace(text=s.gen("text", max_tokens=3), score=turn.score + 1)
    if turn.text > "m":
        turn = turn._replace(score=10)
    row = Row(a)._replace(size=len(turn.text))
    return turn, turn._asdict(), row._asdict()


@case("a")
def a_table_of_characters(s, a: str):
    table = str.maketrans("ae", "xy", "o")
    return s.gen("x", max_tokens=8).translate(table), a.translate(str.maketrans({"a": "b"}))


def parsed(text):
    try:
        return int(text)
    except ValueError as error:
        raise LookupError(f"bad: {text}") from error


@case("a")
def the_cause_of_an_error(s, a: str):
    try:
        return parsed(s.gen("x", max_tokens=2))
    except LookupError as error:
        return str(error), str(error.__cause__)


@case("a")
def the_name_of_a_missing_attribute(s, a: str):
    text = s.gen("x", max_tokens=2)
    found = []
    try:
        found.append(text.words)
    except AttributeError as error:
        found.append((error.name, error.obj == text))
    try:
        found.append(nowhere)  # pyright: ignore[reportUndefinedVariable]
    except NameError as error:
        found.append(error.name)
    return found


@case("a")
def a_missing_attribute_ends_it(s, a: str):
    return s.gen("x", max_tokens=2).words


@case("fix the bug")
def tasks_that_are_changed_after_being_listed(s, a: str):
    tasks = []
    for word in s.gen("words", max_tokens=12).split():
        task = Task(word)
        tasks.append(task)
        if "e" in word:
            task.owner = s.gen("owner", max_tokens=2)
        else:
            task.notes.append(word)
    for number, task in enumerate(tasks):
        task.result = f"{number}: {task.title}"
    return [(task.title, task.owner, task.result, task.notes) for task in tasks], [
        task for task in tasks if task.owner is None
    ][:1]


@case("fix the bug")
def the_best_task_so_far(s, a: str):
    best = None
    for word in s.gen("words", max_tokens=12).split():
        task = Task(word, result=s.gen("result", max_tokens=3))
        if best is None or len(task.result) > len(best.result):
            best = task
    if best is None:
        return "none"
    best.note("the best")
    return best.title, best.notes


@case("fix the bug")
def tasks_of_two_lists_at_once(s, a: str):
    tasks = [Task(word) for word in s.gen("words", max_tokens=12).split()]
    scores = [len(s.gen("why", max_tokens=3)) for _ in tasks]
    for task, score in zip(tasks, scores, strict=True):
        task.note(str(score))
    first = next((task for task in tasks if task.notes), None)
    if first is not None:
        first.owner = "me"
    return [asdict(task) for task in tasks], first in tasks, first is tasks[0] if tasks else None


@dataclass
class Tagged:
    text: str
    tags: list[str] = field(default_factory=list[str])
    counts: dict[str, int] = field(default_factory=dict[str, int])


@case("a")
def containers_with_types_of_items(s, a: str):
    one = Tagged(a)
    one.tags.append(s.gen("x", max_tokens=3))
    words, found = list[str](), dict[str, list[str]]()
    words += one.tags
    found.setdefault(words[0], []).append(a)
    queue, counts = deque[str]([a]), defaultdict[str, int](int)
    counts[words[0]] += 1
    return one, words, found, list(queue), dict(counts)
