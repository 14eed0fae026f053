"""Future of many records: several segments of batches."""

import pytest

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import KafkaTimeoutError
from kclient.producer.batch_delivery import BatchDelivery, Segment
from kclient.producer.produce_request_result import ProduceRequestResult
from tests.support.virtual.producer_parts import TOPIC, ProducerParts

PARTS = ProducerParts()


def delivery(*segments: tuple[ProduceRequestResult, int, int]) -> BatchDelivery:
    return BatchDelivery([Segment(*each) for each in segments], PARTS.clock)


def test_result_counts_the_records_of_all_segments() -> None:
    first, second = PARTS.result(), PARTS.result()
    sent = delivery((first, 3, 2), (second, 0, 5))
    assert len(sent) == 7
    first.complete(10, -1)
    assert not sent.done()
    second.complete(0, -1)
    assert sent.done()
    assert sent.result(0) == 7
    assert list(sent.failures()) == []


def test_pending_records_time_out() -> None:
    first, second = PARTS.result(), PARTS.result()
    first.complete(0, -1)
    before_ms = PARTS.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match=r"after 0\.2 s"):
        delivery((first, 0, 1), (second, 0, 1)).result(0.2)
    assert PARTS.clock.now_ms == before_ms + 200


def test_first_failure_in_the_order_of_the_append_is_raised() -> None:
    early, late = RecordTooLargeError("early"), RecordTooLargeError("late")
    first, second = PARTS.result(), PARTS.result()
    sent = delivery((first, 0, 2), (second, 0, 2))
    second.fail(late)
    first.fail(early)
    with pytest.raises(RecordTooLargeError, match="early"):
        sent.result(0)
    assert [str(error) for error in sent.failures()] == ["early", "early", "late", "late"]
    assert {(error.topic, error.partition) for error in sent.failures()} == {(TOPIC, 0)}


def test_failures_are_those_of_its_own_records_only() -> None:
    own, other = RecordTooLargeError("own"), RecordTooLargeError("other")
    result = PARTS.result()
    sent = delivery((result, 2, 2))
    result.fail(RecordTooLargeError("rest"), {0: other, 3: own})
    assert [str(error) for error in sent.failures()] == ["rest", "own"]


def test_records_of_a_split_batch_have_the_outcomes_of_its_parts() -> None:
    result, left, right = PARTS.result(), PARTS.result(), PARTS.result()
    sent = delivery((result, 0, 4))
    result.continue_in([0, 2], [left, right])
    left.complete(0, -1)
    assert not sent.done()
    right.fail(RecordTooLargeError("right"))
    assert sent.done()
    assert [str(error) for error in sent.failures()] == ["right", "right"]


def test_done_call_follows_the_last_outcome() -> None:
    results = [PARTS.result() for _ in range(3)]
    left, right = PARTS.result(), PARTS.result()
    sent = delivery(*((result, 0, 1) for result in results))
    seen: list[BatchDelivery] = []
    sent.add_done_callback(seen.append)
    results[2].complete(0, -1)
    results[0].continue_in([0, 1], [left, right])
    left.complete(0, -1)
    results[1].complete(0, -1)
    assert seen == []
    right.complete(0, -1)
    assert seen == [sent]
    sent.add_done_callback(seen.append)
    assert seen == [sent, sent]
    assert not sent.add_done_call(lambda: None)
