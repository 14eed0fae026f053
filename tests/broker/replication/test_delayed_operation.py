import threading
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.replication.delayed_operation import (
    DelayedOperation,
    DelayedOperationPurgatory,
    OperationTimer,
)
from kclient.common.system_tasks import SystemTasks


class Waiting(DelayedOperation):
    """Completes once `ready` is set."""

    def __init__(self, deadline_ms: float = 100.0, *, ready: bool = False) -> None:
        super().__init__(threading.Condition(), deadline_ms)
        self.ready = ready
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


def parts() -> tuple[DelayedOperationPurgatory[Waiting], OperationTimer]:
    timer = OperationTimer(SystemTasks().condition())
    return DelayedOperationPurgatory(SystemTasks().condition(), timer), timer


def test_completed_operation_is_not_watched() -> None:
    purgatory, timer = parts()
    operation = Waiting(ready=True)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.completions == 1
    assert purgatory.watched() == 0
    assert timer.next_deadline_ms() == float("inf")


def test_operation_completes_once_and_is_removed_from_all_keys() -> None:
    purgatory, timer = parts()
    operation = Waiting()
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert purgatory.check_and_complete("a") == 0
    operation.ready = True
    assert purgatory.check_and_complete("c") == 0
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched() == 0
    assert purgatory.check_and_complete("b") == 0
    timer.advance(1000.0)
    assert (operation.completions, operation.expirations) == (1, 0)


def test_deadline_completes_operation() -> None:
    purgatory, timer = parts()
    operation = Waiting(deadline_ms=100.0)
    purgatory.try_complete_else_watch(operation, ["a"])
    timer.advance(99.9)
    assert operation.completions == 0
    timer.advance(100.0)
    assert (operation.completions, operation.expirations) == (1, 1)
    assert purgatory.watched() == 0


def test_condition_met_between_first_try_and_registration() -> None:
    class Racing(Waiting):
        def try_complete(self) -> bool:
            done = super().try_complete()
            self.ready = True  # too late for this try, and no later check follows
            return done

    purgatory, _ = parts()
    operation = Racing()
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.completions == 1
    assert purgatory.watched() == 0


def test_failed_completion_does_not_affect_other_operations(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Waiting):
        def on_complete(self) -> None:
            raise ZeroDivisionError

    purgatory, timer = parts()
    operations = [Failing(), Waiting()]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    timer.advance(1000.0)
    assert operations[1].completions == 1
    assert "Failing: completion failed" in caplog.text


def test_complete_all_forces_completion() -> None:
    purgatory, _ = parts()
    operations = [Waiting(), Waiting()]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    assert purgatory.complete_all("a") == 2
    assert [operation.completions for operation in operations] == [1, 1]


def test_completed_operations_are_purged_from_timer() -> None:
    purgatory, timer = parts()
    for _ in range(5000):
        operation = Waiting(deadline_ms=1e9)
        purgatory.try_complete_else_watch(operation, ["a"])
        operation.ready = True
        purgatory.check_and_complete("a")
    purgatory.try_complete_else_watch(Waiting(deadline_ms=5.0), ["a"])
    assert timer.next_deadline_ms() == 5.0
    assert len(timer) <= 1000


def test_completed_operation_is_freed_at_once() -> None:
    purgatory, timer = parts()
    operation = Waiting(deadline_ms=1e9)
    freed = weakref.ref(operation)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    purgatory.check_and_complete("a")
    del operation
    assert freed() is None
    timer.advance(2e9)


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=40))
def test_every_operation_completes_exactly_once(plan: list[tuple[int, bool]]) -> None:
    purgatory, timer = parts()
    operations = []
    for deadline, ready in plan:
        operation = Waiting(float(deadline))
        purgatory.try_complete_else_watch(operation, [deadline % 3, "all"])
        operation.ready = ready
        operations.append(operation)
    purgatory.check_and_complete("all")
    for now in range(0, 60, 7):
        timer.advance(float(now))
    assert all(operation.completions == 1 for operation in operations)
    assert [operation.expirations for operation in operations] == [
        0 if ready else 1 for _, ready in plan
    ]
    assert purgatory.watched() == 0


def test_concurrent_completion_runs_once() -> None:
    for _ in range(50):
        operation = Waiting(ready=True)
        start = threading.Barrier(4)

        def race(operation: Waiting = operation, start: threading.Barrier = start) -> None:
            start.wait()
            operation.try_complete()
            operation.expire()

        threads = [threading.Thread(target=race) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert operation.completions == 1


def test_nearer_deadline_wakes_wait() -> None:
    timer = OperationTimer(threading.Condition())
    timer.wait(0.0, until_ms=-5.0)  # already due: no wait at all
    woken = threading.Event()

    def wait() -> None:
        timer.wait(0.0)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    timer.add(Waiting(deadline_ms=1.0))
    assert woken.wait(5)
    thread.join()
