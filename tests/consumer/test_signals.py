"""SIGINT at random times, with real sockets and threads."""

import gc
import os
import random
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from kclient import Consumer, NewTopic, Producer
from kclient.admin.admin_client import AdminClient
from kclient.testing import EmbeddedCluster

_COUNT = 4000
_SHARE = 0.5
_LOG_SECONDS = (-5.0, -2.4)


class StruckError(BaseException):
    """Exception of the handler of SIGINT."""


class Striker:
    """Sends SIGINT once, a short time after it was armed."""

    def __init__(self, seed: int) -> None:
        self.armed = False
        self.strikes = 0
        self._random = random.Random(seed)

    def arm(self) -> None:
        if self._random.random() < _SHARE:
            return  # so that there is time to connect
        self.armed = True
        signal.setitimer(signal.ITIMER_REAL, 10 ** self._random.uniform(*_LOG_SECONDS))

    def strike(self, number: int, frame: FrameType | None) -> None:
        if not self.armed:
            return
        self.armed = False
        signal.raise_signal(signal.SIGINT)

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.strikes += 1
        raise StruckError


@pytest.fixture
def striker(request: pytest.FixtureRequest) -> Iterator[Striker]:
    made = Striker(int(os.environ.get("KCLIENT_INTERRUPT_SEED", "1")))
    before = signal.signal(signal.SIGALRM, made.strike)
    interrupt_before = signal.signal(signal.SIGINT, made.on_interrupt)
    # An exception in a callback of the garbage collector, as hypothesis has one, cannot propagate.
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield made
    gc.callbacks[:] = callbacks
    made.armed = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    signal.signal(signal.SIGINT, interrupt_before)


@pytest.mark.fault("R21")
def test_each_record_is_returned_once_despite_signals(striker: Striker) -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        with AdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)]).raise_for_errors()
        with Producer(bootstrap_servers=servers) as producer:
            for number in range(_COUNT):
                producer.send("orders", b"%d" % number, partition=number % 2)
        consumer = Consumer(
            bootstrap_servers=servers,
            group_id="g",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=5,
            max_partition_fetch_bytes=2000,
        )
        consumer.subscribe("orders")
        taken = read_all(consumer, striker)
        assert sorted(taken) == list(range(_COUNT))
        consumer.close(timeout=5)
        assert striker.strikes > 20


def read_all(consumer: Consumer, striker: Striker) -> list[int]:
    taken: list[int] = []
    while len(taken) < _COUNT:
        records = None
        try:
            striker.arm()
            records = consumer.poll(0.5, max_records=5)
            striker.armed = False
        except StruckError:
            pass
        except BaseException:
            striker.armed = False
            raise
        if records is not None:
            taken += [int(record.value) for record in records]
    return taken
