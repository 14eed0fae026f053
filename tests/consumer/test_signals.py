"""Exceptions of a signal handler at random times, with real sockets and threads."""

import logging
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
_RETRY_S = 1e-4


class StruckError(BaseException):
    """Exception of the signal handler."""


class Striker:
    """Sends a signal once, a short time after it was armed."""

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
        if _is_logging(frame):
            signal.setitimer(signal.ITIMER_REAL, _RETRY_S)
            return
        self.armed = False
        self.strikes += 1
        raise StruckError


def _is_logging(frame: FrameType | None) -> bool:
    """Return whether a frame runs in the module logging.

    Before Python 3.13 an exception can leave the lock of that module locked, for every test that
    follows.
    """
    while frame is not None:
        if frame.f_code.co_filename == logging.__file__:
            return True
        frame = frame.f_back
    return False


@pytest.fixture
def striker(request: pytest.FixtureRequest) -> Iterator[Striker]:
    made = Striker(int(os.environ.get("KCLIENT_INTERRUPT_SEED", "1")))
    before = signal.signal(signal.SIGALRM, made.strike)
    yield made
    made.armed = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# Python ignores an exception in a finalizer and warns about it.
@pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.fault("R21")
def test_each_record_is_returned_once_despite_signals(striker: Striker) -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        with AdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
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
