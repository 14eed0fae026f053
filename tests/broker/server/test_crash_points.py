"""Broker that crashes, or gets an error, at each modification of its files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from tests.support.disks.broker_life import BrokerLife, check
from tests.support.disks.mortal_files import Death, MortalFiles
from tests.support.disks.nth_fault import NO_DESCRIPTORS, NO_SPACE, NthFault

T = TypeVar("T")
_ATTEMPTS = 6


@pytest.mark.fault("B1", "B4")
@pytest.mark.parametrize("stride", [12, pytest.param(2, marks=pytest.mark.campaign)])
def test_crash_points(tmp_path: Path, stride: int) -> None:
    """Creation, deletion and re-creation of a topic, with appends and commits."""
    files = MortalFiles(last=-1)
    whole = BrokerLife(tmp_path / "whole", files)
    whole.live()
    total = files.changes
    whole.broker.stop()
    assert total > 100
    for last in range(1, total + 1, stride):  # all of them are tested with the log
        data_dir = tmp_path / str(last)
        life = BrokerLife(data_dir, MortalFiles(last))
        with pytest.raises(Death):
            life.live()
        if life.broker.is_running:
            life.broker.kill()
        check(data_dir, life)


class Patient(BrokerLife):
    """Retries every rejected operation, and restarts a broker that its metadata log has ended."""

    refusals = 0
    has_ended = False
    waited_ms = 0.0

    def attempt(self, action: Callable[[], T]) -> T:
        for _ in range(_ATTEMPTS):
            try:
                if self.has_ended:
                    self.broker.start(threads=False)
                    self.has_ended = False
                return action()
            except KafkaError:
                self.refusals += 1
                self._note_end()
                self._wait()
        return action()

    def _note_end(self) -> None:
        if self.broker.is_running:
            try:
                self.broker.storage.raft.events.step()
            except KafkaStorageError:
                self.broker.kill()
                self.has_ended = True

    def _wait(self) -> None:
        """Let the backoff of the group coordinator pass, which loads its partition again."""
        if self.broker.is_running:
            self.waited_ms += 20_000
            self.services.groups.step(time.monotonic() * 1000 + self.waited_ms)


@pytest.mark.fault("B11", "B14")
@pytest.mark.parametrize("code", [NO_DESCRIPTORS, NO_SPACE], ids=["descriptors", "space"])
@pytest.mark.parametrize("stride", [15, pytest.param(3, marks=pytest.mark.campaign)])
def test_every_operation_is_retried_after_failed_file_operation(
    tmp_path: Path, code: int, stride: int
) -> None:
    """The client gets the error, and a retry succeeds; after a restart if the node has ended."""
    files = NthFault(code)
    whole = Patient(tmp_path / "whole", files)
    whole.live()
    total = files.operations
    whole.broker.stop()
    refusals = 0
    for first in range(1, total + 1, stride):
        data_dir = tmp_path / str(first)
        life = Patient(data_dir, NthFault(code, first, times=3))
        life.live()
        refusals += life.refusals
        life.broker.kill()
        check(data_dir, life)
    assert refusals > total // (3 * stride)
