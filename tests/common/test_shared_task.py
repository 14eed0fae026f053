"""A loop in steps that threads which wait for it run themselves."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kclient.common.runtime import Task
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.common.waiting import ConditionWait, NetworkWait, Steps, run_steps
from kclient.network.system_net import SystemPoller
from tests.support.checks.waiting import wait_until
from tests.support.processes.sigint import repeated_interrupts


class Network:
    """A network whose only event is a wakeup."""

    def __init__(self) -> None:
        self.poller = SystemPoller()
        self.error: Exception | None = None
        self.polled_by = 0

    def poll(self, timeout_ms: float, _now_ms: float, /) -> None:
        self.polled_by = threading.get_ident()
        if self.error is not None:
            raise self.error
        self.poller.poll(timeout_ms)


class Service:
    """A loop that numbers the jobs it is given, and notes the thread that did so."""

    def __init__(self) -> None:
        tasks, self.clock = SystemTasks(), SystemClock()
        self.network = Network()
        self.changed = tasks.condition()
        self.jobs: list[int] = []
        self.done_by: dict[int, int] = {}
        self.muted = self.closed = False
        self.errors: list[Exception] = []
        self.task: Task = tasks.run_shared(
            "service", self._steps(), self.clock, self.network.poller.wakeup, self._has_work
        )

    def _has_work(self) -> bool:
        return bool(self.jobs) or self.closed

    def _steps(self) -> Steps[None]:
        while not self.closed:
            if not self.muted:
                self._do_jobs()
            try:
                yield NetworkWait(self.network, math.inf)
            except OSError as error:
                self.errors.append(error)
                self.network.error = None

    def _do_jobs(self) -> None:
        jobs, self.jobs = self.jobs, []
        if jobs:
            self.done_by.update(dict.fromkeys(jobs, threading.get_ident()))
            with self.changed:
                self.changed.notify_all()

    def give(self, job: int) -> None:
        self.jobs.append(job)
        if self.task.needs_wakeup():
            self.network.poller.wakeup()

    def await_done(self, job: int, timeout_ms: float = 10_000.0) -> bool:
        run_steps(self._until_done(job, self.clock.monotonic_ms() + timeout_ms), self.clock)
        return job in self.done_by

    def _until_done(self, job: int, until_ms: float) -> Steps[None]:
        yield ConditionWait(self.changed, lambda: job in self.done_by, until_ms, self.task)

    def do(self, job: int) -> int:
        """Give a job and wait for it; return the thread that did it."""
        self.give(job)
        assert self.await_done(job)
        return self.done_by[job]

    def close(self) -> None:
        self.muted, self.closed = False, True
        self.network.poller.wakeup()
        assert self.task.join(10)


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()


def be_driven(service: Service) -> None:
    """Wait alone until this thread does the jobs."""
    jobs = iter(range(-1, -1_000, -1))
    wait_until(lambda: service.do(next(jobs)) == threading.get_ident(), "this thread drives")


def test_thread_that_waits_alone_does_the_work_of_the_loop(service: Service) -> None:
    caller = threading.get_ident()
    assert service.do(0) != caller  # a single wait changes nothing
    be_driven(service)
    by_caller = [service.do(job) == caller for job in range(1, 200)]
    assert sum(by_caller) > 150  # the loop's thread may find a job before the caller waits
    assert not service.task.is_current()


def test_work_that_no_thread_waits_for_is_done_by_the_loop(service: Service) -> None:
    be_driven(service)
    for job in range(1, 20):
        service.give(job)
        wait_until(lambda job=job: job in service.done_by, "the job is done")  # type: ignore[misc]
        assert service.done_by[job] != threading.get_ident()
        be_driven(service)


@pytest.mark.parametrize("count", [2, 10])
def test_threads_that_wait_at_once_are_all_served(service: Service, count: int) -> None:
    be_driven(service)

    def work(thread: int) -> None:
        for number in range(50):
            service.do(thread * 1_000 + number)

    with ThreadPoolExecutor(count) as threads:
        list(threads.map(work, range(1, count + 1)))


def test_second_thread_is_served_when_the_driving_one_has_ended_its_wait(service: Service) -> None:
    be_driven(service)
    service.muted = True
    ended: list[bool] = []
    driver = threading.Thread(target=lambda: ended.append(service.await_done(1, 100.0)))
    driver.start()
    wait_until(lambda: service.network.polled_by == driver.ident, "the first thread drives")
    service.give(2)
    second = threading.Thread(target=lambda: ended.append(service.await_done(2)))
    second.start()
    driver.join(10)
    assert ended == [False]
    service.muted = False
    service.network.poller.wakeup()
    second.join(10)
    assert ended == [False, True]


def test_wait_of_a_driving_thread_ends_at_its_deadline(service: Service) -> None:
    be_driven(service)
    service.muted = True
    began = time.monotonic()
    assert not service.await_done(1, 30.0)
    assert 0.03 <= time.monotonic() - began < 5
    service.muted = False
    service.network.poller.wakeup()
    assert service.do(2)


def test_interrupted_driver_leaves_the_loop_as_it_was(service: Service) -> None:
    for number in range(1, 20):
        be_driven(service)
        service.muted = True
        service.give(number)
        with pytest.raises(KeyboardInterrupt), repeated_interrupts():
            service.await_done(number)
        service.muted = False
        service.network.poller.wakeup()
        assert service.await_done(number)
    assert service.errors == []
    assert service.task.is_alive()


def test_thread_with_a_handler_that_may_raise_anywhere_does_not_drive(service: Service) -> None:
    be_driven(service)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        assert {service.do(job) for job in range(1, 20)}.isdisjoint({threading.get_ident()})
    finally:
        signal.signal(signal.SIGALRM, before)


def test_error_of_the_network_is_raised_in_the_steps(service: Service) -> None:
    be_driven(service)
    service.muted = True
    service.network.error = OSError("reset")
    service.await_done(1, 30.0)
    assert [str(error) for error in service.errors] == ["reset"]


def test_loop_that_ends_while_a_thread_drives_ends_its_task(service: Service) -> None:
    be_driven(service)
    service.muted = True
    driver = threading.Thread(target=service.await_done, args=(1, 200.0))
    driver.start()
    wait_until(lambda: service.network.polled_by == driver.ident, "the thread drives")
    service.close()
    assert not service.task.is_alive()
    driver.join(10)
    assert not driver.is_alive()
