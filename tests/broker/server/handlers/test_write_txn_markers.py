"""WriteTxnMarkers requests, and what consumers read of transactions."""

import pytest

from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    NotLeaderOrFollowerError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.protocol.messages.fetch import FetchResponse, PartitionData
from kclient.protocol.messages.transactions import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kclient.testing import EmbeddedCluster
from tests.broker.server.handlers.test_log_offsets import list_offset
from tests.support.clients.transactions import (
    end_transaction,
    marker,
    transactional_batch,
    write_markers,
)
from tests.support.clients.wire import Wire, batch, fetch_request, records_of

PID = 4000


def values(found: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_of(found.records)]


def send(
    wire: Wire, topic: str, *, sequence: int = 0, epoch: int = 0, pid: int = PID, index: int = 0
) -> int:
    records = transactional_batch([b"t"], pid, sequence, epoch)
    return wire.produce(topic, records, partition=index, transactional_id="id").error_code


@pytest.mark.parametrize("version", [1, 2])
def test_commit_marker_makes_records_readable(wire: Wire, topic: str, version: int) -> None:
    assert send(wire, topic) == 0
    wire.produce(topic, batch([b"plain"]))
    read = wire.fetch(topic, 0, isolation=1)
    assert (read.last_stable_offset, read.high_watermark, values(read)) == (0, 2, [])
    assert values(wire.fetch(topic, 0)) == [b"t", b"plain"]
    written = write_markers(wire, marker(PID, topic), version=version)
    assert written == {(PID, topic, 0): 0}
    read = wire.fetch(topic, 0, isolation=1)
    assert (read.last_stable_offset, read.aborted_transactions) == (3, [])
    assert values(read)[:2] == [b"t", b"plain"]


def test_abort_marker_lists_the_transaction_to_committed_readers(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"plain"]))
    assert send(wire, topic) == 0
    assert end_transaction(wire, PID, topic, commit=False) == 0
    read = wire.fetch(topic, 0, isolation=1)
    aborted = read.aborted_transactions or []
    assert [(each.producer_id, each.first_offset) for each in aborted] == [(PID, 1)]
    assert wire.fetch(topic, 0).aborted_transactions is None


def test_marker_ends_the_transaction_in_each_partition(wire: Wire, topic: str) -> None:
    assert [send(wire, topic, index=index) for index in (0, 1)] == [0, 0]
    written = write_markers(wire, marker(PID, topic, partitions=(0, 1)))
    assert written == {(PID, topic, 0): 0, (PID, topic, 1): 0}
    for index in (0, 1):
        assert wire.fetch(topic, 0, partition=index, isolation=1).last_stable_offset == 2


def test_markers_of_several_producers_are_written(wire: Wire, topic: str) -> None:
    for pid in (PID, PID + 1):
        assert send(wire, topic, pid=pid) == 0
    written = write_markers(
        wire, marker(PID, topic), marker(PID + 1, topic, "absent", commit=False)
    )
    assert written == {
        (PID, topic, 0): 0,
        (PID + 1, topic, 0): 0,
        (PID + 1, "absent", 0): code_of(UnknownTopicOrPartitionError),
    }
    assert wire.fetch(topic, 0, isolation=1).last_stable_offset == 4


def test_request_without_partitions_gets_a_response(wire: Wire) -> None:
    assert write_markers(wire) == {}
    assert write_markers(wire, marker(PID)) == {}


def test_stale_markers_are_refused(wire: Wire, topic: str) -> None:
    assert send(wire, topic, epoch=3) == 0
    stale = marker(PID, topic, epoch=2)
    assert list(write_markers(wire, stale).values()) == [code_of(InvalidProducerEpochError)]
    present = marker(PID, topic, epoch=3, transaction_version=2)
    assert list(write_markers(wire, present).values()) == [code_of(InvalidProducerEpochError)]
    later = marker(PID, topic, epoch=4, coordinator_epoch=5, transaction_version=2)
    assert list(write_markers(wire, later).values()) == [0]
    assert list(write_markers(wire, later).values()) == [0]
    fenced = marker(PID, topic, epoch=4, coordinator_epoch=4)
    refusal = code_of(TransactionCoordinatorFencedError)
    assert list(write_markers(wire, fenced).values()) == [refusal]
    assert send(wire, topic, epoch=3, sequence=1) == code_of(InvalidProducerEpochError)


def test_negative_producer_id_is_refused(wire: Wire, topic: str) -> None:
    written = write_markers(wire, marker(-1, topic))
    assert written == {(-1, topic, 0): code_of(InvalidRequestError)}
    assert wire.fetch(topic, 0).high_watermark == 0


def test_last_stable_offset_is_listed_as_end_for_committed_readers(wire: Wire, topic: str) -> None:
    assert send(wire, topic) == 0
    wire.produce(topic, batch([b"plain"], timestamp=1_700_000_000_001))
    assert list_offset(wire, topic, -1, isolation=1) == (0, 0, -1)
    assert list_offset(wire, topic, 1_700_000_000_001, isolation=1) == (0, -1, -1)
    assert list_offset(wire, topic, -1) == (0, 2, -1)
    assert end_transaction(wire, PID, topic) == 0
    assert list_offset(wire, topic, -1, isolation=1) == (0, 3, -1)
    assert list_offset(wire, topic, 1_700_000_000_001, isolation=1)[1] == 1


def test_marker_completes_the_waiting_fetch_of_a_committed_reader(
    wire: Wire, other: Wire, topic: str
) -> None:
    assert send(wire, topic) == 0
    other.send(fetch_request(topic, 0, max_wait_ms=60_000, isolation=1), 12)
    assert end_transaction(wire, PID, topic) == 0
    _, response = other.receive(FetchResponse, 12)
    assert response.responses[0].partitions[0].last_stable_offset == 2


def test_marker_of_unknown_producer_changes_no_transaction(wire: Wire, topic: str) -> None:
    assert send(wire, topic) == 0
    assert end_transaction(wire, PID + 7, topic, commit=False) == 0
    assert wire.fetch(topic, 0, isolation=1).last_stable_offset == 0
    assert end_transaction(wire, PID, topic) == 0
    assert wire.fetch(topic, 0, isolation=1).aborted_transactions == []


def test_response_lists_a_producer_once(wire: Wire, topic: str) -> None:
    request = WriteTxnMarkersRequest(
        markers=[marker(PID, topic), marker(PID, topic, partitions=(1,))]
    )
    response = wire.ask(request, 2, WriteTxnMarkersResponse)
    assert [each.producer_id for each in response.markers] == [PID]
    (found,) = response.markers[0].topics
    assert [each.partition_index for each in found.partitions] == [0, 1]


def test_marker_is_repeated_while_the_group_coordinator_is_not_ready(
    wire: Wire, cluster: EmbeddedCluster
) -> None:
    """The transaction coordinator looks for the leader again, and not for another coordinator."""
    wire.metadata("__consumer_offsets", create=True)
    groups = cluster.broker.services.groups
    offsets = groups.partition_of("moved")
    groups.on_resignation(offsets.partition, 1_000)
    written = write_markers(
        wire, marker(PID, "__consumer_offsets", partitions=(offsets.partition,))
    )
    (code,) = written.values()
    assert code == code_of(NotLeaderOrFollowerError)
    assert cluster.broker.services.replica_manager.partition(offsets).log.log_end_offset == 0
