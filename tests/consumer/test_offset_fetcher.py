"""Offsets looked up by reset policy and by time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import cast

import pytest

from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import TopicAuthorizationError, UnsupportedVersionError
from kclient.common.errors import (
    DisconnectedError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.types import OffsetAndTimestamp, TopicPartition
from kclient.consumer.list_offsets_requests import ListOffsetsRequests, ListOffsetsResult
from kclient.consumer.offset_fetcher import OffsetLookup
from kclient.consumer.request_future import RequestFuture
from kclient.protocol.api_keys import ApiKey
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets


def test_failed_lookup_is_retried(world: ConsumerWorld) -> None:
    world.fill(3)
    world.broker.fail(ApiKey.LIST_OFFSETS, 6, 3, 5)
    assert offsets(world.read(world.assigned(), 3)) == [0, 1, 2]


@pytest.mark.fault("R9")
def test_seek_overrides_a_lookup_in_flight(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(auto_offset_reset="latest")
    for _ in range(4):
        consumer.poll(0.0)
        world.sleep(0.9)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 6)) == [4, 5, 6, 7, 8, 9]


def test_lookups_need_no_assignment(world: ConsumerWorld) -> None:
    world.fill(7)
    world.log().start_offset = 2
    consumer = world.consumer()
    assert consumer.beginning_offsets([ORDERS_0, ORDERS_1]) == {ORDERS_0: 2, ORDERS_1: 0}
    assert consumer.end_offsets([ORDERS_0, ORDERS_1]) == {ORDERS_0: 7, ORDERS_1: 0}
    assert consumer.offsets_for_times({ORDERS_0: 1004, ORDERS_1: 1004}) == {
        ORDERS_0: OffsetAndTimestamp(4, 1004, 1),
        ORDERS_1: None,
    }
    assert consumer.beginning_offsets([]) == {}


def test_lookup_of_unknown_topic_times_out(world: ConsumerWorld) -> None:
    with pytest.raises(KafkaTimeoutError, match="nowhere-0"):
        world.consumer().end_offsets([TopicPartition("nowhere", 0)], timeout=1.5)


def test_lookup_by_datetime_result_can_be_sought(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    moment = datetime(1970, 1, 1, 0, 0, 1, 4_999, tzinfo=UTC)  # the record at 4 has 1004 ms
    found = consumer.offsets_for_times({ORDERS_0: moment, ORDERS_1: moment})
    assert found == {ORDERS_0: OffsetAndTimestamp(4, 1004, 1), ORDERS_1: None}
    assert found == consumer.offsets_for_times({ORDERS_0: 1004, ORDERS_1: 1004})
    elsewhere = moment.astimezone(timezone(timedelta(hours=5)))
    assert consumer.offsets_for_times({ORDERS_0: elsewhere})[ORDERS_0] == found[ORDERS_0]
    at = found[ORDERS_0]
    assert at is not None
    consumer.seek(ORDERS_0, at)
    assert offsets(world.read(consumer, 6)) == list(range(4, 10))


@pytest.mark.fault("R9")
@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1S"])
@pytest.mark.parametrize("polls", range(1, 14))
def test_seek_overrides_all_lookups_in_flight(
    world: ConsumerWorld, policy: str, polls: int
) -> None:
    world.fill(10)
    consumer = world.assigned(auto_offset_reset=policy)
    for _ in range(polls):
        consumer.poll(0.0, max_records=1)
        world.sleep(0.9)
    consumer.seek(ORDERS_0, 4)
    assert offsets(world.read(consumer, 6)) == [4, 5, 6, 7, 8, 9]
    assert consumer.position(ORDERS_0) == 10


class Requests:
    """Requests whose responses the test gives."""

    def __init__(self) -> None:
        self.sent: list[dict[TopicPartition, int]] = []
        self.futures: list[RequestFuture[ListOffsetsResult]] = []
        self.leaderless = False

    def send(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[tuple[TopicPartition, ...], RequestFuture[ListOffsetsResult]]:
        if self.leaderless:
            return {}
        self.sent.append(dict(timestamps))
        self.futures.append(RequestFuture())
        return {tuple(timestamps): self.futures[-1]}


BACKOFF = ExponentialBackoff(100, 1000, lambda: 0.0)
BOTH = {ORDERS_0: 5, ORDERS_1: 6}


def step(lookup: OffsetLookup, requests: Requests, now_ms: float) -> float:
    return lookup.step(cast("ListOffsetsRequests", requests), BACKOFF, now_ms)


def test_lookup_repeats_only_partitions_without_a_result() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    assert step(lookup, requests, 0.0) == 100
    found = OffsetAndTimestamp(7, 5, 1)
    requests.futures[0].succeed(ListOffsetsResult(found={ORDERS_0: found}, to_retry={ORDERS_1}))
    assert (lookup.done, lookup.missing) == (False, [ORDERS_1])
    assert step(lookup, requests, 40.0) == 60
    assert step(lookup, requests, 100.0) == 200
    assert requests.sent == [BOTH, {ORDERS_1: 6}]
    requests.futures[1].succeed(ListOffsetsResult(found={ORDERS_1: None}))
    assert lookup.done
    assert lookup.found == {ORDERS_0: found, ORDERS_1: None}


def test_lookup_has_one_request_in_flight_per_partition() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    step(lookup, requests, 0.0)
    assert step(lookup, requests, 500.0) == 100
    assert len(requests.sent) == 1


def test_lookup_without_leader_tries_again_without_longer_backoff() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    requests.leaderless = True
    assert [step(lookup, requests, now_ms) for now_ms in (0.0, 10.0, 20.0)] == [100] * 3
    requests.leaderless = False
    assert step(lookup, requests, 21.0) == 100
    assert len(requests.sent) == 1


def test_retriable_error_repeats_the_request_with_backoff() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    now_ms = 0.0
    waits = []
    for _ in range(3):
        waits.append(step(lookup, requests, now_ms))
        requests.futures[-1].fail(DisconnectedError("gone"))
        now_ms += waits[-1]
    assert waits == [100, 200, 400]
    assert requests.sent == [BOTH] * 3
    assert not lookup.done


def test_fatal_error_of_a_lookup_is_raised() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    step(lookup, requests, 0.0)
    requests.futures[0].fail(KafkaError("fatal"))
    with pytest.raises(KafkaError, match="fatal"):
        assert lookup.done


def test_unauthorized_topic_ends_the_lookup() -> None:
    lookup, requests = OffsetLookup(BOTH), Requests()
    step(lookup, requests, 0.0)
    requests.futures[0].succeed(ListOffsetsResult(unauthorized={"orders"}))
    with pytest.raises(TopicAuthorizationError):
        assert lookup.done


def test_poll_raises_a_fatal_error_of_a_reset_once(world: ConsumerWorld) -> None:
    world.fill(3)
    world.broker.fail(ApiKey.LIST_OFFSETS, 29)
    consumer = world.assigned()
    with pytest.raises(TopicAuthorizationError, match="orders"):
        world.read(consumer, 3)
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]


def test_poll_raises_that_the_broker_cannot_look_up_offsets(world: ConsumerWorld) -> None:
    world.fill(3)
    world.broker.versions[ApiKey.LIST_OFFSETS] = (0, 0)
    consumer = world.assigned()
    for _ in range(2):
        with pytest.raises(UnsupportedVersionError, match="LIST_OFFSETS in versions 0"):
            world.read(consumer, 3)


def test_reset_by_duration_without_a_recent_record_goes_to_the_end(world: ConsumerWorld) -> None:
    world.fill(3)
    consumer = world.assigned(auto_offset_reset="by_duration:PT1S")
    world.poll_until(consumer, lambda: consumer.position(ORDERS_0, timeout=0.5) == 3)
    world.fill(2)
    assert offsets(world.read(consumer, 2)) == [3, 4]
