"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

ProfileUse = Annotated[
    str | None,
    typer.Option(
        "--profile-use",
        "--profile",
        metavar="FILE",
        help="Plan by a profile that lmc run --profile-generate wrote. Short form: --profile.",
    ),
]
"""Of commands that write no profile."""

OrderSections = Annotated[
    bool | None,
    typer.Option(
        "--order-sections/--no-order-sections",
        help="Put movable sections of text (lmc.section) first: other prompts.",
        show_default=False,
    ),
]
