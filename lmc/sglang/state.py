"""The handle ``s`` of a program: a state of lmc's with the methods that sglang's has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, ClassVar

from lmc.frontend.language.core import META, Core
from lmc.frontend.language.messages import Appendable, is_text
from lmc.frontend.language.refusals import bad, described
from lmc.frontend.language.state import Block, Branches, RoleBlock, State
from lmc.ir.wording import with_article, with_count
from lmc.sglang.expressions import Gen, Image, RoleBegin, RoleEnd, Select, Video
from lmc.sglang.meta import TEXTS, meta_info
from lmc.sglang.options import Sampling, resolve

JOIN_MODES = ("gather_variable", "concate_and_append")


class SglState(State):
    """A context that grows: ``s += text``, ``s += sgl.gen(…)``, ``s.fork(n)``, ``s["name"]``.

    ``sampling`` is what ``run`` was given, ``ret_value`` what the function returned where this is the state of a
    program that another one called.
    """

    __slots__ = ("_sampling", "ret_value")
    instead: ClassVar[str] = "append a text: s['name'] is a variable, s.text() all there is so far"

    def __init__(self, core: Core, path: str, sampling: Sampling) -> None:
        super().__init__(core, path)
        self._sampling = sampling
        self.ret_value: Any = None

    def another(self, core: Core, path: str) -> SglState:
        return SglState(core, path, self._sampling)

    def append(self, content: Any) -> None:
        """Append text or an expression. Raises ``CaptureError`` for anything else."""
        kind = type(content)
        if kind is Gen:
            self._generate(content)
        elif kind is Select:
            self._choose(content)
        elif kind is RoleBegin:
            self.begin_role(content.role)
        elif kind is RoleEnd:
            self.end_role()
        elif kind in (Image, Video):
            raise self._no_media(content)
        else:
            super().append(content)

    # Messages

    def system(self, expr: Any = None) -> RoleBlock | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Append a system message, or without an expression: ``with s.system():`` opens one."""
        return super().system() if expr is None else self._role_of("system", expr)

    def user(self, expr: Any = None) -> RoleBlock | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Append a user message, or without an expression: ``with s.user():`` opens one."""
        return super().user() if expr is None else self._role_of("user", expr)

    def assistant(self, expr: Any = None) -> RoleBlock | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Append an assistant message, or without an expression: ``with s.assistant():`` opens one."""
        return super().assistant() if expr is None else self._role_of("assistant", expr)

    def messages(self) -> Any:
        """Roles and contents: ``[{"role": "user", "content": "…"}, …]``; empty without roles."""
        return self._core.session.message_list(self._core.context)

    # Variables

    def get_var(self, name: str) -> Any:
        """``s[name]``."""
        return self[name]

    def set_var(self, name: str, value: Any) -> None:
        """``s[name] = value``."""
        key = self._checked_name(name)
        if key is None:
            raise bad("a variable has no name", 'give one: s.set_var("name", value)')
        self._assign(key, value, None)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set_var(name, value)

    def get_meta_info(self, name: str) -> Any:
        """Log-probabilities of a ``gen(return_logprob=True)``, scores of a ``select``: see ``meta.py``."""
        if type(name) is str and name in self._core.variables and name not in self._core.metas:
            raise bad(
                f"{name!r} has no meta info inside the program",
                "ask for it, sgl.gen(name, return_logprob=True); what was used, the state that run gives knows",
            )
        return meta_info(self.meta(name), self._core.metas.get(TEXTS + name, False))

    def var_scope(self, name: str) -> VarScope:
        """``with s.var_scope("x"):`` – what is appended inside is the variable ``x``."""
        return VarScope(self, name)

    # Branches

    def fork(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, size: Any = 1, position_ids_offset: Any = None
    ) -> ProgramStateGroup:
        """``size`` branches that begin as copies of this state."""
        _check_offset(position_ids_offset)
        return ProgramStateGroup(list(super().fork(size)), self)

    def copy(self, position_ids_offset: Any = None) -> CopyBlock:  # pyright: ignore[reportIncompatibleMethodOverride]
        """``with s.copy() as branch:`` – one branch, joined at the end of the block."""
        _check_offset(position_ids_offset)
        return CopyBlock(self)

    # What is there at once, because every value is when it is read

    def sync(self) -> None:
        """Wait for what was appended. Values wait by themselves when they are read, so there is nothing to do."""

    def error(self) -> None:
        """Always None: an error ends its program."""

    def text_iter(self, var_name: str | None = None) -> Iterator[Any]:
        """The text, or a variable, in one piece. The state that ``run(stream=True)`` gives has them as they come."""
        return iter((self.text() if var_name is None else self[var_name],))

    def __repr__(self) -> str:
        return f"ProgramState({self.text()})"

    def _checked_name(self, name: Any) -> str | None:
        found = super()._checked_name(name)
        if found is not None and found.startswith(META):
            raise bad(f"the variable {found!r}: names that begin with {META!r} are lmc's own", "take another name")
        return found

    def _role_of(self, role: str, expr: Any) -> None:
        with RoleBlock(self, role):
            self.append(expr)

    def _generate(self, content: Gen) -> None:
        resolved = resolve(self._sampling, content.options)
        value = self.gen(content.name, **resolved.options)
        if resolved.count is not None:
            self.append(value[0])  # lmc appends none of several; sglang the first
        name = self._checked_name(content.name)
        if name is not None and resolved.texts:
            self._core.metas[TEXTS + name] = True

    def _choose(self, content: Select) -> None:
        temperature = content.temperature
        if type(temperature) not in (int, float) or temperature != 0:
            raise bad(
                f"the temperature of select is {described(temperature)}",
                "leave it out: choices are scored, not drawn",
            )
        self.select(content.name, content.choices, content.method)

    def _assign(self, name: str | None, value: Any, meta: Any | None) -> None:
        if name is not None:
            self._core.metas.pop(TEXTS + name, None)
        super()._assign(name, value, meta)

    def _no_media(self, content: Image | Video) -> Exception:
        if isinstance(content, Video):
            frames = content.num_frames
            if type(frames) is not int or frames < 1:
                return bad(f"num_frames is {described(frames)}", "give a whole number, at least 1")
        what = type(content).__name__.lower()
        return bad(
            f"the program appends the {what} {described(content.source)}, and lmc's targets take text only",
            f"describe the {what} in text, or leave it out",
        )


class VarScope(Block):
    """``with s.var_scope("x"):``."""

    __slots__ = ("_before", "_name", "_state")
    instead: ClassVar[str] = "open it and append to the state inside: with s.var_scope('x'): s += …"

    def __init__(self, state: SglState, name: Any) -> None:
        self._state = state
        self._name = name

    def __enter__(self) -> None:
        self._before = self._state.core.context

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            core = self._state.core
            self._state.set_var(self._name, core.session.added(core.context, self._before))


class CopyBlock(Block):
    """``with s.copy() as branch:``."""

    __slots__ = ("_group", "_state")
    instead: ClassVar[str] = "open it and append to the branch: with s.copy() as branch: branch += …"

    def __init__(self, state: SglState) -> None:
        self._state = state

    def __enter__(self) -> SglState:
        self._group = self._state.fork(1)
        return self._group[0]

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._group.join()


class ProgramStateGroup(Branches):
    """The result of ``s.fork(n)``: its branches by number, ``forks += …`` for all of them, and ``join``."""

    __slots__ = ("_base", "_source")

    def __init__(self, states: list[State], source: SglState) -> None:
        super().__init__(states)
        self._source = source
        self._base = source.another(source.core.copy(), source.path)

    @property
    def states(self) -> list[State]:
        """The branches."""
        return list(self)

    def join(self, mode: str = "gather_variable") -> None:
        """Bring back what the branches have.

        "gather_variable": each variable that is new in a branch becomes a list in the state, one value for each branch
        that has it. "concate_and_append": the texts that were appended to the branches are appended to the state, in
        order.
        """
        core = self._source.core
        if mode == "gather_variable":
            self._gather()
        elif mode == "concate_and_append":
            base = self._base.core.context
            for text in [core.session.added(state.core.context, base) for state in self]:
                self._source.append(text)
        else:
            raise bad(f"the mode of join is {described(mode)}", f"give one of {', '.join(map(repr, JOIN_MODES))}")

    def __iadd__(self, other: Any) -> ProgramStateGroup:
        """Append to every branch: an expression, the item of a list, or what a function of the number gives."""
        kind: Any = type(other)
        part_of: Callable[[int], Any]
        if is_text(other) or issubclass(kind, Appendable):
            part_of = lambda _: other  # noqa: E731
        elif kind in (list, tuple):
            if len(other) != len(self):
                raise bad(
                    f"{with_count(len(other), 'item is', 'items are')} appended to "
                    f"{with_count(len(self), 'branch', 'branches')}",
                    "give one item for each branch",
                )
            part_of = other.__getitem__
        elif callable(other):
            part_of = other
        else:
            raise bad(
                f"{with_article(kind.__name__)} is appended to branches",
                "append a text, an expression, a list of those, or a function of the branch's number",
            )
        for index, state in enumerate(self):
            state.append(part_of(index))
        return self

    def __repr__(self) -> str:
        return f"ProgramStateGroup({list(self)})"

    def _gather(self) -> None:
        known = set(self._source.core.variables)
        gathered: dict[str, list[Any]] = {}
        for state in self:
            for name in state.core.variables:
                if name not in known:
                    gathered.setdefault(name, []).append(state[name])
        for name, values in gathered.items():
            self._source.set_var(name, values)


def _check_offset(position_ids_offset: Any) -> None:
    if position_ids_offset is not None:
        raise bad(
            f"position_ids_offset is {described(position_ids_offset)}",
            "leave it out: positions follow from the text of each branch",
        )
