"""Committed records at the controller, with metadata transactions."""

import pytest

from kclient.broker.controller.metadata_replay import CommittedBatch, MetadataReplay
from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
)

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def level(value: int) -> MetadataRecord:
    return FeatureLevelRecord(name="f", feature_level=value)


def replayed(replay: MetadataReplay, *records: MetadataRecord) -> list[int]:
    """Replay a batch; return the level in each published image."""
    batch = CommittedBatch(replay.offset + len(records), 1, 0, records)
    return [published.image.features["f"] for published in replay.replay(batch)]


def test_batches_without_transaction() -> None:
    replay = MetadataReplay()
    assert replay.is_empty
    assert replayed(replay, level(1), level(2)) == [2]
    assert (replay.image.offset, replay.offset, replay.is_empty) == (1, 1, False)
    assert replayed(replay, NoOpRecord()) == [2]
    replay.skip_to(5)
    assert replay.offset == 5


def test_transaction_takes_effect_at_its_end() -> None:
    replay = MetadataReplay()
    assert replayed(replay, level(1), BEGIN, level(2)) == [1]
    assert replay.in_transaction
    assert replayed(replay, level(3)) == []
    assert replay.image.features["f"] == 1
    assert replayed(replay, level(4), END, level(5)) == [4, 5]
    assert not replay.in_transaction


def test_aborted_transaction_has_no_effect() -> None:
    replay = MetadataReplay()
    assert replayed(replay, level(1)) == [1]
    assert replayed(replay, BEGIN, level(2)) == []
    assert replayed(replay, ABORT, level(3)) == [3]
    assert replay.image.features["f"] == 3


@pytest.mark.parametrize("records", [(BEGIN, BEGIN), (END,), (ABORT,)])
def test_boundaries_out_of_order(records: tuple[MetadataRecord, ...]) -> None:
    with pytest.raises(KafkaError, match="a transaction"):
        replayed(MetadataReplay(), *records)


def test_snapshot_ends_an_open_transaction() -> None:
    replay, other = MetadataReplay(), MetadataReplay()
    replayed(replay, level(1))
    replayed(other, level(7))
    replayed(replay, BEGIN)
    published = replay.load(other.image)
    assert list(published.changes.changed_features) == ["f"]
    assert not replay.in_transaction
    assert replay.image is other.image
