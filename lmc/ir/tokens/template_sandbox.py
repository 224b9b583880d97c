"""A jinja environment for chat templates of unknown origin: no access to Python, and a budget of work.

A template comes with a model folder, so it is untrusted. jinja's own sandbox keeps it away from Python's internals, but
lets it run forever or fill the memory. Here the source is bounded, and every step that can be repeated or that makes a
value larger takes from a budget of steps and seconds: rounds of loops, calls, filters, tests, operators, texts and
containers. The budget grows with the messages.
"""

from __future__ import annotations

import functools
import gc
import json
import re
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import BuiltinMethodType
from typing import Any, ClassVar, cast

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
import jinja2.sandbox
import jinja2.utils
import jinja2.visitor

STEPS = 400_000
"""Steps that any rendering may take: below half a second of work."""
STEPS_PER_MESSAGE = 2_000
STEPS_PER_SECOND = 500_000
"""A rendering may compute for as many seconds as its steps take at this rate: single steps may be slow."""
MAX_SOURCE = 1 << 16  # characters; the longest templates of models have about 20,000
MAX_NODES = 8_000
_TEXT_STEP = 64  # characters that are copied or compared in the time of a step
_PASSES = 100  # over all characters of the messages
_MAX_INTEGER = 100_000  # as an argument: what jinja allows for a range
_MAX_BITS = 256  # of a product or a power
_WIDE_FORMAT = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*(?:\*|[0-9]{4})|\{[^{}]*(?:\{|[0-9]{4})")

_ITERATED, _CHECKED = "lmc iterated", "lmc checked"  # filters that no template can name
_NOT_OFFERED = ("pprint", "random", "urlize", "wordwrap", "xmlattr")
_PASSED_BY_JINJA = (jinja2.runtime.Context, jinja2.nodes.EvalContext, jinja2.Environment)
_STRINGIFY = frozenset({"join", "string", "tojson"})
_COMPARING = ("groupby", "sort", "unique", "min", "max")  # filters that compare the items, in one step
_MAX_JSON_INDENT = 100
_UNSAFE_TEXT_METHODS = frozenset({"encode", "expandtabs", "maketrans", "translate"})


class TemplateLimitError(jinja2.TemplateError):
    """A template that takes more steps than its messages justify."""


class _Budget:
    """The steps left to one rendering, and the seconds left to it.

    Seconds are those in which its thread runs: a machine that is busy with other things refuses no template. Their
    clock is slow to read, so it is asked only when as much time has passed. Garbage collections, which take long in a
    process with many objects, take none of them.
    """

    __slots__ = ("_begun", "_end", "_look", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        seconds = left / STEPS_PER_SECOND
        self._look = time.monotonic() + seconds
        self._end = time.thread_time() + seconds
        self._begun = 0.0

    def collects(self, phase: str) -> None:
        """A garbage collection starts or stops in the thread of the rendering."""
        if phase == "start":
            self._begun = time.thread_time()
        else:
            self._end += time.thread_time() - self._begun

    def charge(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TemplateLimitError("it takes too many steps for these messages")
        now = time.monotonic()
        if now > self._look:
            rest = self._end - time.thread_time()
            if rest < 0:
                raise TemplateLimitError("it takes too long for these messages")
            self._look = now + rest

    def charge_text(self, length: int) -> None:
        self.charge(1 + length // _TEXT_STEP)

    def weigh(self, value: Any) -> None:
        """Charge all parts of ``value``, each as often as it occurs: the work of printing or comparing it."""
        waiting = [value]
        while waiting:
            part = waiting.pop()
            self.charge_text(len(part) if isinstance(part, str) else 0)
            if isinstance(part, Mapping):
                self.charge(len(part))
                waiting += part
                waiting += part.values()
            elif isinstance(part, list | tuple | set | frozenset):
                self.charge(len(part))
                waiting += part
            elif isinstance(part, jinja2.utils.Namespace):
                waiting.append(object.__getattribute__(part, "_Namespace__attrs"))


_BUDGET: ContextVar[_Budget] = ContextVar("lmc_template_budget")


def _collects(phase: str, _: dict[str, int]) -> None:
    budget = _BUDGET.get(None)
    if budget is not None:
        budget.collects(phase)


gc.callbacks.append(_collects)


@contextmanager
def budget_for(messages: Iterable[Mapping[str, Any]] = ()) -> Generator[None]:
    """Bound the work of compiling or rendering a template of messages and tools (JSON data) in this block."""
    steps = STEPS
    for message in messages:
        values, characters = _extent(message)
        # A plain message has two values, its role and its content.
        steps += STEPS_PER_MESSAGE * max(values // 2, 1) + _PASSES * (characters // _TEXT_STEP)
    token = _BUDGET.set(_Budget(steps))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def _extent(data: Any) -> tuple[int, int]:
    """Return how many values JSON data has, and how many characters of text."""
    if isinstance(data, str):
        return 1, len(data)
    if not isinstance(data, list | dict):
        return 1, 0
    parts = cast("Iterable[Any]", data.values() if isinstance(data, dict) else data)
    extents = [_extent(part) for part in parts]
    keys = sum(map(len, data)) if isinstance(data, dict) else 0
    return sum(values for values, _ in extents), keys + sum(characters for _, characters in extents)


class TemplateEnvironment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The sandbox. Compile and render inside ``budget_for``. Raises ``TemplateLimitError`` beyond the budget."""

    intercepted_binops: ClassVar[frozenset[str]] = frozenset({"+", "-", "*", "/", "//", "**", "%"})  # pyright: ignore[reportIncompatibleVariableOverride]  as jinja has its own

    def __init__(self, **options: Any) -> None:
        super().__init__(extensions=["jinja2.ext.loopcontrols", _GenerationTag], **options)
        del self.globals["lipsum"]
        for name in _NOT_OFFERED:
            del self.filters[name]
        for table in (self.filters, self.tests):
            for name, function in table.items():
                table[name] = self.bounded(function, stringifies=table is self.filters and name in _STRINGIFY)
        self.filters[_ITERATED] = _iterated
        self.filters[_CHECKED] = _checked

    @staticmethod
    def bounded(function: Callable[..., Any], *, stringifies: bool = False) -> Callable[..., Any]:
        """Return a filter or test that takes its work from the budget."""

        @functools.wraps(function)
        def charged(*args: Any, **kwargs: Any) -> Any:
            budget = _BUDGET.get()
            own = [value for value in args if not isinstance(value, _PASSED_BY_JINJA)]
            if own and isinstance(own[0], Iterable) and not hasattr(own[0], "__getitem__"):
                items = list(_iterated(own[0]))  # of a generator, which can be read only once
                args = tuple(items if value is own[0] else value for value in args)
                own[0] = items
            _charge_arguments(budget, function.__name__, own, kwargs, deep=stringifies)
            return _checked(function(*args, **kwargs))

        return charged

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """No method of a text whose result may be far larger than its arguments."""
        if isinstance(obj, str) and attr in _UNSAFE_TEXT_METHODS:
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """An operator whose result may be larger than its operands."""
        budget = _BUDGET.get()
        budget.charge(1)
        if any(isinstance(value, int) and value.bit_length() > _MAX_BITS for value in (left, right)):
            raise TemplateLimitError("it computes with too large numbers")
        if operator == "*":
            _charge_product(budget, left, right)
        elif operator == "**" and not _is_small(left, right, power=True):
            raise TemplateLimitError("it raises a number to too high a power")
        elif operator == "%" and isinstance(left, str):
            _charge_format(budget, left, right)
        return _checked(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """``str.format`` without widths that make long texts of short ones."""
        wrapper = super().wrap_str_format(value)
        if wrapper is None:
            return None

        def checked(*args: Any, **kwargs: Any) -> str:
            _charge_format(_BUDGET.get(), value.__self__, [args, kwargs])
            return wrapper(*args, **kwargs)

        return checked

    def call(self, __context: jinja2.runtime.Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of a method, a macro or a global."""
        budget = _BUDGET.get()
        subject = [__obj.__self__] if isinstance(__obj, BuiltinMethodType) else []
        if subject and __obj.__name__ == "join" and args:
            args = (list(_iterated(args[0])), *args[1:])
        _charge_arguments(budget, getattr(__obj, "__name__", ""), [*subject, *args], kwargs)
        return _checked(super().call(__context, __obj, *args, **kwargs))

    def _generate(self, source: jinja2.nodes.Template, *args: Any, **kwargs: Any) -> str:
        if sum(1 for _ in source.find_all(jinja2.nodes.Node)) > MAX_NODES:
            raise TemplateLimitError(f"it has more than {MAX_NODES:,} expressions and statements")
        return super()._generate(_Charged(self).visit(source), *args, **kwargs)

    def _parse(self, source: str, *args: Any, **kwargs: Any) -> jinja2.nodes.Template:
        if len(source) > MAX_SOURCE:
            raise TemplateLimitError(f"it has more than {MAX_SOURCE:,} characters")
        return super()._parse(source, *args, **kwargs)


def _charge_arguments(
    budget: _Budget, name: str, args: list[Any], kwargs: Mapping[str, Any], *, deep: bool = False
) -> None:
    """Charge what a call copies or reads of its arguments. Raises for integers that no prompt needs."""
    budget.charge(1)
    for value in (*args, *kwargs.values()):
        if isinstance(value, str):
            budget.charge_text(len(value))
        elif isinstance(value, int) and abs(value) > _MAX_INTEGER:
            raise TemplateLimitError(f"it passes {value} to {name}")
        elif deep:
            budget.weigh(value)
    texts = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    if name.endswith("replace") and len(texts) >= 3:  # text, old, new
        budget.charge_text((texts[0].count(texts[1]) if texts[1] else len(texts[0]) + 1) * len(texts[2]))
    elif name.endswith("join"):
        longest = max(map(len, texts), default=0)
        for value in args:
            if isinstance(value, Collection) and not isinstance(value, str):
                budget.weigh(value)
                budget.charge_text(len(value) * longest)
        if name != "join" and isinstance(args[0], str):
            budget.charge_text(len(args[0]) * longest)
    elif name.endswith(_COMPARING):
        longest = max(map(len, texts), default=0)  # the value that groupby puts in for a missing attribute
        budget.charge(sum(len(value) for value in args if isinstance(value, Collection)) * (8 + longest // _TEXT_STEP))
    elif name == "do_format":
        _charge_format(budget, str(args[0]), [args[1:], kwargs])
    elif name == "do_sum" and not all(isinstance(value, int | float | str) for value in (*args[1:], *kwargs.values())):
        raise TemplateLimitError("it sums what is no number")
    elif name == "do_indent":
        width = max((v if isinstance(v, int) else len(v) for v in (*args[1:], *kwargs.values())), default=4)
        budget.charge_text(len(str(args[0])) * width)


def to_json(value: Any, indent: int | str | None = None) -> str:
    """JSON as transformers writes it: jinja's own filter escapes for HTML. Indentation is charged as it is written."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    if (len(indent) if isinstance(indent, str) else indent) > _MAX_JSON_INDENT:
        raise TemplateLimitError("it indents JSON further than any prompt needs")
    chunks: list[str] = []
    for chunk in json.JSONEncoder(ensure_ascii=False, indent=indent).iterencode(value):
        _BUDGET.get().charge_text(len(chunk))
        chunks.append(chunk)
    return "".join(chunks)


def _charge_product(budget: _Budget, left: Any, right: Any) -> None:
    """Charge ``left * right`` before it is made."""
    for count, repeated in ((left, right), (right, left)):
        if isinstance(count, int) and isinstance(repeated, str):
            budget.charge_text(max(count, 0) * len(repeated))
        elif isinstance(count, int) and isinstance(repeated, list | tuple):
            budget.charge(max(count, 0) * len(repeated))
    if not _is_small(left, right, power=False):
        raise TemplateLimitError("it multiplies too large numbers")


def _is_small(left: Any, right: Any, *, power: bool) -> bool:
    if not isinstance(left, int) or not isinstance(right, int):
        return True
    bits = left.bit_length() * abs(right) if power else left.bit_length() + right.bit_length()
    return bits <= _MAX_BITS


def _charge_format(budget: _Budget, text: str, values: Any) -> None:
    """Charge every field as if it held all ``values``. Raises for widths that no prompt needs."""
    if _WIDE_FORMAT.search(text):
        raise TemplateLimitError("it formats to a width that no prompt needs")
    before = budget.left
    budget.weigh(values)
    budget.charge((before - budget.left) * max(text.count("%"), text.count("{")))


def _checked(value: Any) -> Any:
    """``value``, charged as it is made, printed or compared."""
    if isinstance(value, str):
        _BUDGET.get().charge_text(len(value))
    elif isinstance(value, list | tuple | dict):
        _BUDGET.get().weigh(value)
    return value


class _Rounds:
    """The items of a loop, known to have ``__len__``: each round is charged ``cost`` steps."""

    def __init__(self, items: Any, cost: int) -> None:
        self._items = items
        self._cost = cost

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return _charged_rounds(self._items, self._cost)


def _iterated(value: Any, cost: int = 1) -> Any:
    """``value`` for a loop whose body takes ``cost`` steps a round."""
    if hasattr(value, "__len__"):
        return _Rounds(value, cost)
    return _charged_rounds(value, cost) if isinstance(value, Iterable) else value


def _charged_rounds(items: Iterable[Any], cost: int) -> Iterator[Any]:
    budget = _BUDGET.get()
    for item in items:
        budget.charge(cost)
        yield item


def _cost_of(body: list[jinja2.nodes.Node]) -> int:
    """The steps of a round: its nodes, but for those of inner loops, which are charged there, and its constant text."""
    cost = 1
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        cost += 1
        if isinstance(node, jinja2.nodes.TemplateData):
            cost += len(node.data) // _TEXT_STEP
        if not isinstance(node, jinja2.nodes.For):
            waiting += node.iter_child_nodes()
    return cost


class _Charged(jinja2.visitor.NodeTransformer):
    """Puts what loops go over, prints, joins, slices, compares or builds through a filter that charges it."""

    def __init__(self, environment: TemplateEnvironment) -> None:
        self._environment = environment

    def visit_For(self, node: jinja2.nodes.For) -> jinja2.nodes.Node:  # noqa: N802 - the name that jinja looks up
        if node.recursive:
            raise TemplateLimitError("it has a recursive loop")
        cost = _cost_of([*node.body, *([node.test] if node.test else [])])
        self.generic_visit(node)
        node.iter = self._through(_ITERATED, node.iter, jinja2.nodes.Const(cost))
        return node

    def visit_Output(self, node: jinja2.nodes.Output) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        plain = jinja2.nodes.TemplateData
        node.nodes = [each if isinstance(each, plain) else self._through(_CHECKED, each) for each in node.nodes]
        return node

    def visit_Concat(self, node: jinja2.nodes.Concat) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.nodes = [self._through(_CHECKED, each) for each in node.nodes]
        return self._through(_CHECKED, node)

    def visit_Compare(self, node: jinja2.nodes.Compare) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = self._through(_CHECKED, node.expr)
        for operand in node.ops:
            operand.expr = self._through(_CHECKED, operand.expr)
        return node

    def visit_Getitem(self, node: jinja2.nodes.Getitem) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        sliced = isinstance(node.arg, jinja2.nodes.Slice) and node.ctx == "load"
        return self._through(_CHECKED, node) if sliced else node

    def _built(self, node: jinja2.nodes.Expr) -> jinja2.nodes.Node:
        self.generic_visit(node)
        return self._through(_CHECKED, node)

    visit_List = _built  # noqa: N815
    visit_Dict = _built  # noqa: N815

    def visit_Tuple(self, node: jinja2.nodes.Tuple) -> jinja2.nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._through(_CHECKED, node) if node.ctx == "load" else node

    def _through(self, name: str, node: Any, *arguments: jinja2.nodes.Expr) -> jinja2.nodes.Filter:
        made = jinja2.nodes.Filter(node, name, list(arguments), [], None, None, lineno=node.lineno)
        made.set_environment(self._environment)
        return made


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks what to train on; a prompt holds the text between them as it is."""

    tags: ClassVar = {"generation"}  # pyright: ignore[reportIncompatibleVariableOverride]  as jinja has its own

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)
