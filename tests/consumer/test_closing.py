"""Closing: commit, leave, disconnect; within the timeout, and when Ctrl-C comes twice."""

import gc
from collections.abc import Callable
from functools import partial
from weakref import WeakSet

import pytest

from kclient.common.errors import (
    ClosedError,
    KafkaTimeoutError,
)
from kclient.common.runtime import Net, Poller
from kclient.consumer import Consumer
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import (
    ORDERS_0,
    ConsumerWorld,
    Diary,
    member,
    stuck_in_join,
)
from tests.support.checks.interrupts import Interruption, at_every_place

_CLOSE_MS = 200


class CountingNet:
    """Knows its pollers."""

    def __init__(self, net: Net) -> None:
        self.resolve, self.connect, self.listen = net.resolve, net.connect, net.listen
        self.look_up = net.look_up
        self._net = net
        self._made: WeakSet[CountedPoller] = WeakSet()

    def poller(self, *, waits: bool = True) -> Poller:
        made = CountedPoller(self._net.poller(waits=waits))
        self._made.add(made)
        return made

    def open_pollers(self) -> int:
        """Count those that live and were not closed; what is collected closes itself."""
        gc.collect()
        return sum(not poller.closed for poller in self._made)


class CountedPoller:
    """A poller that records whether it was closed."""

    def __init__(self, poller: Poller) -> None:
        self.closed = False
        self.register, self.modify, self.unregister = (
            poller.register,
            poller.modify,
            poller.unregister,
        )
        self.poll, self.wakeup = poller.poll, poller.wakeup
        self._poller = poller

    def close(self) -> None:
        self.closed = True
        self._poller.close()


class Scene:
    """A member with records read and more on their way, and two strikes to come."""

    def __init__(self) -> None:
        self.world = ConsumerWorld()
        self.net = CountingNet(self.world.runtime.net)
        self.world.runtime = self.world.runtime._replace(net=self.net)
        self.consumer = self.world.subscribed()
        self.world.fill(3, 2)
        self.world.read(self.consumer, 5)
        self.world.fill(4, number=1)
        self.world.broker.arrived()

    def check(self, where: str) -> None:
        """The third call ends in time, and nothing is left open."""
        before_ms = self.world.clock.now_ms
        self.consumer.close(timeout=5)
        assert self.world.clock.now_ms - before_ms <= _CLOSE_MS, where
        with pytest.raises(ClosedError):
            self.consumer.poll(0)
        self.world.sleep(5)
        assert self.world.net.open_sockets == 0, where
        assert self.net.open_pollers() == 0, where
        assert self.consumer._core.lock.stopped, where


def close(consumer: Consumer) -> None:
    consumer.close()


def leave_block(consumer: Consumer) -> None:
    with consumer:
        pass


@pytest.mark.fault("R21")
@pytest.mark.parametrize("end", [close, leave_block])
def test_close_that_is_interrupted_twice_releases_everything(
    end: Callable[[Consumer], None],
) -> None:
    """The first Ctrl-C is deferred until the consumer is closed; the second ends a wait."""

    def interrupt_twice(distance: int, interruption: Interruption) -> bool:
        scene = Scene()
        interruption.again = distance
        assert interruption.during(partial(end, scene.consumer)) == (interruption.strikes > 0)
        scene.check(interruption.place)
        twice.append(interruption.strikes == 2)
        return interruption.strikes > 0

    twice: list[bool] = []
    for distance in (0, 2):
        assert at_every_place(partial(interrupt_twice, distance)) >= 4
    assert sum(twice) >= 4


def test_close_commits_revokes_and_leaves(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(5)
    consumer = member(world, diary)
    world.read(consumer, 5)
    consumer.close()
    assert world.broker.group.committed[ORDERS_0][0] == 5
    assert diary.entries[-1] == ("revoked", [0, 1])
    assert world.broker.group.left == ["member-1"]
    world.sleep(5)
    assert world.net.open_sockets == 0
    assert not world.tasks.started[0].step()


@pytest.mark.fault("R21")
def test_close_ends_within_timeout_without_brokers(world: ConsumerWorld, diary: Diary) -> None:
    world.fill(5)
    consumer = member(world, diary)
    world.read(consumer, 5)
    world.broker.silent = True
    before_ms = world.clock.now_ms
    consumer.close(timeout=2.0)
    assert world.clock.now_ms - before_ms <= 2_100


def test_close_does_not_wait_for_timed_out_commit(world: ConsumerWorld) -> None:
    consumer = world.assigned(group_id="g", enable_auto_commit=False)
    world.broker.fail(ApiKey.FIND_COORDINATOR, *[15] * 100)  # COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaTimeoutError, match="no coordinator was found for group 'g'"):
        consumer.commit({ORDERS_0: 1}, timeout=3.0)
    before_ms = world.clock.now_ms
    consumer.close(timeout=30.0)
    assert world.clock.now_ms - before_ms < 100


_UNKNOWN_MEMBER = 25


@pytest.mark.fault("R16")
@pytest.mark.parametrize("when", ["revoked", "lost"])
def test_close_raises_callback_error_after_closing(world: ConsumerWorld, when: str) -> None:
    def refuse(_: object) -> None:
        raise LookupError(when)

    consumer = world.consumer(group_id="g")
    consumer.subscribe("orders", on_revoked=refuse, on_lost=refuse)
    world.join(consumer)
    if when == "lost":
        world.broker.fail(ApiKey.HEARTBEAT, _UNKNOWN_MEMBER)
        world.background(4_000)
    with pytest.raises(LookupError, match=when):
        consumer.close()
    assert world.broker.group.left == (["member-1"] if when == "revoked" else [])
    world.sleep(5)
    assert world.net.open_sockets == 0
    consumer.close()


@pytest.mark.fault("R21")
def test_close_while_joining_leaves_the_group(world: ConsumerWorld) -> None:
    consumer = stuck_in_join(world)
    before_ms = world.clock.now_ms
    consumer.close(timeout=2)
    assert world.clock.now_ms - before_ms <= 200
    assert world.broker.group.left == ["member-1"]
    world.sleep(5)
    assert world.net.open_sockets == 0
