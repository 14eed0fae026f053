"""Process id of `SystemTasks`; waits, notifications and interrupts of `SystemCondition`."""

import os
import threading
import time
from functools import partial

import pytest

from kclient.common.interrupts import deferred_signals
from kclient.common.system_tasks import SystemCondition, SystemTasks
from tests.support.checks.waiting import wait_until
from tests.support.processes.sigint import repeated_interrupts


def test_forked_child_has_its_own_process_id() -> None:
    tasks = SystemTasks()
    assert tasks.process_id() == os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(0 if tasks.process_id() == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_callback_runs_in_the_child_of_a_fork_until_it_is_unregistered() -> None:
    tasks = SystemTasks()
    called: list[str] = []
    tasks.after_fork(partial(called.append, "kept"))
    unregister = tasks.after_fork(partial(called.append, "removed"))
    unregister()
    unregister()
    child = os.fork()
    if child == 0:
        os._exit(0 if called == ["kept"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert called == []


def start(work: object) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]  # a callable
    thread.start()
    return thread


def is_free(condition: SystemCondition) -> bool:
    """Returns whether another thread can acquire the lock."""
    taken: list[bool] = []

    def take() -> None:
        with condition:
            taken.append(True)

    start(take).join(2)
    return bool(taken)


def has(found: list[int], count: int) -> bool:
    return len(found) == count


def test_wait_ends_at_timeout() -> None:
    condition = SystemCondition()
    started = time.monotonic()
    with condition:
        assert not condition.wait(0.05)
        assert not condition.wait_for(lambda: False, 0.05)
        assert condition.wait_for(lambda: True, 0)
        assert condition.wait_for(lambda: True)
        assert not condition.wait(-1)
    assert time.monotonic() - started >= 0.1


def test_notify_wakes_one_and_notify_all_wakes_all() -> None:
    condition = SystemCondition()
    woken: list[int] = []

    def work(number: int) -> None:
        with condition:
            condition.wait(20)
            woken.append(number)

    threads = []
    for number in range(5):
        threads.append(start(partial(work, number)))
        wait_until(lambda: len(condition._waiters) == len(threads), "the thread waits")
    for count in (1, 2):
        with condition:
            condition.notify()
        wait_until(partial(has, woken, count), "one more was woken")
    assert woken == [0, 1]
    with condition:
        condition.notify_all()
    for thread in threads:
        thread.join(10)
    assert sorted(woken) == [0, 1, 2, 3, 4]
    with condition:
        condition.notify()  # there is no waiter


def test_wait_releases_recursively_acquired_lock() -> None:
    condition = SystemCondition()
    proceed: list[bool] = []

    def release() -> None:
        with condition:
            proceed.append(True)
            condition.notify_all()

    with condition, condition:
        start(release)
        assert condition.wait_for(lambda: bool(proceed), 10)
        assert not is_free(condition)
    assert is_free(condition)


def test_late_notification_is_forwarded_to_next_waiter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    condition = SystemCondition()
    restore = condition._acquire_restore
    woken: list[bool] = []

    def other() -> None:
        with condition:
            woken.append(condition.wait(10))

    def notified_meanwhile(state: object) -> None:
        condition._acquire_restore = restore
        with condition:
            condition.notify()
        restore(state)

    condition._acquire_restore = notified_meanwhile
    with condition:
        thread = start(other)
        assert not condition.wait(0.2)
    thread.join(10)
    assert woken == [True]


@pytest.mark.fault("W18")
@pytest.mark.parametrize("timeout", [60, None])
def test_interrupted_wait_has_the_lock_and_leaves_no_waiter(timeout: float | None) -> None:
    condition = SystemCondition()
    with condition:
        with deferred_signals(), pytest.raises(KeyboardInterrupt), repeated_interrupts():
            condition.wait_for(lambda: False, timeout)
        assert not is_free(condition)
        assert not condition._waiters
    assert is_free(condition)
