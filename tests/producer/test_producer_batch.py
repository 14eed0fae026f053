"""A batch of records: sealing, renumbering, splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.broker_errors import InvalidRecordError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.producer_batch import ProducerBatch, ProducerIdAndEpoch
from kclient.record import CompressionType, RecordBatch
from tests.support.virtual.producer_parts import ProducerParts

PARTS = ProducerParts()
PRODUCER = ProducerIdAndEpoch(7, 2)


def sealed(*values: bytes, codec: CompressionType = CompressionType.NONE) -> ProducerBatch:
    batch = PARTS.batch(*values, size=10_000)
    batch.close()
    batch.assign(PRODUCER, 40)
    batch.seal(codec, None)
    return batch


def values(batch: ProducerBatch) -> list[bytes | None]:
    batch.seal(CompressionType.NONE, None)
    assert batch.sealed is not None
    return [record.value for record in RecordBatch(batch.sealed).records()]


def futures(batch: ProducerBatch) -> list[DeliveryFuture]:
    return [DeliveryFuture(batch.result, index, 5, -1, 1) for index in range(batch.record_count)]


def test_sealed_batch_has_id_epoch_and_sequences() -> None:
    batch = sealed(b"a", b"b", b"c")
    assert batch.sealed is not None
    header = RecordBatch(batch.sealed)
    header.ensure_valid()
    assert (header.producer_id, header.producer_epoch) == PRODUCER
    assert (header.base_sequence, header.last_sequence) == (40, 42)
    assert batch.last_sequence == 42


def test_batch_is_compressed_once() -> None:
    batch = sealed(bytes(5_000), codec=CompressionType.GZIP)
    assert batch.sealed is not None
    assert batch.size_in_bytes == len(batch.sealed) < 500
    assert batch.uncompressed_size > 5_000
    assert batch.seal(CompressionType.NONE, None) is batch.sealed


def test_new_sequence_of_a_sealed_batch_changes_its_header() -> None:
    batch = sealed(b"a", b"b")
    batch.assign(ProducerIdAndEpoch(7, 3), 0)
    assert batch.sealed is not None
    header = RecordBatch(batch.sealed)
    header.ensure_valid()
    assert (header.producer_epoch, header.base_sequence) == (3, 0)


def test_last_sequence_wraps_at_the_maximum() -> None:
    batch = PARTS.batch(b"a", b"b", b"c")
    assert not batch.has_sequence
    batch.close()
    batch.assign(PRODUCER, 2**31 - 2)
    assert batch.last_sequence == 0


def test_size_is_final_when_closed() -> None:
    batch = PARTS.batch(b"a")
    open_size = batch.current_size()
    batch.builder.append(5, None, b"b", None)
    assert batch.current_size() > open_size
    batch.close()
    assert (batch.record_count, batch.current_size()) == (2, batch.builder.size_in_bytes)


def test_batch_is_full_when_no_record_fits() -> None:
    batch = PARTS.batch(size=100)
    assert not batch.is_full()
    while batch.builder.append(5, None, None, None) >= 0:
        pass
    assert batch.is_full()


def test_buffer_is_released_once() -> None:
    batch = sealed(b"a")
    buffer = batch.buffer
    assert batch.release() is buffer
    assert batch.release() is None
    assert batch.sealed is None


def test_batch_grows_to_its_limit_and_keeps_its_records() -> None:
    pool = PARTS.pool(total=100_000, poolable_size=20_000)
    first = pool.try_allocate(4_096)
    assert first is not None
    batch = ProducerBatch(first, PARTS.result(), 0.0, pool)
    sizes = []
    while True:
        if batch.builder.append(5, None, bytes(1_000), None) < 0:
            sizes.append(len(batch.buffer or b""))
            if not batch.grow():
                break
    assert sizes == [4_096, 8_192, 16_384, 20_000]
    assert pool.available() == 80_000
    batch.close()
    assert values(batch) == [bytes(1_000)] * 19
    pool.deallocate(batch.release() or bytearray())
    assert pool.available() == 100_000


def test_batch_does_not_grow_without_memory() -> None:
    pool = PARTS.pool(total=10_000, poolable_size=10_000)
    first = pool.try_allocate(4_096)
    assert first is not None
    batch = ProducerBatch(first, PARTS.result(), 0.0, pool)
    assert not batch.is_full()
    assert not batch.grow()
    assert batch.buffer is first


@pytest.mark.parametrize(
    ("on_wire", "unknown", "was_unknown", "written", "in_doubt"),
    [
        (False, False, False, False, False),
        (True, False, False, True, True),
        (False, True, False, True, True),
        (False, False, True, False, True),
    ],
)
def test_doubt_about_a_failed_batch(
    on_wire: bool, unknown: bool, was_unknown: bool, written: bool, in_doubt: bool
) -> None:
    batch = PARTS.batch(b"a")
    batch.on_wire, batch.outcome_unknown, batch.was_unknown = on_wire, unknown, was_unknown
    assert (batch.possibly_written(), batch.is_in_doubt()) == (written, in_doubt)


@given(st.integers(2, 9))
def test_halves_of_a_split_batch_hold_its_records_in_order(count: int) -> None:
    batch = sealed(*(b"%d" % number for number in range(count)))
    batch.send_order = (5,)
    records = futures(batch)
    left, right = batch.split(PARTS.result)
    assert [*values(left), *values(right)] == [b"%d" % number for number in range(count)]
    assert (left.send_order, right.send_order) == ((5, 0), (5, 1))
    assert left.created_ms == batch.created_ms
    assert not left.pooled
    left.result.complete(100, -1)
    right.result.complete(200, -1)
    middle = left.record_count
    offsets = [record.result(0).offset for record in records]
    assert offsets == [*range(100, 100 + middle), *range(200, 200 + count - middle)]


def test_parts_of_a_batch_with_unknown_outcome_are_marked() -> None:
    batch = sealed(b"a", b"b")
    batch.outcome_unknown = True
    assert all(
        part.outcome_unknown and part.split_with_unknown_outcome
        for part in batch.split(PARTS.result)
    )


def test_batch_that_was_never_sent_is_not_split() -> None:
    with pytest.raises(IllegalStateError):
        PARTS.batch(b"a", b"b").split(PARTS.result)


@given(st.sets(st.integers(0, 5)))
def test_rejected_records_are_split_off(wrong: set[int]) -> None:
    batch = sealed(*(b"%d" % number for number in range(6)))
    records = futures(batch)
    errors: dict[int, KafkaError] = {index: InvalidRecordError(f"{index}") for index in wrong}
    parts, rejected = batch.split_off_rejected(errors, PARTS.result)
    assert [value for part in parts for value in values(part)] == [
        b"%d" % number for number in range(6) if number not in wrong
    ]
    for part in parts:
        part.result.complete(0, -1)
    for each in rejected:
        each.result.fail(KafkaError("the batch"), each.errors)
    found = [record.exception(0) for record in records]
    assert [error and str(error) for error in found] == [
        str(errors[number]) if number in errors else None for number in range(6)
    ]
