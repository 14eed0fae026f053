"""SIGINT and SIGTERM take effect at the waits and at the end of a call, not in between."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from kclient.common.interrupts import deferred_signals, signals_take_effect
from kclient.common.system_tasks import SystemCondition
from kclient.network.system_net import SystemPoller
from tests.support.processes.sigint import repeated_interrupts


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def handler_is_restored() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) is before


def test_signal_takes_effect_at_the_end_of_a_call_that_does_not_wait() -> None:
    steps = []

    def call() -> None:
        with deferred_signals():
            interrupt()
            steps.append("completed")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert steps == ["completed"]


def test_signal_that_came_before_a_wait_takes_effect_when_it_begins() -> None:
    steps = []

    def call() -> None:
        with deferred_signals():
            interrupt()
            steps.append("before the wait")
            with signals_take_effect():
                steps.append("waited")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert steps == ["before the wait"]


def test_signal_at_the_restoration_of_the_handler_leaves_the_next_call_deferred() -> None:
    sent = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        exits = frame.f_code.co_qualname == "_MainThread.restore"
        if exits and event == "c_return" and getattr(argument, "__name__", "") == "signal":
            sent.append(event)
            interrupt()

    def call() -> None:
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            with deferred_signals():
                pass
        finally:
            sys.setprofile(before)

    with pytest.raises(KeyboardInterrupt):
        call()
    assert sent == ["c_return"]
    test_signal_takes_effect_at_the_end_of_a_call_that_does_not_wait()


def test_signal_takes_effect_during_a_wait() -> None:
    with deferred_signals(), pytest.raises(KeyboardInterrupt), signals_take_effect():
        interrupt()


def test_a_wait_defers_signals_again_when_it_has_ended() -> None:
    steps = []

    def call() -> None:
        with deferred_signals():
            with signals_take_effect(), signals_take_effect():
                steps.append("waited")
            interrupt()
            steps.append("completed")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert steps == ["waited", "completed"]


def test_call_made_by_a_callback_completes_before_the_signal_takes_effect() -> None:
    steps = []

    def callback() -> None:
        with deferred_signals():
            interrupt()
            steps.append("inner call completed")
        steps.append("callback continued")

    with deferred_signals(), pytest.raises(KeyboardInterrupt), signals_take_effect():
        callback()
    assert steps == ["inner call completed"]


def test_call_within_a_call_leaves_the_signal_to_the_outer_one() -> None:
    steps = []

    def call() -> None:
        with deferred_signals():
            with deferred_signals():
                interrupt()
            steps.append("outer call completed")

    with pytest.raises(KeyboardInterrupt):
        call()
    assert steps == ["outer call completed"]


def test_outside_of_calls_a_wait_changes_nothing() -> None:
    with pytest.raises(KeyboardInterrupt), signals_take_effect():
        interrupt()
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_several_signals_take_effect_once() -> None:
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    try:
        with deferred_signals():
            interrupt()
            interrupt()
            assert calls == []
        assert calls == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_handler_of_the_program_gets_the_interrupted_frame() -> None:
    frames: list[FrameType | None] = []
    before = signal.signal(signal.SIGINT, lambda _, frame: frames.append(frame))
    try:
        with deferred_signals(), signals_take_effect():
            interrupt()
    finally:
        signal.signal(signal.SIGINT, before)
    assert frames[0] is not None


class StopError(Exception):
    """Raised by a handler of SIGTERM."""


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Install a handler of SIGTERM that raises, as programs in containers do."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise StopError

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
        assert signal.getsignal(signal.SIGTERM) is stop
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_takes_effect_at_the_end_of_a_call() -> None:
    steps = []

    def call() -> None:
        with deferred_signals():
            signal.raise_signal(signal.SIGTERM)
            steps.append("completed")

    with sigterm_raises(), pytest.raises(StopError):
        call()
    assert steps == ["completed"]


def test_sigterm_takes_effect_in_a_wait() -> None:
    with sigterm_raises(), deferred_signals(), pytest.raises(StopError), signals_take_effect():
        signal.raise_signal(signal.SIGTERM)


def test_both_handlers_run_although_the_first_raises() -> None:
    calls = []

    def call() -> None:
        with deferred_signals():
            interrupt()
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert calls == [signal.SIGTERM]


def test_wait_that_a_signal_ended_leaves_the_other_to_the_end_of_the_call() -> None:
    steps: list[object] = []

    def call() -> None:
        with deferred_signals():
            interrupt()
            signal.raise_signal(signal.SIGTERM)
            with pytest.raises(KeyboardInterrupt), signals_take_effect():
                steps.append("waited")
            steps.append("completed")

    before = signal.signal(signal.SIGTERM, lambda number, _: steps.append(number))
    try:
        call()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert steps == ["completed", signal.SIGTERM]


def test_exception_while_handlers_are_restored_leaves_the_others_working(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handler that raises as soon as it is installed again prevents the next restoration."""

    def install(number: int, handler: Any) -> None:
        signal.signal(number, handler)
        if handler is signal.default_int_handler:
            interrupt()

    def call() -> None:
        with deferred_signals():
            pass

    calls: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: calls.append(number))
    try:
        with monkeypatch.context() as patch:
            patch.setattr("kclient.common.interrupts.signal", install)
            with pytest.raises(KeyboardInterrupt):
                call()
        signal.raise_signal(signal.SIGTERM)
        assert calls == [signal.SIGTERM]
        with deferred_signals():
            signal.raise_signal(signal.SIGTERM)
            assert calls == [signal.SIGTERM]
        assert calls == [signal.SIGTERM, signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_not_python_functions_are_left_alone(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with deferred_signals():
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_handler_that_a_callback_installs_stays() -> None:
    def installed(_number: int, _frame: FrameType | None) -> None:
        pass

    before = signal.getsignal(signal.SIGINT)
    try:
        with deferred_signals(), signals_take_effect():
            signal.signal(signal.SIGINT, installed)
        assert signal.getsignal(signal.SIGINT) is installed
    finally:
        signal.signal(signal.SIGINT, before)


def test_error_of_a_call_restores_the_handler() -> None:
    with pytest.raises(ValueError, match="of the call"), deferred_signals():
        raise ValueError("of the call")


def test_other_threads_do_not_change_what_the_main_thread_defers() -> None:
    def call() -> None:
        with deferred_signals():
            thread = threading.Thread(target=enter_and_wait)
            thread.start()
            thread.join()
            interrupt()
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler

    with pytest.raises(KeyboardInterrupt):
        call()


def enter_and_wait() -> None:
    with deferred_signals(), signals_take_effect():
        pass


def test_poller_is_interrupted_while_it_waits() -> None:
    poller = SystemPoller()
    try:
        with deferred_signals(), pytest.raises(KeyboardInterrupt), repeated_interrupts():
            poller.poll(60_000)
        poller.wakeup()
        assert poller.poll(60_000) == []
    finally:
        poller.close()


def test_poll_that_does_not_wait_is_not_interrupted() -> None:
    poller = SystemPoller()
    try:

        def call() -> None:
            with deferred_signals():
                interrupt()
                assert poller.poll(0) == []

        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        poller.close()


def test_condition_is_interrupted_while_it_waits_and_has_its_lock_again() -> None:
    condition = SystemCondition()
    with condition:
        with deferred_signals(), pytest.raises(KeyboardInterrupt), repeated_interrupts():
            condition.wait(60)
        condition.notify_all()
    with condition:
        assert not condition.wait(0)
