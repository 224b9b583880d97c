from collections.abc import Generator

import pytest

from tests.runtime.remote.clients import close_sdks


@pytest.fixture(autouse=True, scope="session")
def _closed_clients() -> Generator[None]:
    yield
    close_sdks()
