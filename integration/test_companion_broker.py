"""Kafka's own tools, both versions of them, against the companion broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import chosen_versions
from integration.harness.kafka_tools import KafkaTools
from kclient import AdminClient, Consumer, Producer, TopicPartition
from kclient.admin import ScramCredentialInfo, UserScramCredentialUpsertion
from tests.support.clients.foreign import ForeignRecord
from tests.support.processes.broker_process import BrokerProcess

RECORDS = [ForeignRecord(b"v%d" % number, b"k%d" % (number % 5)) for number in range(50)]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def broker(data_dir: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(data_dir) as running:
        yield running


@pytest.fixture(params=chosen_versions())
def java(request: pytest.FixtureRequest, broker: BrokerProcess, tools_for: ToolsFor) -> KafkaTools:
    return tools_for(broker.bootstrap, None, request.param)


def test_java_producer_and_consumer(broker: BrokerProcess, java: KafkaTools) -> None:
    java.create_topic("t", partitions=3)
    java.produce("t", RECORDS)
    found = java.consume("t", len(RECORDS))
    assert sorted(r.value or b"" for r in found) == sorted(r.value or b"" for r in RECORDS)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        ours = {
            key: producer.send("t", b"", key=key).result(10).partition for key in (b"k0", b"k1")
        }
    theirs = {record.key: record.partition for record in found}
    assert ours == {key: theirs[key] for key in ours}


def test_java_consumer_reads_more_than_one_response_holds(
    broker: BrokerProcess, java: KafkaTools
) -> None:
    """With its defaults it requests up to 50 MiB in all and 1 MiB of each partition."""
    partitions = 80
    size = 1_000_000
    java.create_topic("t", partitions=partitions)
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(partitions):
            producer.send("t", (b"%d" % number).ljust(size, b"."), partition=number)
        producer.flush(60)
    found = java.consume("t", partitions, timeout=60)
    values = {record.partition: record.value or b"" for record in found}
    assert all(len(value) == size for value in values.values())
    assert {number: int(value.rstrip(b".")) for number, value in values.items()} == {
        number: number for number in range(partitions)
    }


def test_java_tools_report_topics_and_groups_of_our_clients(
    broker: BrokerProcess, java: KafkaTools
) -> None:
    with (
        AdminClient(bootstrap_servers=broker.bootstrap) as admin,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        java.create_topic("t", partitions=2)
        for number in range(10):
            producer.send("t", b"x", partition=number % 2)
        producer.flush(10)
        with Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            consumer.subscribe("t")
            count = 0
            while count < 10:
                count += len(consumer.poll(1.0))
            consumer.commit()
            assert java.group_state("g").state == "Stable"
        assert [row.partition for row in java.describe_topic("t")] == [0, 1]
        assert java.offsets("t") == {0: 5, 1: 5}
        assert [(row.current_offset, row.lag) for row in java.describe_group("g")] == [
            (5, 0),
            (5, 0),
        ]
        assert java.group_state("g").state == "Empty"
        assert set(admin.list_consumer_group_offsets("g")) == {
            TopicPartition("t", 0),
            TopicPartition("t", 1),
        }


def test_java_tool_administers_users(broker: BrokerProcess, java: KafkaTools) -> None:
    base = ["--bootstrap-server", broker.bootstrap, "--entity-type", "users"]
    alice = ["--entity-name", "alice"]

    def configs(*arguments: str) -> str:
        return java.run("kafka.admin.ConfigCommand", [*base, *arguments]).stdout.decode()

    configs("--alter", *alice, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=canary]")
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        info = ScramCredentialInfo("SCRAM-SHA-256", 8192)
        assert admin.describe_user_scram_credentials() == {"alice": (info,)}
        info = ScramCredentialInfo("SCRAM-SHA-512")
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion("alice", info, "canary"))
        shown = configs("--describe", *alice)
        assert "SCRAM-SHA-256=iterations=8192" in shown
        assert "SCRAM-SHA-512=iterations=4096" in shown
        configs("--alter", *alice, "--delete-config", "SCRAM-SHA-256")
        assert admin.describe_user_scram_credentials() == {"alice": (info,)}


def test_java_dump_tool_reads_every_file(
    broker: BrokerProcess, java: KafkaTools, data_dir: Path
) -> None:
    java.create_topic("t", partitions=1)
    java.produce("t", RECORDS)
    java.consume("t", len(RECORDS), group="g")
    assert broker.stop() == 0
    segments = [path for path in data_dir.glob("*/*.log") if path.stat().st_size]
    assert {"t-0", "__cluster_metadata-0"} <= {path.parent.name for path in segments}
    batches = java.dump_log(*segments)
    assert batches
    assert all(batch.fields["isvalid"] == "true" for batch in batches)
    indexes = [*data_dir.glob("t-0/*.index"), *data_dir.glob("t-0/*.timeindex")]
    assert len(indexes) == 2
    java.dump_log(*indexes)


def test_java_verifiable_clients_receive_all_records(java: KafkaTools) -> None:
    java.create_topic("v", partitions=2)
    consumer = java.verifiable_consumer("v", "verifiers")
    consumer.await_events("partitions_assigned")
    producer = java.verifiable_producer("v", 2_000)
    (summary,) = producer.await_events("tool_data")
    assert summary["acked"] == 2_000
    values = consumer.await_events("record_data", lambda events: len(events) >= 2_000)
    assert sorted(int(event["value"]) for event in values) == list(range(2_000))
    producer.stop()
    consumer.stop()
