"""Ctrl-C once and again while a consumer is closed: the next close ends, and all is let go of."""

import gc
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from weakref import WeakSet

import pytest

from kclient.common.errors import ClosedError
from kclient.common.runtime import Net, Poller
from kclient.consumer import Consumer
from tests.consumer.conftest import ConsumerWorld
from tests.support.interrupts import Interruption

_TRIALS = int(os.environ.get("KCLIENT_INTERRUPT_TRIALS", "40"))
_CLOSE_MS = 200
_PLACES = 1_100  # about as many as a close has
_REST = 12  # and as many as one has where another was struck and did most of it nevertheless


class CountingNet:
    """Knows its pollers."""

    def __init__(self, net: Net) -> None:
        self.resolve, self.connect, self.listen = net.resolve, net.connect, net.listen
        self.look_up = net.look_up
        self._net = net
        self._made: WeakSet[CountedPoller] = WeakSet()

    def poller(self) -> Poller:
        made = CountedPoller(self._net.poller())
        self._made.add(made)
        return made

    def open_pollers(self) -> int:
        """Count those that live and were not closed; what is collected closes itself."""
        gc.collect()
        return sum(not poller.closed for poller in self._made)


class CountedPoller:
    """A poller that tells whether it was closed."""

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
        self.world.runtime = replace(self.world.runtime, net=self.net)
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
        assert self.consumer._parts.seat.stopped, where


def pairs() -> Iterator[tuple[int, int]]:
    dice = random.Random(int(os.environ.get("KCLIENT_INTERRUPT_SEED", "1")))
    for _ in range(_TRIALS):
        yield dice.randrange(_PLACES), dice.randrange(_PLACES // 4)


@pytest.mark.fault("R21")
def test_close_that_is_struck_twice_while_it_goes_on() -> None:
    """The first Ctrl-C is kept until all is done; the second strikes what is still done."""
    twice = 0
    for first, second in pairs():
        scene = Scene()
        interruption = Interruption(first, again=second)
        assert interruption.during(scene.consumer.close) == (interruption.strikes > 0)
        twice += interruption.strikes == 2
        scene.check(interruption.place)
    assert twice >= _TRIALS // 6


@pytest.mark.fault("R21")
def test_the_end_of_a_block_that_is_struck_and_then_close_too() -> None:
    twice = 0
    for first, second in pairs():
        scene = Scene()
        ends, closes = Interruption(first), Interruption(second % _REST)
        left = ends.during(partial(leave_block, scene.consumer))
        twice += left and closes.during(scene.consumer.close)
        scene.check(f"{ends.place} and {closes.place}")
    assert twice >= _TRIALS // 6


def leave_block(consumer: Consumer) -> None:
    with consumer:
        pass
