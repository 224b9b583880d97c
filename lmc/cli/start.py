"""The entry point of the command: Ctrl-C ends it with exit code 130 and no traceback, from its first import on.

Imports nothing but ``interrupts`` before it handles the signal: the imports of the commands take most of the start.
"""

from __future__ import annotations

import signal
import sys

from lmc.cli.interrupts import SIGNALLED, end_at_once


def main() -> None:
    """Run the command line of this process and exit."""
    is_ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not is_ignored:
        signal.signal(signal.SIGINT, end_at_once)
    from lmc.cli.app import main as run

    try:
        if not is_ignored:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        sys.exit(SIGNALLED + signal.SIGINT)
    finally:
        if not is_ignored:
            signal.signal(signal.SIGINT, end_at_once)
