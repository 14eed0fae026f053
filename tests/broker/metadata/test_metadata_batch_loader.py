"""Replay of batches and transactions."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.metadata.metadata_batch_loader import (
    Fault,
    Manifest,
    MetadataBatchLoader,
    TransactionStateError,
)
from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.raft.raft_types import CommittedBatch
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.support.virtual.metadata_batches import batch_of, control_batch
from tests.support.virtual.metadata_histories import History, histories

BEGIN, END, ABORT = (
    BeginTransactionRecord(name="n"),
    EndTransactionRecord(),
    AbortTransactionRecord(),
)


class Bench:
    """Loader with what it reported."""

    def __init__(self) -> None:
        self.updates: list[tuple[MetadataDelta, MetadataImage, Manifest]] = []
        self.faults: list[Fault] = []
        self.loader = MetadataBatchLoader(
            lambda *update: self.updates.append(update), self.faults.append
        )

    @property
    def offsets(self) -> list[int]:
        return [image.offset for _, image, _ in self.updates]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def setting(value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name="x", value=value)


def test_one_update_for_all_batches(bench: Bench) -> None:
    bench.loader.load([control_batch(0), batch_of(1, setting("1"), setting("2")), control_batch(3)])
    ((delta, image, manifest),) = bench.updates
    assert (image.offset, image.epoch, image.timestamp_ms) == (3, 1, 1003)
    assert image.config(4, "") == {"x": "2"}
    assert list(delta.changed_configs) == [(4, "")]
    assert delta.image == MetadataImage()
    assert manifest == Manifest(is_snapshot=False, size_in_bytes=240)
    bench.loader.load([])
    assert len(bench.updates) == 1


def test_batches_without_records_move_the_offset(bench: Bench) -> None:
    bench.loader.load([control_batch(0, epoch=4)])
    seen = [bench.loader.has_seen_record]
    bench.loader.load([batch_of(1, NoOpRecord(), epoch=4)])
    seen.append(bench.loader.has_seen_record)
    assert seen == [False, True]
    assert bench.offsets == [0, 1]
    assert bench.loader.image.epoch == 4


def test_nothing_is_published_within_a_transaction(bench: Bench) -> None:
    bench.loader.load([batch_of(0, setting("1"))])
    bench.loader.load([batch_of(1, BEGIN, setting("2"))])
    bench.loader.load([batch_of(3, setting("3"))])
    assert bench.offsets == [0]
    assert bench.loader.image.config(4, "") == {"x": "1"}
    bench.loader.load([batch_of(4, setting("4"), END)])
    assert bench.offsets == [0, 5]
    delta, image, manifest = bench.updates[-1]
    assert image.config(4, "") == {"x": "4"}
    assert delta.image.config(4, "") == {"x": "1"}
    assert manifest.size_in_bytes == 300


def test_changes_before_a_transaction_are_published(bench: Bench) -> None:
    bench.loader.load([batch_of(0, setting("1"), BEGIN, setting("2"))])
    assert bench.offsets == [0]
    assert not bench.updates[0][2].is_batch_aligned
    bench.loader.load([batch_of(3, END), batch_of(4, BEGIN)])
    assert bench.offsets == [0, 3]
    assert bench.updates[1][2].is_batch_aligned
    assert bench.loader.image.config(4, "") == {"x": "2"}


def test_abort_drops_the_changes_of_the_transaction(bench: Bench) -> None:
    bench.loader.load([batch_of(0, setting("1")), batch_of(1, BEGIN, setting("2"))])
    bench.loader.load([control_batch(3, epoch=2), batch_of(4, ABORT, epoch=2)])
    assert bench.loader.image.config(4, "") == {"x": "1"}
    assert bench.offsets == [0, 4]
    delta, image, _ = bench.updates[-1]
    assert not delta.changed_configs
    assert image.epoch == 2


@pytest.mark.parametrize(
    "records", [(BEGIN, BEGIN), (END,), (ABORT,), (BEGIN, END, END), (BEGIN, ABORT, END)]
)
def test_transactions_out_of_order_are_fatal(
    bench: Bench, records: tuple[MetadataRecord, ...]
) -> None:
    bench.loader.load([batch_of(0, *records)])
    (fault,) = bench.faults
    assert fault.is_fatal
    assert isinstance(fault.error, TransactionStateError)


def test_records_that_cannot_be_loaded_are_skipped(bench: Bench) -> None:
    unknown = CommittedBatch(
        7, 8, 1, 0, 100, (bytes.fromhex("016300"), batch_of(0, setting("1")).records[0])
    )
    bench.loader.load([batch_of(6, RemoveTopicRecord(topic_id=b"\1" * 16)), unknown])
    assert [fault.is_fatal for fault in bench.faults] == [False, False]
    assert "offset 6" in bench.faults[0].message
    assert "offset 7" in bench.faults[1].message
    assert bench.loader.image.config(4, "") == {"x": "1"}


def test_snapshot_ends_a_transaction(bench: Bench) -> None:
    bench.loader.load([batch_of(0, BEGIN, setting("1"))])
    bench.loader.reset(MetadataImage(offset=9, epoch=3, timestamp_ms=5))
    bench.loader.load([batch_of(10, TopicRecord(name="t", topic_id=b"\1" * 16), epoch=3)])
    assert bench.offsets == [10]
    assert bench.loader.image.configs == {}
    assert list(bench.loader.image.topics) == ["t"]
    assert bench.updates[0][2].size_in_bytes == 100


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(0, 2**32))
def test_any_batches_and_transactions_give_the_image_of_the_records(
    history: History, seed: int
) -> None:
    """Aborted transactions repeat records that follow, and must leave no trace."""
    random = Random(seed)
    bench = Bench()
    offset, position = 0, 0
    pending: list[list[MetadataRecord]] = []
    while position < len(history.records):
        taken = history.records[position : position + random.randrange(1, 6)]
        kind = random.choice(("plain", "transaction", "aborted"))
        if kind == "plain":
            pending.append(list(taken))
        elif kind == "transaction":
            pending += [[BEGIN], list(taken), [END]]
        else:
            pending += [[BEGIN, *taken], [ABORT]]
        position += 0 if kind == "aborted" else len(taken)
    committed: list[MetadataImage] = []
    while pending:
        count = random.randrange(1, 4)
        commit = []
        for records in pending[:count]:
            commit.append(batch_of(offset, *records))
            offset += len(records)
        del pending[:count]
        bench.loader.load(commit)
        committed.append(bench.loader.image)
    assert bench.faults == []
    final, expected = bench.loader.image, history.image
    for name in ("topics", "configs", "brokers", "features", "acls", "scram", "next_producer_id"):
        assert getattr(final, name) == getattr(expected, name)
    assert bench.updates[-1][1] is final
    for before, after in zip(bench.updates, bench.updates[1:], strict=False):
        assert after[0].image is before[1]
