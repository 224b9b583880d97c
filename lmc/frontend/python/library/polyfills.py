"""Functions of Python's own that call functions of the program, or take items one by one, as plain Python.

The capture inlines them where it has to: a callback may use a state, and an iterator is advanced when its items are
asked for. They do what the functions of their names do, in the same order.
"""

import bisect
from contextlib import contextmanager

# The capture reads the source of these functions; what types their arguments have is the program's matter.
# pyright: basic
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, ANN204, D101, D103, SIM105, SIM113, UP028


def map_(function, iterable):
    for item in iterable:
        yield function(item)


def map_rows(function, *iterables):
    for items in zip(*iterables, strict=False):
        yield function(*items)


def filter_(function, iterable):
    for item in iterable:
        if item if function is None else function(item):
            yield item


def filterfalse(function, iterable):
    for item in iterable:
        if not (item if function is None else function(item)):
            yield item


def enumerate_(iterable, start=0):
    number = start
    for item in iterable:
        yield number, item
        number += 1


def zip_(first, *rest):
    others = [iter(each) for each in rest]
    for item in first:
        row = [item]
        for other in others:
            try:
                row.append(next(other))
            except StopIteration:
                return
        yield tuple(row)


def from_keys(iterable, value=None, /):
    made = {}
    for key in iterable:
        made[key] = value
    return made


def starmap(function, iterable):
    for items in iterable:
        yield function(*items)


def takewhile(predicate, iterable):
    for item in iterable:
        if not predicate(item):
            break
        yield item


def dropwhile(predicate, iterable):
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def accumulate(iterable, func=None, *, initial=None):
    begun = initial is not None
    total = initial
    if begun:
        yield total
    for item in iterable:
        if not begun:
            total = item
            begun = True
        elif func is None:
            total = total + item
        else:
            total = func(total, item)
        yield total


def reduce(function, iterable, *initial):
    begun = len(initial) > 0
    total = initial[0] if begun else None
    for item in iterable:
        total = function(total, item) if begun else item
        begun = True
    if not begun:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


def chain(*iterables):
    for iterable in iterables:
        for item in iterable:
            yield item


def from_iterable(iterables):
    for iterable in iterables:
        for item in iterable:
            yield item


def islice(iterable, stop):
    if stop > 0:
        number = 0
        for item in iterable:
            yield item
            number += 1
            if number == stop:
                break


def islice_from(iterable, start, stop=None, step=1):
    position = 0
    following = 0 if start is None else start
    last = None if stop is None else max(stop, following)
    if last is None or last > 0:
        for item in iterable:
            if position == following and (stop is None or following < stop):
                yield item
                following += step
            position += 1
            if last is not None and position >= last:
                break


def pairwise(iterable):
    begun = False
    before = None
    for item in iterable:
        if begun:
            yield before, item
        before = item
        begun = True


def compress(data, selectors):
    for item, selected in zip(data, selectors, strict=False):
        if selected:
            yield item


def groupby(iterable, key=None):
    iterator = iter(iterable)
    value = found = None
    ended = False
    number = 0

    def advance():
        nonlocal value, found, ended
        try:
            value = next(iterator)
        except StopIteration:
            ended = True
        else:
            found = value if key is None else key(value)

    def members(group, target):
        while group == number and not ended and found in (target,):
            yield value
            advance()

    advance()
    while not ended:
        target = found
        yield target, members(number, target)
        while not ended and found in (target,):
            advance()
        number += 1


def cycle(iterable):
    items = []
    for item in iterable:
        yield item
        items.append(item)
    while items:
        for item in items:
            yield item


def repeat(object, times):
    for _ in range(times):
        yield object


def first(iterable):
    for item in iterable:
        return item
    raise StopIteration


def first_or_default(iterable, default):
    for item in iterable:
        return item
    return default


def endless(iterator):
    while True:
        yield next(iterator)


def extreme(name, better, iterable, key, *default):
    begun = False
    best = highest = None
    for item in iterable:
        value = key(item)
        if not begun or better(value, highest):
            begun, best, highest = True, item, value
    if begun:
        return best
    if default:
        return default[0]
    raise ValueError(name + "() arg is an empty sequence")


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def insort_left(a, x):
    a.insert(bisect.bisect_left(a, x), x)


def insort_right(a, x):
    a.insert(bisect.bisect_right(a, x), x)


@contextmanager
def suppress(*exceptions):
    try:
        yield
    except exceptions:
        pass


class Count:
    def __init__(self, start=0, step=1):
        self.value = start
        self.step = step

    def __iter__(self):
        return self

    def __next__(self):
        value = self.value
        self.value = value + self.step
        return value
