import pytest

from kclient.admin.admin_core import ADMIN_CONFIG, AdminCore
from kclient.admin.requester import Requester
from kclient.common.errors import ClosedError, KafkaTimeoutError
from kclient.common.waiting import ConditionWait, NetworkWait, Steps
from tests.support.virtual.virtual_home import VirtualHome

TIMEOUT_MS = 1_000.0


class Calls:
    """A core whose calls end when the test says so."""

    def __init__(self) -> None:
        home = VirtualHome()
        self.clock = home.clock
        self.core = AdminCore(
            ADMIN_CONFIG.parse({"bootstrap_servers": "10.0.0.1:9092"}), home.runtime
        )
        self.deadlines: list[float] = []

    def start(self) -> Steps[str]:
        return self.core.call(self._steps, timeout=TIMEOUT_MS / 1000.0)

    def _steps(self, requester: Requester, *, timeout: float) -> Steps[str]:
        requester.limit(timeout)
        return self._wait(requester.deadline_ms)

    def _wait(self, deadline_ms: float) -> Steps[str]:
        self.deadlines.append(deadline_ms)
        yield NetworkWait(self, deadline_ms)
        return "done"

    def poll(self, _timeout_ms: float, _now_ms: float, /) -> None:
        raise AssertionError("the test performs no waits")


def result(steps: Steps[str]) -> str:
    with pytest.raises(StopIteration) as returned:
        next(steps)
    return str(returned.value.value)


def test_second_call_waits_until_the_first_has_ended() -> None:
    calls = Calls()
    first, second = calls.start(), calls.start()
    assert isinstance(next(first), NetworkWait)
    wait = next(second)
    assert isinstance(wait, ConditionWait)
    assert not wait.is_met()
    assert result(first) == "done"
    assert wait.is_met()
    assert isinstance(next(second), NetworkWait)
    assert result(second) == "done"
    assert calls.deadlines == [calls.clock.monotonic_ms() + TIMEOUT_MS] * 2


def test_call_whose_turn_does_not_come_times_out() -> None:
    calls = Calls()
    first, second = calls.start(), calls.start()
    next(first)
    next(second)
    calls.clock.now_ms += TIMEOUT_MS
    with pytest.raises(KafkaTimeoutError):
        next(second)
    assert result(first) == "done"


def test_cancelled_call_gives_way_to_the_next() -> None:
    calls = Calls()
    first, second = calls.start(), calls.start()
    next(first)
    next(second)
    first.close()
    assert isinstance(next(second), NetworkWait)


def test_running_call_ends_after_close_and_waiting_ones_fail() -> None:
    calls = Calls()
    first, second = calls.start(), calls.start()
    next(first)
    wait = next(second)
    assert isinstance(wait, ConditionWait)
    calls.core.close()
    assert wait.is_met()
    with pytest.raises(ClosedError):
        next(second)
    assert result(first) == "done"
    with pytest.raises(ClosedError):
        next(calls.start())
