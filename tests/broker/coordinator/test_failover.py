"""Coordinators that fail over at any moment lose no acknowledged commit; planted bugs are found."""

from collections.abc import Callable

import pytest

from kclient.broker.coordinator.runtime.partition_log import ReadBounds, ReplicatedLog
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition
from tests.support.virtual.replicated_groups import ViolationError, run

SEEDS = 40
SEEDS_OF_A_BUG = 200

Replace = Callable[[object, str, object], None]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_failover(seed: int) -> None:
    run(seed)


def test_runs_acknowledge_commits() -> None:
    assert sum(run(seed).acknowledged for seed in range(5)) > 20


def load_to_high_watermark(replace: Replace) -> None:
    bounds = ReplicatedLog.bounds

    def committed(log: ReplicatedLog, partition: int, leader_epoch: int) -> ReadBounds:
        found = bounds(log, partition, leader_epoch)
        return found._replace(log_end_offset=found.high_watermark)

    replace(ReplicatedLog, "bounds", committed)


def respond_before_commit(replace: Replace) -> None:
    bounds = ReplicatedLog.bounds

    def uncommitted(log: ReplicatedLog, partition: int, leader_epoch: int) -> ReadBounds:
        found = bounds(log, partition, leader_epoch)
        return found._replace(high_watermark=found.log_end_offset)

    replace(ReplicatedLog, "bounds", uncommitted)


def complete_in_any_epoch(replace: Replace) -> None:
    def no_error(_log: ReplicatedLog, _key: TopicPartition, _epoch: int) -> None:
        return None

    replace(ReplicatedLog, "_leadership_error", no_error)


def keep_writes(replace: Replace) -> None:
    def keep(_context: ShardContext, _error: KafkaError) -> None:
        return None

    complete_in_any_epoch(replace)
    replace(ShardContext, "close", keep)


@pytest.mark.parametrize(
    "plant", [load_to_high_watermark, respond_before_commit, complete_in_any_epoch, keep_writes]
)
def test_planted_bug_is_found(
    plant: Callable[[Replace], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch.setattr)
    checks = plant in (load_to_high_watermark, respond_before_commit)
    with pytest.raises(ViolationError, match=r"G2|G3|without being"):
        run_all(checks_leader=checks)


def run_all(*, checks_leader: bool) -> None:
    for seed in range(SEEDS_OF_A_BUG):
        run(seed, checks_leader=checks_leader)
