import pytest

from lmc.ir.engine.hosts import CANCELLATION, Cancellation, ProgramCancelled, as_async, cancelled_by


def test_what_is_under_way_is_cancelled_once_and_what_is_over_is_not():
    cancellation = Cancellation()
    calls: list[str] = []
    with cancellation.calling(lambda: calls.append("over")):
        pass
    with cancellation.calling(lambda: calls.append("under way")):
        cancellation.cancel()
        cancellation.cancel()
    assert calls == ["under way"]


def test_nothing_that_could_be_cancelled_begins_after_it_was():
    cancellation = Cancellation()
    cancellation.check()
    assert not cancellation.is_cancelled
    cancellation.cancel()
    assert cancellation.is_cancelled
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
    assert as_async(print) is None
