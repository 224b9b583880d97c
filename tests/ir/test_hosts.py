import pytest

from lmc.ir.hosts import CANCELLATION, AsyncHost, Cancellation, ProgramCancelled, cancelled_by


def test_what_is_under_way_is_cancelled_once_and_what_is_over_is_not():
    cancellation = Cancellation()
    calls: list[str] = []
    with cancellation.calling(lambda: calls.append("over")):
        pass
    with cancellation.calling(lambda: calls.append("under way")):
        cancellation.cancel()
        cancellation.cancel()
    assert calls == ["under way"]


def test_nothing_begins_after_it_was_cancelled():
    cancellation = Cancellation()
    cancellation.check()
    cancellation.cancel()
    with pytest.raises(ProgramCancelled):
        cancellation.check()
    with pytest.raises(ProgramCancelled), cancellation.calling(lambda: None):
        raise AssertionError
    assert not issubclass(ProgramCancelled, Exception)


def test_it_holds_for_a_block():
    cancellation = Cancellation()
    with cancelled_by(cancellation):
        assert CANCELLATION.get() is cancellation
    assert CANCELLATION.get() is None


def test_a_plain_function_is_no_async_host():
    assert not isinstance(print, AsyncHost)
