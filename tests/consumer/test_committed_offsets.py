"""Lookup of committed offsets, and its errors."""

import math

import pytest

from kclient.common.broker_errors import GroupAuthorizationError
from kclient.common.errors import (
    KafkaError,
)
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer import ConsumerGroupMetadata
from kclient.consumer.committed_offsets import CommittedLookup, UnfinishedLookup
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets

_UNKNOWN_SERVER_ERROR = -1


_GROUP_AUTHORIZATION_FAILED = 30


@pytest.mark.fault("R7")
@pytest.mark.parametrize("fault", ["hangs up", "is silent"])
def test_lost_offset_fetch_response_is_retried(world: ConsumerWorld, fault: str) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    consumer = world.consumer(group_id="g", request_timeout_ms=2000)
    consumer.assign([ORDERS_0])
    if fault == "hangs up":
        world.broker.hang_up_on = {ApiKey.OFFSET_FETCH}
    else:
        world.broker.responses[ApiKey.OFFSET_FETCH] = lambda *_: None
    assert not consumer.poll(5.0)
    assert world.broker.asked_for(ApiKey.OFFSET_FETCH) >= 2
    assert world.broker.asked_for(ApiKey.LIST_OFFSETS) == 0
    world.broker.hang_up_on = set()
    world.broker.responses.clear()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R7")
@pytest.mark.parametrize("code", [_GROUP_AUTHORIZATION_FAILED, _UNKNOWN_SERVER_ERROR])
def test_fatal_offset_fetch_error_is_raised_without_reset(world: ConsumerWorld, code: int) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    world.broker.fail(ApiKey.OFFSET_FETCH, code)
    consumer = world.assigned(group_id="g", auto_offset_reset="latest")
    with pytest.raises(KafkaError) as caught:
        world.read(consumer, 1)
    assert caught.value.code == code
    assert world.broker.asked_for(ApiKey.LIST_OFFSETS) == 0
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


NOT_COORDINATOR = 16


COORDINATOR_LOADING = 14


def test_reading_starts_at_the_committed_offset(world: ConsumerWorld) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R7")
@pytest.mark.parametrize("code", [NOT_COORDINATOR, COORDINATOR_LOADING, 15, 88, 7])
def test_failed_offset_fetch_does_not_reset_by_policy(world: ConsumerWorld, code: int) -> None:
    world.fill(10)
    world.broker.group.committed[ORDERS_0] = (6, "", -1)
    world.broker.fail(ApiKey.OFFSET_FETCH, *[code] * 5)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


class Lookups:
    """Looks up committed offsets, driven step by step."""

    def __init__(self, world: ConsumerWorld) -> None:
        self.world = world
        self.core = world.core(group_id="g")
        assert self.core.group is not None
        self.committed = self.core.group.committed_offsets
        while self.core.network.metadata.cluster().is_bootstrap:
            self.poll()

    def poll(self) -> None:
        self.core.network.poll(50.0, self.world.clock.now_ms)

    def run(self, lookup: CommittedLookup) -> CommittedLookup:
        for _ in range(200):
            if lookup.done:
                return lookup
            lookup.step(self.committed, self.core.network.backoff, self.world.clock.now_ms)
            self.poll()
        raise AssertionError("not done")


@pytest.fixture
def lookups(world: ConsumerWorld) -> Lookups:
    return Lookups(world)


def test_partition_without_committed_offset_is_none(lookups: Lookups) -> None:
    lookups.world.broker.group.committed[ORDERS_0] = (6, "note", 3)
    lookup = lookups.run(CommittedLookup([ORDERS_0, ORDERS_1]))
    assert lookup.value == {ORDERS_0: OffsetAndMetadata(6, "note", 3), ORDERS_1: None}
    assert lookup.step(lookups.committed, lookups.core.network.backoff, 0.0) == math.inf


def test_lookup_of_no_partition_needs_no_request(lookups: Lookups) -> None:
    lookup = CommittedLookup([])
    assert lookup.done
    assert lookup.value == {}


@pytest.mark.parametrize("version", [1, 7, 8, 9])
def test_every_version_of_the_request_finds_the_offset(lookups: Lookups, version: int) -> None:
    broker = lookups.world.broker
    broker.versions[ApiKey.OFFSET_FETCH] = (1, version)
    requests: list[OffsetFetchRequest] = []

    def respond(_header: object, request: Request) -> OffsetFetchResponse:
        assert isinstance(request, OffsetFetchRequest)
        requests.append(request)
        if version >= 8:
            group_part = OffsetFetchResponsePartitions(partition_index=0, committed_offset=6)
            topics = [OffsetFetchResponseTopics(name="orders", partitions=[group_part])]
            return OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)]
            )
        topic = OffsetFetchResponseTopic(
            name="orders",
            partitions=[OffsetFetchResponsePartition(partition_index=0, committed_offset=6)],
        )
        return OffsetFetchResponse(topics=[topic])

    broker.responses[ApiKey.OFFSET_FETCH] = respond
    found = lookups.run(CommittedLookup([ORDERS_0])).value[ORDERS_0]
    assert found is not None
    assert found.offset == 6
    assert requests[0].require_stable == (version >= 7)


def test_incomplete_response_is_retried(lookups: Lookups) -> None:
    broker = lookups.world.broker

    def empty(_header: object, _request: Request) -> OffsetFetchResponse:
        del broker.responses[ApiKey.OFFSET_FETCH]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])

    broker.responses[ApiKey.OFFSET_FETCH] = empty
    broker.group.committed[ORDERS_0] = (6, "", -1)
    assert lookups.run(CommittedLookup([ORDERS_0])).value[ORDERS_0] == OffsetAndMetadata(6)
    assert broker.asked_for(ApiKey.OFFSET_FETCH) == 2


def test_fatal_error_ends_the_lookup(lookups: Lookups) -> None:
    lookups.world.broker.fail(ApiKey.OFFSET_FETCH, 30)
    lookup = lookups.run(CommittedLookup([ORDERS_0]))
    with pytest.raises(GroupAuthorizationError, match="not authorized to access group 'g'"):
        assert lookup.value


def test_moved_coordinator_is_discarded(lookups: Lookups) -> None:
    lookups.world.broker.fail(ApiKey.OFFSET_FETCH, 16)
    lookups.run(CommittedLookup([ORDERS_0]))
    assert lookups.world.broker.asked_for(ApiKey.FIND_COORDINATOR) == 2


MEMBER = ConsumerGroupMetadata("g", 1, "m")


@pytest.fixture
def unfinished() -> UnfinishedLookup:
    return UnfinishedLookup(1000.0)


def test_lookup_continues_in_the_next_call(unfinished: UnfinishedLookup) -> None:
    first = unfinished.begin([ORDERS_0], MEMBER, 0.0)
    assert unfinished.begin([ORDERS_0], MEMBER, 999.0) is first
    assert unfinished.begin([ORDERS_0], MEMBER, 1000.0) is not first


@pytest.mark.parametrize(
    ("partitions", "member"),
    [([ORDERS_1], MEMBER), ([ORDERS_0], MEMBER._replace(generation_id=2))],
)
def test_lookup_of_other_partitions_or_generation_starts_again(
    unfinished: UnfinishedLookup, partitions: list[TopicPartition], member: ConsumerGroupMetadata
) -> None:
    first = unfinished.begin([ORDERS_0], MEMBER, 0.0)
    other = unfinished.begin(partitions, member, 1.0)
    assert other is not first
    assert other.partitions == tuple(partitions)


def test_discarded_lookup_starts_again(unfinished: UnfinishedLookup) -> None:
    first = unfinished.begin([ORDERS_0], MEMBER, 0.0)
    unfinished.discard()
    assert unfinished.begin([ORDERS_0], MEMBER, 1.0) is not first
