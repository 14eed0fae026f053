"""Requests of a transaction over a bare connection, without its coordinator."""

from collections.abc import Iterable

from kclient.broker.coordinator.runtime.partition_log import partition_for
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kclient.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicRequest,
)
from kclient.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.clients.wire import Wire, batch


def transactional_batch(
    values: Iterable[bytes], producer_id: int, sequence: int = 0, epoch: int = 0
) -> bytes:
    """Return a batch of a transaction."""
    return batch(
        list(values),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )


def marker(
    producer_id: int,
    *topics: str,
    commit: bool = True,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    partitions: tuple[int, ...] = (0,),
) -> WritableTxnMarker:
    """Return a marker for partitions of topics."""
    return WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))
            for topic in topics
        ],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )


def write_markers(
    wire: Wire, *markers: WritableTxnMarker, version: int = 2
) -> dict[tuple[int, str, int], int]:
    """Write markers; return the error code of each producer, topic and partition."""
    request = WriteTxnMarkersRequest(markers=list(markers))
    response = wire.ask(request, version, WriteTxnMarkersResponse)
    return {
        (result.producer_id, topic.name, part.partition_index): part.error_code
        for result in response.markers
        for topic in result.topics
        for part in topic.partitions
    }


def end_transaction(
    wire: Wire, producer_id: int, topic: str, *, commit: bool = True, epoch: int = 0
) -> int:
    """Write a marker to partition 0 of a topic; return the error code."""
    written = write_markers(wire, marker(producer_id, topic, commit=commit, epoch=epoch))
    return written[(producer_id, topic, 0)]


def commit_in_transaction(
    wire: Wire,
    group: str,
    topic: str,
    offset: int,
    producer_id: int,
    *,
    epoch: int = 0,
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
    version: int = 4,
) -> list[int]:
    """Commit an offset of partition 0; return the error codes of the response.

    From version 5 on, Apache Kafka adds the partition to the transaction, which must exist.
    """
    part = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    has_member = version >= 3
    request = TxnOffsetCommitRequest(
        transactional_id="id",
        group_id=group,
        producer_id=producer_id,
        producer_epoch=epoch,
        generation_id_or_member_epoch=generation if has_member else -1,
        member_id=member_id if has_member else "",
        group_instance_id=instance_id if has_member else None,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    response = wire.ask(request, version, TxnOffsetCommitResponse)
    return [part.error_code for topic in response.topics for part in topic.partitions]


def end_group_transaction(
    wire: Wire,
    group: str,
    producer_id: int,
    *,
    commit: bool = True,
    epoch: int = 0,
    transaction_version: int = 0,
) -> int:
    """Write a marker to the partition with a group's offsets; return the error code."""
    count = len(wire.metadata("__consumer_offsets").topics[0].partitions)
    written = write_markers(
        wire,
        marker(
            producer_id,
            "__consumer_offsets",
            commit=commit,
            epoch=epoch,
            transaction_version=transaction_version,
            partitions=(partition_for(group, count),),
        ),
    )
    (code,) = written.values()
    return code


def fetch_offset(
    wire: Wire, group: str, topic: str, *, require_stable: bool = False
) -> tuple[int, int]:
    """Return the committed offset of partition 0, and its error code."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])],
        require_stable=require_stable,
    )
    (found,) = wire.ask(request, 9, OffsetFetchResponse).groups
    (part,) = found.topics[0].partitions
    return part.committed_offset, part.error_code or found.error_code


def described_producers(wire: Wire, topic: str) -> list[tuple[int, ...]]:
    """Return the fields of each producer's state in partition 0."""
    wanted = DescribeProducersTopicRequest(name=topic, partition_indexes=[0])
    request = DescribeProducersRequest(topics=[wanted])
    response = wire.ask(request, 0, DescribeProducersResponse)
    (part,) = response.topics[0].partitions
    assert part.error_code == 0, part
    return sorted(
        (
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_start_offset,
        )
        for each in part.active_producers
    )
