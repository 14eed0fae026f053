"""Coordinators that fail over at any moment lose no acknowledged commit; planted bugs are found."""

from collections.abc import Callable, Iterator

import pytest

from kclient.broker.coordinator.group.offsets import OffsetMetadataManager
from kclient.broker.coordinator.runtime.latest_records import LatestRecords, LoadedRecord
from kclient.broker.coordinator.runtime.partition_log import LogBatch, ReadBounds, ReplicatedLog
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


def test_runs_end_transactions() -> None:
    assert sum(run(seed).transactions.ended for seed in range(10)) > 15


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


def load_open_transactions_as_committed(replace: Replace) -> None:
    add = LatestRecords.add

    def add_plain(latest: LatestRecords, batch: LogBatch) -> None:
        add(latest, batch if batch.committed is not None else batch._replace(producer_id=-1))

    replace(LatestRecords, "add", add_plain)


def load_without_open_transactions(replace: Replace) -> None:
    take = LatestRecords.take_records

    def take_applied(latest: LatestRecords) -> Iterator[LoadedRecord]:
        return (record for record in take(latest) if record[3] < 0)

    replace(LatestRecords, "take_records", take_applied)


def commit_aborted_offsets(replace: Replace) -> None:
    end = OffsetMetadataManager.end_transaction

    def commit(offsets: OffsetMetadataManager, producer_id: int, *, committed: bool) -> set[str]:
        return end(offsets, producer_id, committed=True)

    replace(OffsetMetadataManager, "end_transaction", commit)


@pytest.mark.parametrize(
    "plant",
    [
        load_open_transactions_as_committed,
        load_without_open_transactions,
        commit_aborted_offsets,
    ],
)
def test_planted_bug_of_transactions_is_found(
    plant: Callable[[Replace], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch.setattr)
    with pytest.raises(ViolationError, match="G4"):
        run_all(checks_leader=True)


@pytest.mark.parametrize(
    "plant", [load_to_high_watermark, respond_before_commit, complete_in_any_epoch, keep_writes]
)
def test_planted_bug_is_found(
    plant: Callable[[Replace], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch.setattr)
    checks = plant in (load_to_high_watermark, respond_before_commit)
    with pytest.raises(ViolationError, match=r"G2|G3|G4|without being"):
        run_all(checks_leader=checks)


def run_all(*, checks_leader: bool) -> None:
    for seed in range(SEEDS_OF_A_BUG):
        run(seed, checks_leader=checks_leader)
