"""How methods become programs of the corpus."""

from collections.abc import Callable
from typing import Any

from tests.frontend.corpus.cases import CASES, Case


def on(make: Callable[[], Any], method: str = "run", *args: Any, stops: str | None = None, name: str = "") -> None:
    """Put a method of an object, which is made anew for each run, into the corpus."""
    holder = make()
    kind: Any = type(holder)
    names = [entry for base in kind.__mro__ for entry in vars(base).get("__slots__", ())]

    def state() -> Any:
        own = {key: value for key, value in getattr(holder, "__dict__", {}).items() if key != "reader"}
        return {**own, **{entry: getattr(holder, entry, None) for entry in names}}

    def again() -> tuple[Any, ...]:
        fresh = make()
        if hasattr(holder, "__dict__"):
            holder.__dict__.clear()
            holder.__dict__.update(fresh.__dict__)
        for entry in names:
            object.__setattr__(holder, entry, getattr(fresh, entry))
        return args or ("w",)

    label = name or f"{kind.__name__}_{method}"
    assert label not in CASES
    CASES[label] = Case(getattr(holder, method), again, stops, watch=state)
