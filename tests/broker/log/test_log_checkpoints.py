"""Checkpoints of a data directory."""

import pytest

from kclient.common.types import TopicPartition
from tests.support.disks.log_bench import TOPIC_ID, ManagerBench, make_batch, offsets

A, B = TopicPartition("a", 0), TopicPartition("b-c", 3)


@pytest.mark.fault("B3")
@pytest.mark.parametrize("content", ["garbage", "0\n9\n", "0\n1\na 0 x\n"])
def test_corrupt_checkpoints_are_ignored(managers: ManagerBench, content: str) -> None:
    manager = managers.start()
    manager.get_or_create(A, TOPIC_ID).append_as_leader(make_batch(3), 0)
    manager.close()
    for name in ("recovery-point", "log-start", "replication"):
        (managers.data_dir / f"{name}-offset-checkpoint").write_text(content)
    loaded = managers.start().get_log(A)
    assert loaded is not None
    assert offsets(loaded) == [0, 1, 2]
