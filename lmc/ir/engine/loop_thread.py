"""An event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

_CLOSE_SECONDS = 3.0


class LoopThread:
    """An event loop in a daemon thread called ``name``: what runs in it can be waited for from anywhere else."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """True in the loop's own thread, which would wait for itself forever."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Cancel what runs, stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_end_all())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _end_all() -> None:
    """Cancel every other task of the loop, and wait until they are over (for a while, if they do not listen)."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
