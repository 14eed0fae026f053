"""Admin calls for committed offsets: versions, retries, and errors by partition."""

from collections.abc import Mapping

import pytest

from kclient.admin import group_offset_calls
from kclient.common.broker_errors import (
    GroupAuthorizationError,
    GroupSubscribedToTopicError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
)
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def commit_responses(world: AdminWorld, *codes: tuple[int, int]) -> None:
    """Let the coordinator return these codes of two partitions, one pair after the other."""
    pairs = list(codes)

    def respond(*_: object) -> Response:
        parts = [
            OffsetCommitResponsePartition(partition_index=number, error_code=code)
            for number, code in enumerate(pairs.pop(0))
        ]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=parts)])

    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_COMMIT, respond, low=2, high=10)


def test_offsets_are_committed_from_outside_the_group() -> None:
    world = AdminWorld()
    commit_responses(world, (16, 0), (0, 3))  # NOT_COORDINATOR, and then an unknown partition
    new: Mapping[TopicPartition, OffsetAndMetadata | int] = {
        FIRST: OffsetAndMetadata(5, "m", 2),
        SECOND: 7,
    }
    results = world.run(group_offset_calls.alter_consumer_group_offsets, "g", new)
    assert results[FIRST] is None
    with pytest.raises(UnknownTopicOrPartitionError, match="group 'g', t-1"):
        results.raise_for_errors()
    request = world.requests(OffsetCommitRequest)[-1]
    assert isinstance(request, OffsetCommitRequest)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
    first, second = request.topics[0].partitions
    assert (first.committed_offset, first.committed_metadata) == (5, "m")
    assert (first.committed_leader_epoch, second.committed_offset) == (2, 7)
    assert world.versions(ApiKey.OFFSET_COMMIT) == [9, 9]  # topics are not named by id


def test_offsets_of_an_active_group_are_not_altered() -> None:
    world = AdminWorld()
    commit_responses(world, (25, 25))
    results = world.run(group_offset_calls.alter_consumer_group_offsets, "g", {FIRST: 5, SECOND: 7})
    assert [type(error) for error in results.errors.values()] == [UnknownMemberIdError] * 2
    with pytest.raises(UnknownMemberIdError, match="the group has active members"):
        results.raise_for_errors()


def test_offsets_that_are_not_deleted_are_named() -> None:
    results = [
        OffsetDeleteResponsePartition(partition_index=0),
        OffsetDeleteResponsePartition(partition_index=1, error_code=86),
    ]
    response = OffsetDeleteResponse(
        topics=[OffsetDeleteResponseTopic(name="t", partitions=results)]
    )
    world = AdminWorld(2)
    world.coordinate("g", 2)
    world.respond(ApiKey.OFFSET_DELETE, lambda *_: response, high=0)
    wanted = [TopicPartition("t", 0), TopicPartition("t", 1)]
    with pytest.raises(GroupSubscribedToTopicError, match="group 'g', t-1"):
        world.run(group_offset_calls.delete_consumer_group_offsets, "g", wanted).raise_for_errors()
    (request,) = world.requests(OffsetDeleteRequest, 2)
    assert isinstance(request, OffsetDeleteRequest)
    assert [part.partition_index for part in request.topics[0].partitions] == [0, 1]


@pytest.mark.parametrize("version", [7, 9])
def test_committed_offsets_of_both_forms_of_the_request(version: int) -> None:
    wanted = [TopicPartition("t", 0), TopicPartition("t", 1)]

    def fetched(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, OffsetFetchRequest)
        if version >= 8:
            (group,) = request.groups
            assert group.group_id == "g"
            assert group.topics is not None
            assert group.topics[0].partition_indexes == [0, 1]
            parts = [
                OffsetFetchResponsePartitions(partition_index=0, committed_offset=5, metadata="m"),
                OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
            ]
            topic = OffsetFetchResponseTopics(name="t", partitions=parts)
            return OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])]
            )
        assert request.group_id == "g"
        assert request.topics is not None
        assert request.topics[0].partition_indexes == [0, 1]
        old = [
            OffsetFetchResponsePartition(partition_index=0, committed_offset=5, metadata="m"),
            OffsetFetchResponsePartition(partition_index=1, committed_offset=-1),
        ]
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=old)])

    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, fetched, low=2, high=version)
    found = world.run(group_offset_calls.list_consumer_group_offsets, "g", wanted)
    assert found == {TopicPartition("t", 0): OffsetAndMetadata(5, "m", -1)}


def test_stable_offsets_are_awaited_until_transactions_end() -> None:
    assert UnstableOffsetCommitError.code is not None
    codes = [UnstableOffsetCommitError.code, 0]

    def fetched(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, OffsetFetchRequest)
        assert request.require_stable
        assert request.topics is None
        part = OffsetFetchResponsePartition(
            partition_index=0, committed_offset=5, error_code=codes.pop(0)
        )
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[part])])

    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, fetched, low=2, high=7)
    found = world.run(group_offset_calls.list_consumer_group_offsets, "g", require_stable=True)
    assert found == {TopicPartition("t", 0): OffsetAndMetadata(5)}
    assert codes == []


def test_stable_offsets_need_a_broker_that_knows_them() -> None:
    world = AdminWorld()
    world.coordinate("g", 1)
    world.respond(ApiKey.OFFSET_FETCH, lambda *_: OffsetFetchResponse(), low=2, high=6)
    with pytest.raises(UnsupportedVersionError):
        world.run(group_offset_calls.list_consumer_group_offsets, "g", require_stable=True)


def test_topic_ids_of_newer_versions_are_not_needed() -> None:
    world = AdminWorld()
    world.coordinate("g", 1)
    response = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])
    world.respond(ApiKey.OFFSET_FETCH, lambda *_: response, low=2, high=10)
    assert world.run(group_offset_calls.list_consumer_group_offsets, "g") == {}
    assert world.versions(ApiKey.OFFSET_FETCH) == [9]


def fetching(world: AdminWorld, *, high: int, unstable: list[str], denied: str = "") -> None:
    """Let coordinators return offset 5 of t-0 for each group.

    Groups of `unstable` have an open transaction once.
    """

    def old(request: OffsetFetchRequest) -> Response:
        code = 30 if request.group_id == denied else 0
        part = OffsetFetchResponsePartition(partition_index=0, committed_offset=5)
        topic = OffsetFetchResponseTopic(name="t", partitions=[part])
        return OffsetFetchResponse(error_code=code, topics=[] if code else [topic])

    def group(name: str) -> OffsetFetchResponseGroup:
        part = OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)
        if name in unstable:
            unstable.remove(name)
            part.error_code = 88
        topic = OffsetFetchResponseTopics(name="t", partitions=[part])
        code = 30 if name == denied else 0
        return OffsetFetchResponseGroup(
            group_id=name, error_code=code, topics=[] if code else [topic]
        )

    def fetched(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, OffsetFetchRequest)
        if high < 8:
            return old(request)
        return OffsetFetchResponse(groups=[group(each.group_id) for each in request.groups])

    world.respond(ApiKey.OFFSET_FETCH, fetched, low=2, high=high)


def fetches(world: AdminWorld) -> list[list[str]]:
    """Return the groups of each OffsetFetch request, those of the first broker first."""
    return [
        [group.group_id for group in each.groups] or [each.group_id]
        for broker in world.brokers
        for each in broker.requests
        if isinstance(each, OffsetFetchRequest)
    ]


@pytest.mark.parametrize(
    ("high", "expected"), [(9, [["a", "no"], ["b"]]), (7, [["a"], ["no"], ["b"]])]
)
def test_offsets_of_several_groups_have_errors_by_group(
    high: int, expected: list[list[str]]
) -> None:
    world = AdminWorld(2)
    for name, number in {"a": 1, "b": 2, "no": 1}.items():
        world.coordinate(name, number)
    fetching(world, high=high, unstable=[], denied="no")
    found = world.run(group_offset_calls.list_offsets_of_consumer_groups, ["b", "a", "no"])
    assert list(found) == ["b", "a", "no"]
    assert {type(error) for error in found.errors.values()} == {GroupAuthorizationError}
    assert found.errors.keys() == {"no"}
    assert found["a"] == found["b"] == {FIRST: OffsetAndMetadata(5)}
    assert fetches(world) == expected


def test_only_the_group_with_an_open_transaction_is_asked_for_again() -> None:
    world = AdminWorld()
    for name in ("a", "b"):
        world.coordinate(name, 1)
    fetching(world, high=9, unstable=["b"])
    found = world.run(
        group_offset_calls.list_offsets_of_consumer_groups, ["a", "b"], require_stable=True
    )
    assert found["a"] == found["b"] == {FIRST: OffsetAndMetadata(5)}
    assert fetches(world) == [["a", "b"], ["b"]]
    (first, _) = world.requests(OffsetFetchRequest)
    assert isinstance(first, OffsetFetchRequest)
    assert first.require_stable


def test_stable_offsets_of_several_groups_need_a_broker_that_knows_them() -> None:
    world = AdminWorld()
    for name in ("a", "b"):
        world.coordinate(name, 1)
    fetching(world, high=6, unstable=[])
    call = group_offset_calls.list_offsets_of_consumer_groups
    found = world.run(call, ["a", "b"], require_stable=True)
    assert {type(error) for error in found.errors.values()} == {UnsupportedVersionError}
    assert world.run(call, ["a", "b"]).errors == {}
