"""The handle ``s`` of a program: mutable, over an immutable context.

It is that of eager runs and of continuations after a break: what is done is done at once, by its session. A capture
interprets calls of its methods (``lmc.frontend.handles``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, Unpack, overload

from lmc.frontend.language import sampling
from lmc.frontend.language.core import Core
from lmc.frontend.language.messages import MISSING, Generation, Message, Section, Selection, Several, is_text, no_text
from lmc.frontend.language.misuse import BranchesMisuse, Handle, StateMisuse
from lmc.frontend.language.refusals import bad, described, near
from lmc.frontend.language.sampling import SamplingOptions
from lmc.frontend.language.sections import Sections, sections_of, with_sections
from lmc.frontend.source.locations import user_location
from lmc.ir.builtins.checks import checked_branch_count
from lmc.ir.dialects.core_ops import SELECT_METHODS
from lmc.ir.errors import CaptureError
from lmc.ir.wording import with_article, with_count

T = TypeVar("T")


class UnknownVariableError(CaptureError, KeyError):
    """A variable that the state does not have. Also a ``KeyError``."""


class State(StateMisuse, Handle):
    """A context that grows: ``s += text``, ``s.gen(…)``, ``s.select(…)``, ``s.fork(n)``, ``s["name"]``."""

    __slots__ = ("_core", "_path")

    def __init__(self, core: Core, path: str) -> None:
        self._core = core
        self._path = path

    def __iadd__(self, other: Any) -> State:
        self.append(other)
        return self

    def append(self, content: Any) -> None:
        """Append text, a message, a generation or a choice. Raises ``CaptureError`` for anything else."""
        kind = type(content)
        self._core.session.blocks.check()
        if kind is Several:
            for part in with_sections(content.parts):
                self.append(part)
        elif kind is Section:
            self.append(content.text)
        elif kind is Sections:
            self._append_sections(content)
        elif kind is Message:
            self._append_message(content)
        elif kind is Generation:
            self.gen(content.name, **content.options)
        elif kind is Selection:
            self.select(content.name, content.choices, content.method)
        else:
            self._append_text(content)

    @overload
    def system(self) -> RoleBlock: ...
    @overload
    def system(self, content: Any) -> None: ...
    def system(self, content: Any = MISSING) -> RoleBlock | None:
        """Append a system message, or without content: ``with s.system():`` opens one."""
        return self._role("system", content)

    @overload
    def user(self) -> RoleBlock: ...
    @overload
    def user(self, content: Any) -> None: ...
    def user(self, content: Any = MISSING) -> RoleBlock | None:
        """Append a user message, or without content: ``with s.user():`` opens one."""
        return self._role("user", content)

    @overload
    def assistant(self) -> RoleBlock: ...
    @overload
    def assistant(self, content: Any) -> None: ...
    def assistant(self, content: Any = MISSING) -> RoleBlock | None:
        """Append an assistant message, or without content: ``with s.assistant():`` opens one."""
        return self._role("assistant", content)

    @overload
    def gen(
        self, name: str | None = None, *, n: int, schema: type[T], **options: Unpack[SamplingOptions]
    ) -> list[T]: ...
    @overload
    def gen(
        self, name: str | None = None, *, n: int, dtype: type[T], **options: Unpack[SamplingOptions]
    ) -> list[T]: ...
    @overload
    def gen(self, name: str | None = None, *, n: int, **options: Any) -> list[Any]: ...
    @overload
    def gen(self, name: str | None = None, *, parse: Literal[False], **options: Any) -> str: ...
    @overload
    def gen(self, name: str | None = None, *, schema: type[T], **options: Unpack[SamplingOptions]) -> T: ...
    @overload
    def gen(self, name: str | None = None, *, schema: Any, **options: Unpack[SamplingOptions]) -> Any: ...
    @overload
    def gen(self, name: str | None = None, *, dtype: type[T], **options: Unpack[SamplingOptions]) -> T: ...
    @overload
    def gen(
        self, name: str | None = None, *, choices: Sequence[str] | None = None, **options: Unpack[SamplingOptions]
    ) -> str: ...
    def gen(self, name: str | None = None, **options: Any) -> Any:
        """Generate; append and return the text (with ``n=k``: return k texts, append nothing).

        Options: ``max_tokens=256``, ``min_tokens``, ``stop``, ``stop_token_ids``, ``temperature=0``, ``top_p``,
        ``top_k``, ``min_p``, ``frequency_penalty``, ``presence_penalty``, ``repetition_penalty``, ``logit_bias`` (a
        dict of token ids), ``seed``, ``n``, ``logprobs``. What they do is said at
        ``lmc.ir.engine.protocol.SamplingParams``.

        At most one of these says what the text may be, and what the value is: ``regex`` (the whole text matches),
        ``choices`` (a list of texts), ``grammar`` (Lark's syntax): a text; ``dtype`` (``int``, ``float``, ``bool``,
        ``str``): a value of that type; ``schema``: an instance, for a pydantic class or another type that pydantic
        knows, and parsed JSON for a JSON schema (a dict). ``whitespace="flexible"`` lets JSON have spaces and
        indented lines, as ``json.dumps(indent=4)`` writes them down to ten levels. With ``parse=False`` the value of a
        ``schema`` or a ``dtype`` is the text as it was generated.

        ``jump_forward`` says how forced text is computed: "exact" (drafted, and kept where it is what would
        have been said), "canonical" (taken as it is) or "off"; see ``lmc.ir.engine.protocol.Request``.

        Raises ``CaptureError`` for an option that makes no sense, ``ConstraintError`` for a constraint that is refused
        and for a text that is cut off before it is one.
        """
        core = self._core
        name = self._checked_name(name)
        checked, count = sampling.options(options)
        op_id = core.session.allocate(self._path, name or "gen")
        if count is not None:
            value, meta = core.session.sample(core.context, op_id, name, checked, count)
        else:
            core.context, value, meta = core.session.generate(core.context, op_id, name, checked)
            self._answered(value)
        self._assign(name, value, meta)
        return value

    def select(self, name: str | None, choices: Sequence[str], method: str | None = None) -> str:
        """Append and return the likeliest of ``choices``.

        ``method``: ``token_length_normalized`` (mean log-probability per token; the default), ``greedy_token`` (as
        greedy decoding among the choices would go) or ``unconditional_likelihood_normalized`` (log-probability minus
        that without the context). On a hosted model that scores no texts, a select without a method lets the model
        write its choice, and one with a method is an error.
        """
        core = self._core
        name = self._checked_name(name)
        if method is not None and method not in SELECT_METHODS:
            raise bad(f"unknown select method {described(method)}", near(str(method), SELECT_METHODS))
        checked = core.session.choices(choices)
        op_id = core.session.allocate(self._path, name or "select")
        core.context, value, meta = core.session.select(core.context, op_id, name, checked, method)
        self._answered(value)
        self._assign(name, value, meta)
        return value

    def fork(self, n: int = 1) -> Branches:
        """``n`` branches that begin as copies of this state and grow apart from it and from each other; none for 0.

        Raises ``CaptureError`` where ``n`` is no whole number, or below 0.
        """
        core = self._core
        count = checked_branch_count(n, user_location())
        path = core.session.allocate(self._path, "fork")
        branches = [self.another(core.copy(), f"{path}/{index}") for index in range(count)]
        return Branches(branches)

    def copy(self) -> State:
        """A branch that begins as a copy of this state."""
        core = self._core
        return self.another(core.copy(), core.session.allocate(self._path, "copy"))

    def __getitem__(self, name: str) -> Any:
        variables = self._core.variables
        if type(name) is not str or name not in variables:
            raise self._unknown(name)
        return variables[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The variable ``name``, or ``default`` where it is not set."""
        return self._core.variables.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._core.variables

    __iter__ = None  # a state is no sequence, though it can be subscripted

    def meta(self, name: str) -> Any:
        """Return the scores of a ``select`` or the log-probabilities of a ``gen(logprobs=…)``: a dict of lists by name.

        With ``n=k`` it is a list of ``k`` such dicts. Raises ``CaptureError`` for variables without meta data.
        """
        if type(name) is not str or name not in self._core.variables:
            raise self._unknown(name)
        if name not in self._core.metas:
            raise bad(f"{name!r} has no meta data", "ask for it: s.gen(name, logprobs=…)")
        return self._core.metas[name]

    def text(self) -> str:
        """The text of the whole context, the chat template's own marks included."""
        self._core.session.blocks.check()
        return self._core.session.transcript(self._core.context)

    def __repr__(self) -> str:
        return f"<state {self._path}: {', '.join(self._core.variables) or 'no variables'}>"

    def another(self, core: Core, path: str) -> State:
        """A handle like this one on ``core``."""
        return State(core, path)

    def continued(self, name: str) -> State:
        """Another handle on the same context, whose ids begin with this one's path and ``name``."""
        return self.another(self._core, self._core.session.allocate(self._path, name))

    @property
    def path(self) -> str:
        """The branch: where the ids of this handle begin."""
        return self._path

    @property
    def core(self) -> Core:
        """The state shared by all handles on the same context."""
        return self._core

    def _role(self, role: str, content: Any) -> RoleBlock | None:
        self._core.session.blocks.check()
        if content is MISSING:
            block = RoleBlock(self, role)
            self._core.session.blocks.made(block, role)
            return block
        self._append_message(Message(role, content))
        return None

    def _append_message(self, message: Message) -> None:
        core = self._core
        content = message.content
        kind = type(content)
        sections = sections_of(content)
        if sections is not None:
            self._open_role(message.role)
            core.context = core.session.extend_sections(core.context, message.role, sections.kinds, sections.texts)
            return
        if kind in (Several, Generation, Selection):
            with RoleBlock(self, message.role):
                self.append(content)
            return
        if not is_text(content):
            raise no_text(type(content), f"{with_article(message.role)} message holds")
        text = core.session.as_text(content)
        if message.role == "assistant" and core.answer is not None:
            self._append_assistant(text)
            return
        self._open_role(message.role)
        core.context = core.session.extend(core.context, message.role, text)

    def _append_assistant(self, text: Any) -> None:
        """Append an assistant message behind an answer; close the turn of the answer where the message repeats it.

        ``s += lmc.assistant(s.gen("x"))`` generates before the message is appended.
        """
        core = self._core
        answer = core.answer
        self._open_role("assistant")
        core.context = core.session.extend_or_end(core.context, text, answer)

    def _append_text(self, content: Any) -> None:
        core = self._core
        if not is_text(content):
            raise no_text(type(content), "the program appends")
        if type(content) is str and not content:
            return
        core.context = core.session.extend(core.context, None, core.session.as_text(content))
        self._appended((content,))

    def _append_sections(self, sections: Sections) -> None:
        core = self._core
        core.context = core.session.extend_sections(core.context, None, sections.kinds, sections.texts)
        self._appended(sections.texts)

    def _appended(self, texts: Sequence[Any]) -> None:
        """Note that bare text was appended; an empty one changes nothing."""
        core = self._core
        if any(texts):
            core.answer = None
            core.bare = core.bare or not core.chat

    def _answered(self, value: Any) -> None:
        """Note that ``value`` was generated into this context."""
        core = self._core
        core.bare = core.bare or not core.chat
        core.answer = value if core.chat and core.role in (None, "assistant") else None

    def _open_role(self, role: str) -> None:
        core = self._core
        if core.bare:
            raise bad(
                f"{with_article(role)} message can't follow bare text",
                "put the text into a role message (lmc.system, lmc.user), or use no roles at all",
            )
        core.chat = True
        core.answer = core.role = None

    def begin_role(self, role: str) -> None:
        """Open a turn of ``role``; see ``RoleBlock``."""
        self._open_role(role)
        self._core.role = role
        self._core.context = self._core.session.begin(self._core.context, role)

    def end_role(self) -> None:
        """Close the open turn."""
        self._core.answer = self._core.role = None
        self._core.context = self._core.session.end(self._core.context)

    def _assign(self, name: str | None, value: Any, meta: Any | None) -> None:
        if name is None:
            return
        self._core.variables[name] = value
        if meta is None:
            self._core.metas.pop(name, None)
        else:
            self._core.metas[name] = meta

    def _checked_name(self, name: Any) -> str | None:
        if name is not None and (type(name) is not str or not name):
            raise bad(
                f"the name {described(name)}", "name a variable with a text that is not empty, or leave the name out"
            )
        return name

    def _unknown(self, name: Any) -> UnknownVariableError:
        found = bad(f"the state has no variable {name!r}", near(str(name), list(self._core.variables)))
        return UnknownVariableError(found.cause, remedy=found.remedy, location=found.location)


class Block(Handle, ABC):
    """A block that ``with`` opens on a state."""

    __slots__ = ()

    @abstractmethod
    def __enter__(self) -> Any: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None: ...


class RoleBlock(Block):
    """``with s.user():`` – what is appended inside belongs to one message."""

    __slots__ = ("__weakref__", "_role", "_state")
    instead = "open the message and append to the state inside: with s.user(): s += …"

    def __init__(self, state: State, role: str) -> None:
        self._state = state
        self._role = role

    def __enter__(self) -> State:
        self._state.core.session.blocks.opened(self)
        self._state.begin_role(self._role)
        return self._state

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._state.end_role()


class Branches(BranchesMisuse, Handle, Sequence[State]):
    """The result of ``s.fork(n)``: branches in order; ``branches["name"]`` is the list of that variable's values."""

    __slots__ = ("_states",)

    def __init__(self, states: Sequence[State]) -> None:
        self._states = list(states)

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        return iter(self._states)

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return [state[key] for state in self._states]
        if type(key) is slice:
            return self._states[key]
        if type(key) is not int:
            raise bad(f"branches[{key!r}]", "index branches by number, or by the name of a variable")
        if not -len(self._states) <= key < len(self._states):
            raise IndexError(f"the fork has {with_count(len(self._states), 'branch', 'branches')}, none at {key}")
        return self._states[key]

    def __setitem__(self, key: int, state: State) -> None:
        """``branches[i] += …`` puts back the branch that it took; nothing else can be put in."""
        if self._states[key] is not state:
            raise bad("a branch can't be replaced", "change the branch itself: branches[i] += …")

    def __repr__(self) -> str:
        return f"<{with_count(len(self._states), 'branch', 'branches')}>"
