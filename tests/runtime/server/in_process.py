"""A server in a thread of the test, over an engine that the test can look into."""

import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from lmc.ir.engine.protocol import Engine
from lmc.runtime.server.app import ServerApp
from lmc.runtime.server.model import Model
from lmc.runtime.server.running import bound
from lmc.runtime.server.settings import Settings


@dataclass
class Inside:
    """The parts of a server that runs in this process."""

    port: int
    model: Model
    engine: Any

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running(engine: Engine, name: str = "model", max_waiting: int = 512, **settings: Any) -> Generator[Inside]:
    """Serve an engine until the block ends; ``settings`` are further ones."""
    with closing(bound("127.0.0.1", 0)) as listening:
        model = Model(engine, name, max_waiting)
        app = ServerApp(model, Settings(name, **settings))
        server = uvicorn.Server(uvicorn.Config(app.gate, log_config=None, lifespan="off"))
        thread = threading.Thread(target=lambda: server.run(sockets=[listening]))
        thread.start()
        while not server.started:
            time.sleep(0.001)
        try:
            yield Inside(listening.getsockname()[1], model, engine)
        finally:
            server.should_exit = True
            thread.join()
