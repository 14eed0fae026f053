"""Future of one record."""

import pickle

import pytest

from kclient.common.broker_errors import RecordTooLargeError, TopicAuthorizationError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.types import RecordMetadata, TopicPartition
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_result import ProduceRequestResult
from tests.support.virtual.producer_parts import TOPIC, ProducerParts

PARTS = ProducerParts()


def future(result: ProduceRequestResult, index: int = 0) -> DeliveryFuture:
    return DeliveryFuture(result, index, 5_000, 3, 7)


def test_metadata_of_an_acknowledged_record() -> None:
    result = PARTS.result()
    record = future(result, 2)
    assert not record.done()
    assert repr(record) == f"DeliveryFuture({TOPIC}-0, pending)"
    result.complete(100, -1)
    assert record.done()
    assert record.result(0) == RecordMetadata(TOPIC, 0, 102, 5_000, 3, 7)
    assert record.exception(0) is None
    assert repr(record) == f"DeliveryFuture({TOPIC}-0, appended)"


def test_time_of_the_append_replaces_the_time_of_the_record() -> None:
    result = PARTS.result()
    result.complete(0, 9_000)
    assert future(result).result(0).timestamp_ms == 9_000


def test_offset_is_unknown_without_acknowledgements() -> None:
    result = PARTS.result()
    result.complete(-1, -1)
    assert future(result, 4).result(0).offset == -1


def test_error_is_that_of_the_record() -> None:
    result = PARTS.result()
    rest, own = RecordTooLargeError("rest"), TopicAuthorizationError("own")
    result.fail(rest, {1: own})
    assert (rest.topic, own.topic) == (None, None)
    for index, given in enumerate((rest, own)):
        error = future(result, index).exception(0)
        assert error is not None
        assert type(error) is type(given)
        assert (str(error), error.topic, error.partition) == (str(given), TOPIC, 0)
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 (its own)
        assert (type(again), again.topic, again.partition) == (type(given), TOPIC, 0)


def test_error_of_several_partitions_has_the_partition_of_each_record() -> None:
    shared = RecordTooLargeError("shared")
    shared.__cause__ = ValueError("cause")
    results = [PARTS.result(TopicPartition(TOPIC, number)) for number in range(2)]
    for result in results:
        result.fail(shared)
    errors = [future(result).exception(0) for result in results]
    assert [error and error.partition for error in errors] == [0, 1]
    assert all(error and error.__cause__ is shared.__cause__ for error in errors)


def test_error_of_a_record_is_raised() -> None:
    result = PARTS.result()
    result.fail(RecordTooLargeError("rest"), {1: TopicAuthorizationError("own")})
    with pytest.raises(TopicAuthorizationError, match="own"):
        future(result, 1).result(0)
    assert repr(future(result)) == f"DeliveryFuture({TOPIC}-0, failed)"


def test_traceback_of_a_shared_error_does_not_grow() -> None:
    result = PARTS.result()
    error = RecordTooLargeError("shared")
    result.fail(error)
    depths = []
    for _ in range(3):
        with pytest.raises(RecordTooLargeError) as caught:
            future(result).result(0)
        depths.append(len(caught.traceback))
    assert len(set(depths)) == 1


def test_wait_ends_at_its_timeout() -> None:
    before_ms = PARTS.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match=r"t-0 has no outcome after 0\.5 s"):
        future(PARTS.result()).result(0.5)
    assert PARTS.clock.now_ms == before_ms + 500


def test_wait_continues_in_the_part_of_a_split_batch() -> None:
    parts = ProducerParts()
    result, left, right = parts.result(), parts.result(), parts.result()
    record = future(result, 3)
    parts.clock.after(10, lambda: result.continue_in([0, 2], [left, right]))
    parts.complete_after(20, right, 50)
    assert record.result(1).offset == 51
    assert parts.clock.now_ms == pytest.approx(1_020)


def test_delivery_callback_receives_metadata_or_error() -> None:
    seen: list[tuple[RecordMetadata | None, KafkaError | None]] = []
    appended, failed = PARTS.result(), PARTS.result()
    error = RecordTooLargeError("x")
    appended.complete(8, -1)
    failed.fail(error)
    for result in (appended, failed):
        future(result).report(lambda metadata, error: seen.append((metadata, error)))
    assert seen[0] == (RecordMetadata(TOPIC, 0, 8, 5_000, 3, 7), None)
    (nothing, reported) = seen[1]
    assert (nothing, type(reported), str(reported)) == (None, RecordTooLargeError, "x")
    assert reported is not None
    assert (reported.topic, reported.partition) == (TOPIC, 0)


def test_removed_done_call_is_not_made() -> None:
    result, seen = PARTS.result(), list[str]()
    record = future(result)

    def kept() -> None:
        seen.append("kept")

    def removed() -> None:
        seen.append("removed")

    assert record.add_done_call(kept)
    assert record.add_done_call(removed)
    record.remove_done_call(removed)
    result.complete(0, -1)
    assert seen == ["kept"]
    assert not record.add_done_call(kept)


def test_done_callback_is_called_once_now_or_later() -> None:
    result, seen = PARTS.result(), list[DeliveryFuture]()
    record = future(result)
    record.add_done_callback(seen.append)
    assert seen == []
    result.complete(0, -1)
    assert seen == [record]
    record.add_done_callback(seen.append)
    assert seen == [record, record]
