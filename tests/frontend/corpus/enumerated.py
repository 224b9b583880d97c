"""Lists that change while the program enumerates them."""

from tests.frontend.corpus.cases import case


@case("apple pie")
def items_replaced_while_enumerated(s, a: str):
    xs = ["a", "b", "c"]
    for i, x in enumerate(xs):
        xs[i] = x + s.gen("x", max_tokens=2)
    return xs


@case("apple pie")
def items_of_the_run_replaced_while_enumerated(s, a: str):
    xs = a.split()
    for i, x in enumerate(xs):
        xs[i] = x + s.gen("x", max_tokens=2)
    return xs


@case("apple pie")
def some_items_replaced_while_enumerated(s, a: str):
    xs = s.gen("q", max_tokens=10).split()
    for i, x in enumerate(xs):
        if "e" in x:
            xs[i] = s.gen("x", max_tokens=2)
    return xs


@case("apple pie")
def cells_of_a_grid_replaced(s, a: str):
    grid = [["a", "b"], ["c", "d"]]
    for r, row in enumerate(grid):
        for c, cell in enumerate(row):
            grid[r][c] = cell + s.gen("x", max_tokens=2)
    for row in grid:
        for c, cell in enumerate(row):
            row[c] = cell.upper()
    return grid


@case("apple pie")
def other_items_replaced_while_enumerated(s, a: str):
    xs = ["a", "b", "c"]
    for i, x in enumerate(xs):
        xs[-1] = x + s.gen("x", max_tokens=2)
        if i > 0:
            xs[i - 1] += x
    return xs
