"""Lists and objects of the program's own that are in two places at once, in containers whose items only a run knows."""

# pyright: basic, reportUnhashable=false, reportOptionalMemberAccess=false, reportIndexIssue=false, reportAttributeAccessIssue=false

import json
import statistics
from dataclasses import dataclass, field

from pydantic import BaseModel, Field

from lmc.frontend.tools.tools import tool
from tests.frontend.corpus.cases import case
from tests.frontend.harness import effect


@dataclass
class Job:
    size: int = 0
    tags: list = field(default_factory=list)


@tool
def appended(rows: list) -> int:
    rows[0].append("b")
    return len(rows[-1])


def words(s):
    return s.gen("x", max_tokens=9).split()


def pair(one):
    return one, one


@case("apple pie")
def worklist_of_objects_with_lists(s, a):
    todo = [Job()]
    for _ in words(s):
        todo.append(Job())
    return len(todo)


@case("apple pie")
def worklist_with_results(s, a):
    todo, done = [Job(1, [a])], []
    while todo and len(done) < 4:
        job = todo.pop()
        job.size += 1
        done.append(job)
        for word in words(s):
            todo.append(Job(job.size, [word]))
    return [(job.size, job.tags) for job in done]


@case("apple pie")
def chained_items(s, a):
    p, q = {}, {}
    for word in words(s):
        p[word] = q[word] = Job()
        p[word].size = 1
    return [job.size for job in q.values()]


@case("apple pie", stops="put into a container")
def chained_items_of_lists(s, a):
    p, q = [["u"], ["v"]], [["u"], ["v"]]
    if "e" in s.gen("y", max_tokens=3):
        p.append(["w"])
        q.append(["w"])
    for word in words(s):
        p[0] = q[0] = [word]
        p[0].append("k")
    return q


@case("apple pie")
def repeated_object_in_an_arm(s, a):
    team = [Job()] * 2
    if "e" in s.gen("x", max_tokens=4):
        team.append(Job())
    team[0].size = 1
    return [job.size for job in team]


@case("apple pie")
def repeated_objects_added_in_a_loop(s, a):
    jobs = []
    for _ in words(s):
        jobs += [Job()] * 2
    for job in jobs:
        job.size += 1
    return [job.size for job in jobs]


@case("apple pie")
def one_object_for_each_key(s, a):
    table = dict.fromkeys("xy", Job())
    table[s.gen("k", max_tokens=2)] = Job()
    table["x"].size = 3
    return [job.size for job in table.values()]


@case("apple pie")
def an_object_and_a_list_of_it(s, a):
    def make():
        job = Job()
        return {"best": job, "all": [job]}

    state = make()
    state[s.gen("k", max_tokens=2)] = 1
    state["best"].size = 1
    return [job.size for job in state["all"]]


@case("apple pie")
def row_by_a_number_of_the_run(s, a):
    grid = [[Job()] * 2]
    grid[int(s.gen("i", regex="[0-0]"))][0].size = 1
    return [[job.size for job in row] for row in grid]


@case("apple pie")
def pairs_of_one_object(s, a):
    pairs = [pair(Job()) for _ in words(s)]
    for left, _ in pairs:
        left.size = 4
    return [right.size for _, right in pairs]


@case("apple pie")
def an_object_numbered_twice(s, a):
    def make():
        judge = Job()
        return [(1, judge), (2, judge)]

    items = make()
    if "e" in s.gen("x", max_tokens=4):
        items.append((3, Job()))
    items[0][1].size = 1
    return [job.size for _, job in items]


@case("apple pie")
def an_attribute_that_holds_one_object_twice(s, a):
    jobs = []
    for _ in words(s):
        jobs.append(Job(1, [Job()] * 2))
    for job in jobs:
        job.tags[0].size = 5
    return [[each.size for each in job.tags] for job in jobs]


@case("apple pie")
def a_repeated_row_in_an_arm(s, a):
    rows = [[]] * 2
    if "e" in s.gen("x", max_tokens=4):
        rows.append([])
    rows[0].append("k")
    return rows


@case("apple pie")
def repeated_rows_added_in_a_loop(s, a):
    rows = []
    for word in words(s):
        rows += [[word]] * 2
    for row in rows:
        row.append("k")
    return rows


@case("apple pie")
def a_repeated_row_appended_in_a_loop(s, a):
    rows = []
    for word in words(s):
        rows.append([[word]] * 2)
    for row in rows:
        row[0].append("k")
    return rows


@case("apple pie")
def a_list_that_grows_with_one_row_twice(s, a):
    rows = [*pair([a])]
    for word in words(s):
        rows.append([word])
    rows[0].append("k")
    return rows


@case("apple pie")
def a_row_numbered_twice(s, a):
    def make():
        row = [a]
        return [(row, 1), (row, 2)]

    rows = make()
    for word in words(s):
        rows.append(([word], 3))
    rows[0][0].append("k")
    return rows


@case("apple pie")
def an_item_held_by_an_expression(s, a):
    jobs = [Job()]
    [jobs[0], ("e" in s.gen("x", max_tokens=3) and jobs.append(Job()))][0].size = 1
    return [job.size for job in jobs]


@case("apple pie")
def an_item_that_an_arm_gives(s, a):
    jobs = []

    def made():
        job = Job()
        jobs.append(job)
        return job

    for _ in range(2):
        job = made() if "e" in s.gen("x", max_tokens=3) else None
        if job is not None:
            job.size = 1
    return [job.size for job in jobs]


@case("apple pie", stops="takes a list of the program's own")
def a_tool_changes_a_repeated_row(s, a):
    return appended([[s.gen("x", max_tokens=2)]] * 2)


@case("apple pie", stops="can't become one value")
def an_object_that_holds_itself(s, a):
    jobs = []
    for _ in words(s):
        job = Job()
        job.tags = job
        jobs.append(job)
    return [job.size for job in jobs]


@case("", "e", stops="can't become one value")
def a_list_held_twice_by_a_list_that_grows(s, a: str, b: str):
    s += a
    rows = [[a]] * 2
    for row in rows:
        if s.select("more", ["yes", "no"]) == "yes" and len(rows) < 4:
            rows.append([b])
        row.append(b)
    return rows, [row is rows[0] for row in rows]


@case("", "e", stops="can't become one value")
def a_list_with_a_name_held_by_a_list_that_grows(s, a: str, b: str):
    s += a
    first = [a]
    rows = [first, [b]]
    for row in rows:
        if s.select("more", ["yes", "no"]) == "yes" and len(rows) < 4:
            rows.append([b])
        first.append("x")
        row.append("y")
    return rows, first


@case(["k", "ll"])
def keys_that_read_what_the_items_change(s, words: list[str]):
    seen = []

    def kept(word):
        seen.append(word)
        return word

    last = max((kept(word) for word in words), key=lambda _: len(seen))
    best = max((s.gen(max_tokens=3, temperature=1.0) for _ in words), key=lambda text: len(text))
    return last, best, seen


@case(["a", "b", "c"], stops="code that it makes itself")
def iterators_of_loops_behind_a_break(s, words: list[str]):
    down, pairs, counted = list(words), list(words), list(words)
    seen = []
    for word in reversed(down):
        seen.append((word, eval("1")))
        down[:] = ["z"]
    for word, other in zip(words, pairs, strict=False):
        seen.append((word, other))
        pairs.clear()
    for index, word in enumerate(counted):
        seen.append((index, word))
        counted.pop()
    return seen, s.text()


@case(["a", "b", "c"], stops="code that it makes itself")
def an_iterator_of_two_lists_behind_a_break(s, words: list[str]):
    pairs = ["q", "r", "t"]
    seen = []
    for word, other in zip(words, pairs, strict=False):
        seen.append((word, other, eval("1")))
        pairs.clear()
    return seen, s.text()


@case(["a", "b", "c"], stops="while an iterator goes over it")
def a_used_up_iterator_beside_a_loop_that_changes_its_list(s, words: list[str]):
    xs = list(words)
    for word in reversed(xs):
        it = iter(xs)
        seen = list(it)
        xs[:] = ["z"]
        s += word
    return xs, seen, s.text()


@case("apple pie")
def records_ranked_by_what_the_model_says(s, a: str):
    rows = [{"name": n, "score": int(s.gen(n, regex="[0-9]"))} for n in "abc"]
    for i, r in enumerate(sorted(rows, key=lambda r: -r["score"])):
        r["rank"] = i + 1
    top = max(rows, key=lambda r: r["score"])
    top["best"] = True
    return rows, [r is top for r in rows]


@case("apple pie")
def the_emptiest_bin_gets_the_next_number(s, a: str):
    bins = [[], [], []]
    for v in (len(s.gen("a", max_tokens=3)), len(s.gen("b", max_tokens=2)), 5, 1):
        min(bins, key=sum).append(v)
    return bins


@case("apple pie")
def groups_in_the_order_of_their_sizes(s, a: str):
    groups = {w: [s.gen(max_tokens=2)] for w in a.split()}
    for k, v in sorted(groups.items(), key=lambda pair: pair[1][0]):
        v.append(k)
    return groups


@case("apple pie", [{"n": 1}, {"n": 2}])
def the_best_of_given_records_is_read(s, a: str, rows: list[dict[str, int]]):
    best = max(rows, key=lambda r: r["n"] if "e" in s.gen(max_tokens=2) else 0)
    return best["n"], sorted(rows, key=lambda r: -r["n"])[0]


@case("apple pie", [{"n": 1}, {"n": 2}], stops="may be a list or dict that the program or its caller holds")
def the_best_of_given_records_is_changed(s, a: str, rows: list[dict[str, int]]):
    best = max(rows, key=lambda r: r["n"] if "e" in s.gen(max_tokens=2) else 0)
    best["best"] = 1
    return rows


@tool(effect="pure")
def the_same(given: list[int]) -> list[int]:
    return given


@case("apple pie", stops="the method 'append' of the result of the_same()")
def a_pure_tool_gives_its_argument(s, a: str):
    xs = [1, len(s.gen(max_tokens=3))]
    ys = the_same(xs)
    ys.append(1)
    return xs, ys


@case("apple pie")
def an_answer_that_is_changed_before_it_is_written(s, a: str):
    schema = {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}
    xs = s.gen("xs", schema=schema, max_tokens=30)
    if "e" in s.gen("more", max_tokens=2):
        xs.append(7)
    return json.dumps({"xs": xs}), statistics.mean(xs)


ANSWER = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@case(["q", "r"])
def answers_are_tagged_one_after_the_other(s, words: list[str]):
    found = []
    for w in words:
        branch = s.copy()
        branch += w
        d = branch.gen("j", schema=ANSWER, max_tokens=40)
        d["tag"] = w
        found.append(d)
    return found


@case("q r")
def keys_that_are_missing(s, a: str):
    s += a
    d = s.gen("j", schema=ANSWER, max_tokens=40)
    need = {"a", "b"}
    missing = need - set(d)
    for key in sorted(missing):
        s += key
    return len(missing), "b" in missing, sorted(need & set(d)), {"x": 1} | {"y": s.gen(max_tokens=2)}


@case("q r")
def the_document_with_most_words_of_a_question(s, a: str):
    words = set(a.split())
    s += a
    best = sorted(["r s", "q t", "q r"], key=lambda d: len(words & set(d.split())))
    return best[-1], s.gen(max_tokens=2)


class Claim(BaseModel):
    text: str = Field(max_length=6)


class Claims(BaseModel):
    claims: list[Claim] = Field(max_length=3)


@case("q r")
def the_places_of_claims(s, a: str):
    s += a
    places = {}
    for i, claim in enumerate(s.gen("c", schema=Claims, max_tokens=80).claims):
        places[claim.text] = i
    return places


@case("q r")
def a_function_adds_to_the_list_it_is_mapped_over(s, a: str):
    xs = [a]
    if "e" in s.gen("p", max_tokens=2, temperature=1.0):
        xs.append("more")

    def again(text):
        if len(xs) < 5:
            xs.append("again")
        return text

    return "".join(map(again, iter(xs))), xs


@case("q r")
def raised_from_what_was_caught_with_a_finally(s, a: str):
    try:
        return [s.gen("x", max_tokens=2)][5]  # noqa: PLE0643
    except (KeyError, IndexError) as error:
        raise RuntimeError("no") from error
    finally:
        effect("finally")


@case("q r")
def branches_beside_an_empty_list(s, a: str):
    found = []
    if "e" in s.gen("g", max_tokens=2, temperature=1.0):
        for branch, _ in zip(s.fork(len(a)), found, strict=False):
            branch.append(a)
    return found


@case("q r", ["q", "e"])
def sorted_lists_of_unknown_length_grow(s, a: str, words: list[str]):
    s += a
    rest = list(words)
    ranked = sorted([rest, rest], key=len)
    most = max(rest, [w for w in words if w in s.gen("w", max_tokens=3)], key=len)
    if "e" in s.gen("p", max_tokens=2, temperature=1.0):
        rest.append("more")
    most.append("most")
    return ranked, [row is rest for row in ranked], most is rest, rest


@case("q r", ["q", "e"])
def tuples_of_unknown_length(s, a: str, words: list[str]):
    s += a
    found = tuple(s.gen("w", max_tokens=6).split())
    given = tuple(words)
    kept = ["first"]
    kept.extend(found)
    kept += given
    either = found if "e" in s.gen("p", max_tokens=2, temperature=1.0) else given
    kept.extend(either)
    kinds = [type(each).__name__ for each in (found[1:], found + given, either, 2 * found, max(found, given, key=len))]
    return kept, [*found, "last"], kinds, list(found), isinstance(found[:1], list), found == list(found)


@case("a b")
def a_set_display_adds_in_order(s, a: str):
    rows = [[word] for word in s.gen("w", max_tokens=6).split()]
    try:
        return len({*rows, effect("behind")})
    except TypeError as error:
        return str(error)


@case("a b", stops="the result of frozenset() beside a set")
def a_frozenset_beside_a_set(s, a: str):
    met = frozenset(a.split()) & set(s.gen("w", max_tokens=6).split())
    return isinstance(met, frozenset), len(met)
