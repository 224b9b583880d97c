"""A process that forks while two threads of it run programs, as a script: ``fork_programs.py TARGET CHILDREN``."""

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import lmc


@lmc.tool(effect="reads")
async def fetch(q: str) -> str:
    return q


@lmc.jit
def program(s: lmc.State, q: str) -> str:
    s += lmc.user(fetch(q))
    return s.gen("x", max_tokens=4)


def ended(pid: int, seconds: float = 15.0) -> int | str:
    """The exit code of a child; "hung" where it does not end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def child(number: int, target: str) -> int:
    """Use a program, and return 0 where it ran, 3 where it was refused."""
    uses: tuple[Callable[[], object], ...] = (
        lambda: program("a"),
        lambda: program.on(target)("a"),
        lambda: program.on("toy").compile(),
        lambda: list(program.on(target).stream("a")),
    )
    lmc.close()
    try:
        uses[number % len(uses)]()
    except lmc.EngineError as error:
        return 3 if "forked" in error.cause else 4
    return 0


def main(target: str, children: int) -> None:
    stopped = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:
            failed.append(error)

    def run() -> None:
        number = 0
        while not stopped.is_set():
            number += 1
            tokens = 4096 + 64 * (number % 3) if target == "builtin" else None
            program.on(target, kv_tokens=tokens).batch([{"q": f"{number} {row}"} for row in range(4)])

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    codes: Counter[int | str] = Counter()
    draws = random.Random(0)
    for number in range(children):
        time.sleep(draws.random() * (0.1 if number else 0.3))
        pid = os.fork()
        if pid == 0:
            code = child(number, target)
            if number % 2:
                sys.exit(code)
            os._exit(code)
        codes[ended(pid)] += 1
    stopped.set()
    for thread in threads:
        thread.join()
    print(sorted(codes.items(), key=str), failed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
