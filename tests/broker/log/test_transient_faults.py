"""Transient lack of descriptors or space: operations fail, lose nothing, and succeed later."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.broker_errors import KafkaStorageError
from tests.support.disks.log_bench import make_batch, offsets
from tests.support.disks.log_life import DOOMED, KEPT, TOPIC_ID, Life, check
from tests.support.disks.nth_fault import NO_DESCRIPTORS, NO_SPACE, NthFault

T = TypeVar("T")
_ATTEMPTS = 6


class Patient(Life):
    """A run whose every operation is retried after a failure."""

    refusals = 0

    def live(self) -> None:
        self._attempt(self.manager.load)
        self._attempt(lambda: self.manager.get_or_create(KEPT, TOPIC_ID))
        doomed = self._attempt(lambda: self.manager.get_or_create(DOOMED, TOPIC_ID))
        self._attempt(lambda: doomed.append_as_leader(make_batch(3), 0))
        for number in range(12):
            self._attempt(partial(self.append, number))
            self.clock.elapsed_ms += 300
            self.manager.step(self.clock.monotonic_ms())
            if number == 3:
                self.deleting = True
                self._attempt(lambda: self.manager.delete(DOOMED))
        found = self._attempt(lambda: offsets(self._log()))
        assert found == list(range(self._log().log_start_offset, 60))
        assert not self.manager.failures.is_offline

    def _log(self) -> UnifiedLog:
        log = self.manager.get_log(KEPT)
        assert log is not None
        return log

    def _attempt(self, action: Callable[[], T]) -> T:
        for _ in range(_ATTEMPTS):
            try:
                return action()
            except KafkaStorageError:
                self.refusals += 1
        return action()


def count_operations(data_dir: Path, code: int) -> int:
    files = NthFault(code)
    life = Patient(data_dir, files)
    life.live()
    life.manager.close()
    return files.operations


@pytest.mark.fault("B11", "B14")
@pytest.mark.parametrize("code", [NO_DESCRIPTORS, NO_SPACE], ids=["descriptors", "space"])
@pytest.mark.parametrize("stride", [14, pytest.param(2, marks=pytest.mark.campaign)])
def test_every_operation_succeeds_after_a_transient_fault(
    tmp_path: Path, code: int, stride: int
) -> None:
    total = count_operations(tmp_path / "whole", code)
    assert total > 50
    refusals = 0
    for first in range(1, total + 1, stride):
        data_dir = tmp_path / str(first)
        life = Patient(data_dir, NthFault(code, first, times=4 if first % 4 == 1 else 1))
        life.live()
        refusals += life.refusals
        life.die()
        check(data_dir, life)
    assert refusals > 10
