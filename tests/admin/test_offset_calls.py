"""Admin calls for the offsets of logs: leaders, versions, retries, and errors by partition."""

from collections.abc import Callable

import pytest

from kclient.admin import offset_calls
from kclient.admin.admin_types import DeletedRecords, ListOffsetsResultInfo, OffsetSpec
from kclient.common.broker_errors import (
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.common.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    KafkaTimeoutError,
    ProtocolError,
)
from kclient.common.types import TopicPartition
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.clients.scripted_broker import ScriptedBroker
from tests.support.virtual.admin_world import AdminWorld

FIRST, SECOND, THIRD = (TopicPartition("t", number) for number in range(3))
MISSING = TopicPartition("absent", 0)


def world(brokers: int = 2) -> AdminWorld:
    """Return brokers that lead the partitions of topic t in turn."""
    made = AdminWorld(brokers)

    def metadata(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, MetadataRequest)
        names = [topic.name for topic in request.topics or ()]
        parts = [
            MetadataResponsePartition(partition_index=number, leader_id=1 + number % brokers)
            for number in range(3)
        ]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(
                    node_id=broker.node.id, host=broker.node.host, port=broker.node.port
                )
                for broker in made.brokers
            ],
            topics=[
                MetadataResponseTopic(name=name, partitions=parts)
                if name == "t"
                else MetadataResponseTopic(name=name, error_code=3)
                for name in names
            ],
        )

    made.respond(ApiKey.METADATA, metadata, low=4, high=12)
    return made


def offsets(code: Callable[[int, int], int]) -> Callable[[ScriptedBroker, Request], Response]:
    """Return the offset 10 × partition for each partition, or an error code of each."""
    times = iter(range(100))

    def respond(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, ListOffsetsRequest)
        attempt = next(times)
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=part.partition_index,
                            error_code=code(part.partition_index, attempt),
                            offset=10 * part.partition_index,
                            timestamp=part.timestamp,
                            leader_epoch=4,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return respond


def test_each_leader_is_asked_for_its_partitions() -> None:
    made = world()
    made.respond(ApiKey.LIST_OFFSETS, offsets(lambda *_: 0), low=1, high=9)
    found = made.run(
        offset_calls.list_offsets,
        {
            FIRST: OffsetSpec.earliest(),
            MISSING: OffsetSpec.latest(),
            SECOND: OffsetSpec.latest(),
            THIRD: OffsetSpec.for_timestamp(77),
        },
        isolation_level="read_committed",
    )
    assert list(found) == [FIRST, MISSING, SECOND, THIRD]
    assert found[FIRST] == ListOffsetsResultInfo(0, -2, 4)
    assert found[SECOND] == ListOffsetsResultInfo(10, -1, 4)
    assert found[THIRD] == ListOffsetsResultInfo(20, 77, 4)
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'absent'"):
        found.raise_for_errors()
    sent = [made.requests(ListOffsetsRequest, number) for number in (1, 2)]
    assert [len(requests) for requests in sent] == [1, 1]
    (request,) = sent[0]
    assert isinstance(request, ListOffsetsRequest)
    assert [part.partition_index for part in request.topics[0].partitions] == [0, 2]
    assert (request.replica_id, request.isolation_level) == (-1, 1)


def test_only_partitions_of_a_moved_leader_are_asked_for_again() -> None:
    made = world(1)
    moved = NotLeaderOrFollowerError.code
    assert moved is not None
    codes = lambda number, attempt: moved if (number, attempt) == (1, 0) else 0  # noqa: E731
    made.respond(ApiKey.LIST_OFFSETS, offsets(codes), low=1, high=9)
    specs = dict.fromkeys([FIRST, SECOND], OffsetSpec.latest())
    found = made.run(offset_calls.list_offsets, specs)
    assert [info.offset for info in found.values()] == [0, 10]
    asked = [
        [part.partition_index for part in request.topics[0].partitions]
        for request in made.requests(ListOffsetsRequest)
        if isinstance(request, ListOffsetsRequest)
    ]
    assert asked == [[0, 1], [1]]


def test_partition_without_leader_in_time_has_its_own_error() -> None:
    made = world(1)
    moved = NotLeaderOrFollowerError.code
    assert moved is not None
    codes = lambda number, _: moved if number == 1 else 0  # noqa: E731
    made.respond(ApiKey.LIST_OFFSETS, offsets(codes), low=1, high=9)
    specs = dict.fromkeys([FIRST, SECOND], OffsetSpec.latest())
    found = made.run(offset_calls.list_offsets, specs, timeout=2.0)
    assert found[FIRST].offset == 0
    with pytest.raises(KafkaTimeoutError, match="t-1"):
        _ = found[SECOND]
    with pytest.raises(KafkaTimeoutError):
        made.run(offset_calls.list_offsets, {SECOND: OffsetSpec.latest()}, timeout=2.0)


def test_partition_that_a_leader_omits_has_an_error() -> None:
    made = world(1)

    def empty(_: ScriptedBroker, __: Request) -> Response:
        return ListOffsetsResponse()

    made.respond(ApiKey.LIST_OFFSETS, empty, low=1, high=9)
    found = made.run(offset_calls.list_offsets, {FIRST: OffsetSpec.latest()})
    with pytest.raises(ProtocolError, match="list_offsets: t-0 is missing"):
        _ = found[FIRST]


@pytest.mark.parametrize(
    ("spec", "oldest"),
    [
        (OffsetSpec.max_timestamp(), 7),
        (OffsetSpec.earliest_local(), 8),
        (OffsetSpec.latest_tiered(), 9),
    ],
)
def test_newer_positions_need_a_broker_that_knows_them(spec: OffsetSpec, oldest: int) -> None:
    for high in (oldest - 1, oldest):
        made = world(1)
        made.respond(ApiKey.LIST_OFFSETS, offsets(lambda *_: 0), low=1, high=high)
        found = made.run(offset_calls.list_offsets, {FIRST: spec})
        if high == oldest:
            assert found[FIRST].offset == 0
        else:
            assert isinstance(found.errors[FIRST], UnsupportedVersionError)


def test_records_are_deleted_up_to_an_offset() -> None:
    def deleted(_: ScriptedBroker, request: Request) -> Response:
        assert isinstance(request, DeleteRecordsRequest)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=part.partition_index,
                            low_watermark=9 if part.offset == -1 else part.offset,
                            error_code=1 if part.offset == 99 else 0,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    made = world()
    made.respond(ApiKey.DELETE_RECORDS, deleted, high=2)
    found = made.run(offset_calls.delete_records, {FIRST: 5, SECOND: -1, THIRD: 99})
    assert (found[FIRST], found[SECOND]) == (DeletedRecords(5), DeletedRecords(9))
    assert list(found.errors) == [THIRD]
    with pytest.raises(OffsetOutOfRangeError, match="partition t-2"):
        found.raise_for_errors()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda made: made.run(offset_calls.list_offsets, {FIRST: -1}),
            InvalidTypeError,
            r"topic_partition_offsets\[t-0\]: got -1 \(int\), expected an OffsetSpec",
        ),
        (
            lambda made: made.run(offset_calls.list_offsets, {}),
            InvalidArgumentError,
            "expected at least one partition",
        ),
        (
            lambda made: made.run(
                offset_calls.list_offsets, {FIRST: OffsetSpec.latest()}, isolation_level="committed"
            ),
            InvalidArgumentError,
            "isolation_level: got 'committed'",
        ),
        (
            lambda made: made.run(offset_calls.delete_records, {FIRST: -2}),
            InvalidArgumentError,
            "-1 is the high watermark",
        ),
        (
            lambda made: made.run(offset_calls.delete_records, [FIRST]),
            InvalidTypeError,
            "records_to_delete: got .* expected a dict",
        ),
    ],
)
def test_wrong_arguments_are_refused(
    call: Callable[[AdminWorld], object], kind: type[Exception], text: str
) -> None:
    made = world()
    with pytest.raises(kind, match=text):
        call(made)
    assert made.open_sockets == 0
