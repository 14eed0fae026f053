"""Requests of a transaction over a bare connection, without its coordinator."""

from collections.abc import Iterable

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
