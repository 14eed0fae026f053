"""Failures of a background thread fail its test."""

import threading

import pytest

from tests.support.checks.waiting import wait_until
from tests.support.clients.background_thread import BackgroundThread


class Worker(BackgroundThread):
    """Raises `error`, if it is given one, or waits for `release`."""

    def __init__(
        self, *, error: BaseException | None = None, release: threading.Event | None = None
    ) -> None:
        super().__init__("worker", "work()", timeout=0.05)
        self._error = error
        self._release = self.stopping if release is None else release

    def run(self) -> None:
        if self._error is not None:
            raise self._error
        self._release.wait()


def test_background_thread_ends_with_the_block() -> None:
    with Worker() as worker:
        assert not worker.ended()
        worker.check()
    assert worker.ended()
    worker.check()


@pytest.mark.parametrize("error", [OSError("no route"), SystemExit(2)])
def test_unchecked_failure_is_raised_at_the_end_of_the_block(error: BaseException) -> None:
    with (
        pytest.raises(AssertionError, match="thread worker ended: ") as raised,
        Worker(error=error),
    ):
        pass
    assert raised.value.__cause__ is error


def test_checked_failure_is_not_raised_again() -> None:
    with Worker(error=OSError("no route")) as worker:
        wait_until(lambda: worker.failure, "the thread has failed")
        with pytest.raises(AssertionError, match="no route"):
            worker.check()


def test_thread_that_does_not_end_is_reported() -> None:
    release = threading.Event()
    message = r"thread worker: work\(\) does not return within 0.05 s"
    with pytest.raises(AssertionError, match=message), Worker(release=release) as worker:
        pass
    release.set()
    assert worker.ended(within=30)
