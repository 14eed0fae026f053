"""Admin calls for topics: requests by version, results, and errors by topic."""

from typing import Any

import pytest

from kclient.admin import topic_calls
from kclient.admin.admin_types import CreatedTopic, TopicListing, TopicPartitionInfo
from kclient.admin.new_topic import NewTopic
from kclient.common.broker_errors import (
    NotControllerError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError, ProtocolError
from kclient.common.uuids import uuid_to_text
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponseTopic
from kclient.protocol.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

TOPIC_ID, OTHER_ID = b"i" * 16, b"o" * 16


def created(_: ScriptedBroker, request: Request) -> Response:
    """Create the topics, except those whose names begin with "old"."""
    assert isinstance(request, CreateTopicsRequest)
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=topic.name,
                topic_id=TOPIC_ID,
                error_code=36 if topic.name.startswith("old") else 0,
                num_partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
            )
            for topic in request.topics
        ]
    )


def create(world: AdminWorld, *topics: NewTopic) -> dict[str, CreatedTopic]:
    return dict(world.run(topic_calls.create_topics, topics).raise_for_errors())


def test_created_topics_are_returned_by_name() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_TOPICS, created, high=7)
    found = create(world, NewTopic("a", 2, 1, {"retention.ms": "5"}), NewTopic("b", 3, 1))
    assert found == {
        "a": CreatedTopic("a", uuid_to_text(TOPIC_ID), 2, 1),
        "b": CreatedTopic("b", uuid_to_text(TOPIC_ID), 3, 1),
    }
    (request,) = world.requests(CreateTopicsRequest)
    assert isinstance(request, CreateTopicsRequest)
    (config,) = request.topics[0].configs
    assert (config.name, config.value) == ("retention.ms", "5")
    assert 0 < request.timeout_ms <= 10_000


def test_old_broker_sends_no_id() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_TOPICS, created, low=2, high=3)
    assert create(world, NewTopic("a", 2, 1)) == {"a": CreatedTopic("a", None, -1, -1)}


def test_default_counts_need_version_4() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_TOPICS, created, low=2, high=3)
    with pytest.raises(Exception, match="CREATE_TOPICS"):
        create(world, NewTopic("a"))
    assert world.requests(CreateTopicsRequest) == []


def test_each_topic_that_failed_is_named() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_TOPICS, created, high=7)
    with pytest.raises(TopicExistsError, match="topic 'old-1'") as caught:
        create(world, NewTopic("new", 1, 1), NewTopic("old-1", 1, 1), NewTopic("old-2", 1, 1))
    assert "topic 'old-2'" in caught.value.__notes__[0]


def test_assignments_exclude_counts() -> None:
    world = AdminWorld()
    world.respond(ApiKey.CREATE_TOPICS, created, high=7)
    create(world, NewTopic("a", replica_assignments={0: [1, 2], 1: [2, 1]}))
    (request,) = world.requests(CreateTopicsRequest)
    assert isinstance(request, CreateTopicsRequest)
    assert {each.partition_index: each.broker_ids for each in request.topics[0].assignments} == {
        0: [1, 2],
        1: [2, 1],
    }
    with pytest.raises(InvalidArgumentError, match="got replica_assignments and counts"):
        create(world, NewTopic("b", 2, replica_assignments={0: [1]}))


@pytest.mark.parametrize("version", [1, 5, 6])
def test_names_to_delete_are_in_the_list_of_the_version(version: int) -> None:
    def deleted(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DeleteTopicsRequest)
        names = request.topic_names or [topic.name or "" for topic in request.topics]
        assert names == ["a", "missing"]
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(name=name, error_code=3 if name == "missing" else 0)
                for name in names
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.DELETE_TOPICS, deleted, low=1, high=version)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'missing'"):
        world.run(topic_calls.delete_topics, ["a", "missing"]).raise_for_errors()
    assert world.versions(ApiKey.DELETE_TOPICS) == [version]


def test_listing_does_not_create_topics() -> None:
    world = AdminWorld()
    world.brokers[0].topics = {"a": [1]}
    found = world.run(topic_calls.list_topics, include_internal=False)
    assert found == [TopicListing("a", uuid_to_text(bytes(15) + b"\x07"), False)]
    request = world.requests(MetadataRequest)[-1]
    assert isinstance(request, MetadataRequest)
    assert (request.topics, request.allow_auto_topic_creation) == (None, False)


def test_described_partitions_have_leader_and_replicas() -> None:
    world = AdminWorld()
    world.brokers[0].topics = {"a": [1, -1]}
    described = world.run(topic_calls.describe_topics, ["a"])["a"]
    assert described.partitions == (
        TopicPartitionInfo(0, 1, (1,), (1,)),
        TopicPartitionInfo(1, None, (-1,), (-1,)),
    )
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'b'"):
        world.run(topic_calls.describe_topics, ["a", "b"]).raise_for_errors()


def page(_: ScriptedBroker, request: Request) -> Response:
    """Describe two topics of two partitions, one partition in a response."""
    assert isinstance(request, DescribeTopicPartitionsRequest)
    assert request.response_partition_limit == 1
    every = [(topic.name, number) for topic in request.topics for number in (0, 1)]
    start = request.cursor
    left = [
        each for each in every if start is None or each >= (start.topic_name, start.partition_index)
    ]
    name, number = left[0]
    partition = DescribeTopicPartitionsResponsePartition(
        partition_index=number, leader_id=1, replica_nodes=[1], isr_nodes=[], last_known_elr=[1]
    )
    following = Cursor(topic_name=left[1][0], partition_index=left[1][1]) if left[1:] else None
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(name=name, partitions=[partition])],
        next_cursor=following,
    )


def test_topics_are_described_in_pages() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page, high=0)
    found = world.run(topic_calls.describe_topics, ["b", "a"], partition_size_limit_per_response=1)
    expected = tuple(TopicPartitionInfo(n, 1, (1,), (), None, (1,)) for n in (0, 1))
    assert {name: topic.partitions for name, topic in found.items()} == dict.fromkeys(
        ("a", "b"), expected
    )
    assert len(world.requests(DescribeTopicPartitionsRequest)) == 4


def test_cursor_that_does_not_advance_is_an_error() -> None:
    world = AdminWorld()
    response = DescribeTopicPartitionsResponse(
        next_cursor=Cursor(topic_name="a", partition_index=0)
    )
    world.respond(ApiKey.DESCRIBE_TOPIC_PARTITIONS, lambda *_: response, high=0)
    with pytest.raises(ProtocolError, match="did not advance"):
        world.run(topic_calls.describe_topics, ["a"])


def test_partitions_are_added_up_to_the_totals() -> None:
    def added(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, CreatePartitionsRequest)
        return CreatePartitionsResponse(
            results=[CreatePartitionsTopicResult(name=topic.name) for topic in request.topics]
        )

    world = AdminWorld()
    world.respond(ApiKey.CREATE_PARTITIONS, added, high=3)
    world.run(topic_calls.create_partitions, {"a": 3, "b": 5}, validate_only=True)
    (request,) = world.requests(CreatePartitionsRequest)
    assert isinstance(request, CreatePartitionsRequest)
    assert request.validate_only
    assert {topic.name: topic.count for topic in request.topics} == {"a": 3, "b": 5}


def test_topics_are_deleted_by_id() -> None:
    def deleted(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DeleteTopicsRequest)
        assert [each.name for each in request.topics] == [None, None]
        codes = {TOPIC_ID: 0, OTHER_ID: 100}
        return DeleteTopicsResponse(
            responses=[
                DeletableTopicResult(
                    name="a" if each.topic_id == TOPIC_ID else None,
                    topic_id=each.topic_id,
                    error_code=codes[each.topic_id],
                )
                for each in request.topics
            ]
        )

    world = AdminWorld()
    world.respond(ApiKey.DELETE_TOPICS, deleted, low=1, high=6)
    first, other = uuid_to_text(TOPIC_ID), uuid_to_text(OTHER_ID)
    results = world.run(topic_calls.delete_topics, topic_ids=[first, other])
    assert results[first] is None
    with pytest.raises(UnknownTopicIdError, match=f"topic id '{other}'"):
        results.raise_for_errors()


def test_topics_are_described_by_id() -> None:
    def described(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, MetadataRequest)
        broker = world.brokers[0]
        response = broker.metadata(MetadataRequest(topics=[]))
        for each in request.topics or ():
            known = each.topic_id == TOPIC_ID
            response.topics.append(
                MetadataResponseTopic(
                    name="a" if known else None,
                    topic_id=each.topic_id,
                    error_code=0 if known else 100,
                )
            )
        return response

    world = AdminWorld()
    world.respond(ApiKey.METADATA, described, high=12)
    first, other = uuid_to_text(TOPIC_ID), uuid_to_text(OTHER_ID)
    results = world.run(topic_calls.describe_topics, topic_ids=(first, other))
    assert (results[first].name, results[first].topic_id) == ("a", first)
    with pytest.raises(UnknownTopicIdError, match=f"topic id '{other}'"):
        world.run(topic_calls.describe_topics, topic_ids=other)
    assert results.errors.keys() == {other}


def test_id_that_the_response_omits_has_an_error() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DELETE_TOPICS, lambda *_: DeleteTopicsResponse(), low=1, high=6)
    topic_id = uuid_to_text(TOPIC_ID)
    calls: list[Any] = [topic_calls.describe_topics, topic_calls.delete_topics]
    for call in calls:
        world.brokers[0].responses[ApiKey.METADATA] = lambda *_: world.brokers[0].metadata(
            MetadataRequest(topics=[])
        )
        with pytest.raises(ProtocolError, match="is missing in the response"):
            world.run(call, topic_ids=topic_id)


def test_old_broker_does_not_know_topics_by_id() -> None:
    world = AdminWorld()
    world.respond(ApiKey.DELETE_TOPICS, lambda *_: DeleteTopicsResponse(), low=1, high=5)
    world.brokers[0].versions[ApiKey.METADATA] = (0, 11)
    calls: list[Any] = [topic_calls.describe_topics, topic_calls.delete_topics]
    for call in calls:
        with pytest.raises(UnsupportedVersionError):
            world.run(call, topic_ids=uuid_to_text(TOPIC_ID))
    assert world.requests(DeleteTopicsRequest) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"names": ["a"], "topic_ids": [uuid_to_text(TOPIC_ID)]},
        {"topic_ids": []},
        {"topic_ids": ["a"]},
        {"topic_ids": [TOPIC_ID]},
        {"topic_ids": 1},
    ],
)
def test_topics_are_given_by_name_or_by_id(arguments: dict[str, Any]) -> None:
    calls: list[Any] = [topic_calls.describe_topics, topic_calls.delete_topics]
    for call in calls:
        with pytest.raises((InvalidArgumentError, InvalidTypeError), match=r"^topic_ids: "):
            AdminWorld().run(call, **arguments)


def test_topics_are_created_again_once_a_controller_is_active() -> None:
    world = AdminWorld()
    attempts = 0

    def create(_: ScriptedBroker, request: Request) -> Response:
        nonlocal attempts
        attempts += 1
        assert isinstance(request, CreateTopicsRequest)
        code = 41 if attempts < 3 else 0  # NOT_CONTROLLER
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=each.name, error_code=code) for each in request.topics
            ]
        )

    world.respond(ApiKey.CREATE_TOPICS, create, high=7)
    world.run(topic_calls.create_topics, NewTopic("t", 1, 1), retry_on_quota_violation=False)
    assert attempts == 3


def test_error_of_a_missing_controller_has_a_note_about_the_last_attempt() -> None:
    world = AdminWorld()

    def refuse(_: ScriptedBroker, request: Request) -> Response:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=41)])

    world.respond(ApiKey.CREATE_TOPICS, refuse, high=7)
    with pytest.raises(NotControllerError, match="topic 't'") as caught:
        world.run(topic_calls.create_topics, NewTopic("t", 1, 1))
    (note,) = caught.value.__notes__
    assert note.startswith("the last attempt: gave up retrying: topic 't'")
