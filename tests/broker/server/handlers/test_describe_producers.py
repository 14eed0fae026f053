"""DescribeProducers requests."""

from kclient.common.broker_errors import UnknownTopicOrPartitionError, code_of
from kclient.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicRequest,
)
from tests.support.clients.transactions import (
    described_producers,
    marker,
    transactional_batch,
    write_markers,
)
from tests.support.clients.wire import Wire, batch

PID, TIMESTAMP = 4000, 1_700_000_000_000


def test_state_of_a_producer_follows_its_transaction(wire: Wire, topic: str) -> None:
    wire.produce(topic, batch([b"plain"]))
    assert described_producers(wire, topic) == []
    records = transactional_batch([b"a", b"b"], PID, 5, epoch=2)
    assert wire.produce(topic, records, transactional_id="id").error_code == 0
    assert described_producers(wire, topic) == [(PID, 2, 6, TIMESTAMP, -1, 1)]
    write_markers(wire, marker(PID, topic, epoch=3, coordinator_epoch=8, transaction_version=2))
    (after,) = described_producers(wire, topic)
    assert (*after[:3], *after[4:]) == (PID, 3, -1, 8, -1)
    assert after[3] > TIMESTAMP


def test_idempotent_producers_are_described(wire: Wire, topic: str) -> None:
    for pid in (PID, PID + 1):
        producer = {"producer_id": pid, "producer_epoch": 0}
        wire.produce(topic, batch([b"a"], base_sequence=0, **producer))
    assert described_producers(wire, topic) == [
        (PID, 0, 0, TIMESTAMP, -1, -1),
        (PID + 1, 0, 0, TIMESTAMP, -1, -1),
    ]


def test_unknown_and_repeated_partitions(wire: Wire, topic: str) -> None:
    wanted = [
        DescribeProducersTopicRequest(name=name, partition_indexes=indexes)
        for name, indexes in ((topic, [0, 2, 0]), ("absent", [0]), (topic, [0, 1]))
    ]
    request = DescribeProducersRequest(topics=wanted)
    response = wire.ask(request, 0, DescribeProducersResponse)
    unknown = code_of(UnknownTopicOrPartitionError)
    assert [
        (each.name, [(part.partition_index, part.error_code) for part in each.partitions])
        for each in response.topics
    ] == [(topic, [(0, 0), (2, unknown), (1, 0)]), ("absent", [(0, unknown)])]
