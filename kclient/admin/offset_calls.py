"""Admin calls for the offsets of logs: look-ups by time, and the deletion of records."""

from collections.abc import Mapping

from kclient.admin.admin_types import DeletedRecords, ListOffsetsResultInfo, OffsetSpec
from kclient.admin.arguments import check_offset_specs, check_records_to_delete
from kclient.admin.leader_requests import ask_leaders, by_topic
from kclient.admin.requester import Requester, item_error
from kclient.admin.results import Outcomes, Results
from kclient.client.client_request import SimpleBuilder
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError
from kclient.common.types import Node, TopicPartition
from kclient.common.waiting import Steps
from kclient.protocol.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_CLIENT = -1  # the replica id of a client
_ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}
_OLDEST_WITH_ISOLATION = 2
_OLDEST_WITH_SPEC = {-3: 7, -4: 8, -5: 9}  # version of ListOffsets by number of the position


def list_offsets(
    requester: Requester,
    topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
    *,
    isolation_level: str = "read_uncommitted",
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, ListOffsetsResultInfo]]:
    """Look up offsets of partitions: the first, the end, or those of times (ListOffsets).

    Args:
        topic_partition_offsets: What to look up by partition, such as `OffsetSpec.earliest`.
        isolation_level: ``read_committed`` ends a partition at its last stable offset.
        timeout: Timeout in seconds.

    Raises:
        UnknownTopicOrPartitionError: There is no such partition; the error of this item.
        UnsupportedVersionError: The broker does not know the position; the error of its items.
    """
    wanted = check_offset_specs(topic_partition_offsets)
    if isolation_level not in _ISOLATION_LEVELS:
        raise InvalidArgumentError(
            f"isolation_level: got {describe(isolation_level)}, expected 'read_uncommitted' or "
            "'read_committed'"
        )
    requester.limit(timeout)
    return _list_offsets(requester, wanted, _ISOLATION_LEVELS[isolation_level])


def _list_offsets(
    requester: Requester, wanted: Mapping[TopicPartition, OffsetSpec], isolation_level: int
) -> Steps[Results[TopicPartition, ListOffsetsResultInfo]]:
    def ask(
        leader: Node, led: list[TopicPartition]
    ) -> Steps[Outcomes[TopicPartition, ListOffsetsResultInfo]]:
        request = ListOffsetsRequest(
            replica_id=_CLIENT,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=number,
                            timestamp=wanted[TopicPartition(topic, number)].timestamp_ms,
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(led).items()
            ],
            timeout_ms=requester.remaining_ms(),
        )
        oldest = max(_OLDEST_WITH_SPEC.get(wanted[each].timestamp_ms, 1) for each in led)
        if isolation_level:
            oldest = max(oldest, _OLDEST_WITH_ISOLATION)
        builder = SimpleBuilder(request, oldest=oldest)
        response = yield from requester.send_once(leader, builder, ListOffsetsResponse)
        return _found(response)

    outcomes = yield from ask_leaders(requester, list(wanted), ask)
    return Results("list_offsets", outcomes, wanted)


def _found(response: ListOffsetsResponse) -> Outcomes[TopicPartition, ListOffsetsResultInfo]:
    return {
        TopicPartition(topic.name, part.partition_index): (
            item_error(f"partition {topic.name}-{part.partition_index}", part.error_code, None)
            or ListOffsetsResultInfo(part.offset, part.timestamp, part.leader_epoch)
        )
        for topic in response.topics
        for part in topic.partitions
    }


def delete_records(
    requester: Requester,
    records_to_delete: Mapping[TopicPartition, int],
    *,
    timeout: float | None = None,
) -> Steps[Results[TopicPartition, DeletedRecords]]:
    """Delete the records of partitions before an offset (DeleteRecords, KIP-107).

    Args:
        records_to_delete: First offset to keep by partition; -1 for the high watermark, which
            deletes every record.
        timeout: Timeout in seconds.

    Raises:
        OffsetOutOfRangeError: An offset is past the high watermark; the error of this item.
        PolicyViolationError: The topic is only compacted; the error of its items.
        UnknownTopicOrPartitionError: There is no such partition; the error of this item.
    """
    wanted = check_records_to_delete(records_to_delete)
    requester.limit(timeout)
    return _delete_records(requester, wanted)


def _delete_records(
    requester: Requester, wanted: Mapping[TopicPartition, int]
) -> Steps[Results[TopicPartition, DeletedRecords]]:
    def ask(
        leader: Node, led: list[TopicPartition]
    ) -> Steps[Outcomes[TopicPartition, DeletedRecords]]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=number, offset=wanted[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(led).items()
            ],
            timeout_ms=requester.remaining_ms(),
        )
        builder = SimpleBuilder(request)
        response = yield from requester.send_once(leader, builder, DeleteRecordsResponse)
        return _deleted(response)

    outcomes = yield from ask_leaders(requester, list(wanted), ask)
    return Results("delete_records", outcomes, wanted)


def _deleted(response: DeleteRecordsResponse) -> Outcomes[TopicPartition, DeletedRecords]:
    return {
        TopicPartition(topic.name, part.partition_index): (
            item_error(f"partition {topic.name}-{part.partition_index}", part.error_code, None)
            or DeletedRecords(part.low_watermark)
        )
        for topic in response.topics
        for part in topic.partitions
    }
