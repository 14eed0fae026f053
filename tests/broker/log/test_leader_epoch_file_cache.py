"""Leader epochs and their checkpoint."""

from pathlib import Path

import pytest

from kclient.broker.log.checkpoint_file import (
    LeaderEpochCheckpointFile,
)
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.common.errors import InvalidArgumentError
from kclient.common.system_files import SystemFiles
from tests.support.disks.faulty_files import FaultySystemFiles

FILES = SystemFiles()


def epochs(directory: Path) -> LeaderEpochFileCache:
    cache = LeaderEpochFileCache(LeaderEpochCheckpointFile(FILES, directory))
    cache.load()
    return cache


def test_epochs_survive_restart(tmp_path: Path) -> None:
    cache = epochs(tmp_path)
    assert cache.latest_epoch is None
    assert cache.end_offset_for(0, 10) == (-1, -1)
    cache.assign(2, 0)
    cache.assign(2, 5)
    cache.assign(4, 11)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n2 0\n4 11\n"
    cache = epochs(tmp_path)
    assert cache.entries == ((2, 0), (4, 11))
    with pytest.raises(InvalidArgumentError, match="leader epoch"):
        cache.assign(-1, 5)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 3)), (2, (2, 11)), (3, (2, 11)), (4, (4, 20)), (5, (-1, -1))],
)
def test_end_offset_for_epoch(tmp_path: Path, epoch: int, expected: tuple[int, int]) -> None:
    cache = epochs(tmp_path)
    cache.assign(2, 3)
    cache.assign(4, 11)
    assert cache.end_offset_for(epoch, 20) == expected


def test_epochs_are_truncated_from_both_ends(tmp_path: Path) -> None:
    cache = epochs(tmp_path)
    for epoch, start in ((1, 0), (2, 10), (3, 20)):
        cache.assign(epoch, start)
    assert [cache.epoch_for_offset(offset) for offset in (0, 9, 10, 25)] == [1, 1, 2, 3]
    cache.truncate_from_start(15)
    assert cache.entries == ((2, 15), (3, 20))
    assert cache.epoch_for_offset(14) == -1
    cache.truncate_from_end(20)
    assert epochs(tmp_path).entries == ((2, 15),)
    cache.assign(5, 12)
    assert epochs(tmp_path).entries == ((5, 12),)
    cache.clear()
    assert epochs(tmp_path).entries == ()


def test_failed_epoch_write_is_rolled_back(tmp_path: Path) -> None:
    files = FaultySystemFiles()
    cache = LeaderEpochFileCache(LeaderEpochCheckpointFile(files, tmp_path))
    cache.assign(1, 0)
    files.fail("write", "leader-epoch-checkpoint")
    with pytest.raises(OSError, match="Input/output"):
        cache.assign(2, 5)
    with pytest.raises(OSError, match="Input/output"):
        cache.clear()
    assert cache.entries == ((1, 0),)
