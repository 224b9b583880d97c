from collections.abc import Generator

import anthropic
import openai
import pytest

from tests.runtime.server.servers import Served, anthropic_client, close_clients, openai_client, served


@pytest.fixture(autouse=True)
def _closed_clients() -> Generator[None]:
    yield
    close_clients()


@pytest.fixture(scope="session")
def toy() -> Generator[Served]:
    """The toy engine over HTTP."""
    with served("--model", "toy") as server:
        yield server


@pytest.fixture(scope="session")
def builtin() -> Generator[Served]:
    """The built-in model over HTTP, bit for bit the same in any batch."""
    with served("--model", "builtin", "--deterministic") as server:
        yield server


@pytest.fixture(params=["toy", "builtin"])
def server(request: pytest.FixtureRequest) -> Served:
    """Both of them."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def client(server: Served) -> openai.OpenAI:
    return openai_client(server.url)


@pytest.fixture
def claude(server: Served) -> anthropic.Anthropic:
    return anthropic_client(server.url)
