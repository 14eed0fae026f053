"""A batch of records: sealing, renumbering, splitting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.broker_errors import InvalidRecordError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.producer.append_outcome import AppendOutcome
from kclient.producer.batch_state import TRANSITIONS, BatchEvent, BatchState, EarlierAttempts
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.producer_batch import ProducerBatch
from kclient.record import CompressionType, ProducerIdAndEpoch, RecordBatch
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


def test_buffer_of_the_pool_is_released_once() -> None:
    buffer = bytearray(1_000)
    batch = ProducerBatch(buffer, PARTS.result(), 0.0, PARTS.pool(10_000, 1_000))
    batch.builder.append(5, None, b"a", None)
    batch.seal(CompressionType.NONE, None)
    assert batch.release() is buffer
    assert batch.release() is None
    assert batch.sealed is None


def test_buffer_of_a_part_is_not_returned_to_the_pool() -> None:
    part = sealed(b"a", b"b").split(PARTS.result)[0]
    assert part.release() is None
    assert part.buffer is None


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


def in_state(state: BatchState) -> ProducerBatch:
    """Return a batch with the fewest events that lead to a state."""
    paths: dict[BatchState, list[BatchEvent]] = {BatchState.NEW: []}
    while state not in paths:
        for (before, event), following in TRANSITIONS.items():
            if before in paths:
                paths.setdefault(following, [*paths[before], event])
    batch = PARTS.batch(b"a")
    for event in paths[state]:
        batch.apply(event)
    return batch


@pytest.mark.parametrize("event", BatchEvent)
@pytest.mark.parametrize("state", BatchState)
def test_event_without_a_transition_is_refused(state: BatchState, event: BatchEvent) -> None:
    batch = in_state(state)
    following = TRANSITIONS.get((state, event))
    if following is not None:
        batch.apply(event)
        assert batch.state is following
        return
    expected = rf"ProducerBatch\(.*no transition for {event.name} in {state.name}$"
    with pytest.raises(IllegalStateError, match=expected):
        batch.apply(event)
    assert batch.state is state


@pytest.mark.parametrize(
    ("outcomes", "written", "in_doubt"),
    [
        ([], False, False),
        ([AppendOutcome.NOT_WRITTEN], False, False),
        ([AppendOutcome.NEVER_WRITTEN], False, False),
        ([AppendOutcome.UNKNOWN], True, True),
        ([AppendOutcome.UNKNOWN, AppendOutcome.NOT_WRITTEN], True, True),
        ([AppendOutcome.UNKNOWN, AppendOutcome.NEVER_WRITTEN], False, True),
        ([AppendOutcome.UNKNOWN, AppendOutcome.NEVER_WRITTEN, AppendOutcome.UNKNOWN], True, True),
    ],
)
def test_doubt_about_a_batch_after_its_requests(
    outcomes: list[AppendOutcome], written: bool, in_doubt: bool
) -> None:
    batch = PARTS.batch(b"a")
    batch.apply(BatchEvent.REGISTERED)
    for outcome in outcomes:
        batch.apply(BatchEvent.SENT)
        assert batch.possibly_written()
        batch.request_failed(outcome)
        batch.apply(BatchEvent.REQUEUED)
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
    left.result.complete(100, -1)
    right.result.complete(200, -1)
    middle = left.record_count
    offsets = [record.result(0).offset for record in records]
    assert offsets == [*range(100, 100 + middle), *range(200, 200 + count - middle)]


@pytest.mark.parametrize("known", EarlierAttempts)
def test_parts_of_a_batch_keep_the_doubt_about_it(known: EarlierAttempts) -> None:
    batch = sealed(b"a", b"b")
    batch.earlier_attempts = known
    written, in_doubt = batch.possibly_written(), batch.is_in_doubt()
    for part in batch.split(PARTS.result):
        assert (part.possibly_written(), part.is_in_doubt()) == (written, in_doubt)
        assert (part.earlier_attempts is EarlierAttempts.UNKNOWN_WHOLE) == written


def test_rejected_part_of_a_possibly_written_batch_may_be_written() -> None:
    batch = sealed(b"a", b"b")
    batch.earlier_attempts = EarlierAttempts.UNKNOWN
    part = batch.split(PARTS.result)[0]
    part.apply(BatchEvent.REGISTERED)
    part.apply(BatchEvent.SENT)
    part.request_failed(AppendOutcome.NEVER_WRITTEN)
    assert part.possibly_written()


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
