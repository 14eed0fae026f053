"""Foreign clients against the broker: each reads what every other writes."""

import pytest

from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord, Sending
from tests.support.clients.wire import Wire

RECORDS = [
    ForeignRecord(
        value=None if number == 9 else b"value %d " % number * 20,
        key=None if number % 3 else b"key %d" % number,
        headers=(("origin", b"test"), ("empty", b"")) if number % 2 else (),
        timestamp_ms=1_700_000_000_000 + number,
        partition=number % 2,
    )
    for number in range(100)
]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("writer", FOREIGN_CLIENTS)
def test_every_client_reads_what_another_wrote(
    cluster: EmbeddedCluster, topic: str, writer: str, codec: str
) -> None:
    sent = FOREIGN_CLIENTS[writer](cluster.bootstrap_servers).produce(
        topic, RECORDS, Sending(codec=codec, idempotence=codec == "lz4")
    )
    assert [record.offset for record in sent if record.partition == 0] == list(range(50))
    for reader in FOREIGN_CLIENTS.values():
        read = reader(cluster.bootstrap_servers).read_all(topic)
        assert sorted(read, key=place) == sorted(sent, key=place)


@pytest.mark.parametrize("acks", ["0", "1"])
@pytest.mark.parametrize("writer", FOREIGN_CLIENTS)
def test_acks_0_and_1(cluster: EmbeddedCluster, topic: str, writer: str, acks: str) -> None:
    client = FOREIGN_CLIENTS[writer](cluster.bootstrap_servers)
    client.produce(topic, RECORDS, Sending(acks=acks))
    read = client.consume(topic, len(RECORDS))
    assert sorted(record.content for record in read if record.key) == sorted(
        record.content for record in RECORDS if record.key
    )


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_topics_are_created_on_first_use(cluster: EmbeddedCluster, name: str) -> None:
    client = FOREIGN_CLIENTS[name](cluster.bootstrap_servers)
    topic = f"made-by-{name}"
    client.produce(topic, [ForeignRecord(value=b"first")])
    assert [record.value for record in client.read_all(topic)] == [b"first"]


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_groups_resume_at_committed_offsets(
    cluster: EmbeddedCluster, topic: str, name: str
) -> None:
    client = FOREIGN_CLIENTS[name](cluster.bootstrap_servers)
    one_partition = [ForeignRecord(value=b"%d" % number, partition=0) for number in range(20)]
    client.produce(topic, one_partition)
    first = client.consume(topic, 5, group=f"group-{topic}")
    second = client.consume(topic, 15, group=f"group-{topic}")
    assert [record.offset for record in first + second] == list(range(20))


@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_member_without_topic_metadata_reads_after_next_rebalance(
    cluster: EmbeddedCluster, topic: str, name: str
) -> None:
    client = FOREIGN_CLIENTS[name](cluster.bootstrap_servers)
    client.produce(topic, [ForeignRecord(value=b"a", partition=0)])
    cluster.faults.delay(ApiKey.METADATA, 0.5, response_only=True)
    cluster.faults.delay(ApiKey.SYNC_GROUP, 0.5, nth=2)
    try:
        found = client.consume(topic, 1, group=f"group-{topic}")
    finally:
        cluster.faults.heal()
    assert [record.value for record in found] == [b"a"]


def place(record: ForeignRecord) -> tuple[int, int]:
    return record.partition, record.offset


def test_kafka_python_fetches_in_a_session(cluster: EmbeddedCluster, wire: Wire) -> None:
    """It reads by incremental fetches: records of one partition after another."""
    wire.create_topic("in-a-session", 20)
    sessions = cluster.broker.services.fetch_sessions
    before = len(sessions)
    client = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap_servers)
    for number in range(3):
        records = [ForeignRecord(value=b"%d" % at, partition=at) for at in range(number, 20, 3)]
        client.produce("in-a-session", records)
    read = client.read_all("in-a-session")
    assert sorted(record.partition for record in read) == list(range(20))
    assert len(sessions) > before
