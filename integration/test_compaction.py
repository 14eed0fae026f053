"""Logs compacted by the companion broker, read by Kafka's tool and by Kafka."""

import random
from pathlib import Path

from confluent_kafka import Producer

from integration.conftest import StartCluster, ToolsFor
from integration.harness.kafka_cluster import ClusterOptions
from integration.harness.running_kafka import RunningKafka
from integration.test_log_format import SEGMENT_BYTES, assert_dumps_agree, version
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.record import CompressionType, ControlRecordType, EndTxnMarker, build_end_txn_batch
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.disks.clean_log import clean, keyed_batch, last_values, records

COMPACT = LogConfig(cleanup_policy=("compact",), segment_bytes=SEGMENT_BYTES)


def fill(log: UnifiedLog) -> None:
    """Append batches of every codec, tombstones, and transactions that end either way."""
    now_ms = system_runtime().clock.wall_ms()
    rng = random.Random(3)
    for number in range(400):
        pairs = [
            (
                b"key %d" % rng.randrange(500),
                None if rng.random() < 0.1 else b"%d" % rng.getrandbits(600),
            )
            for _ in range(20)
        ]
        codec = CompressionType(number % len(CompressionType))
        producer = (8000 + number % 3, 0, number // 3 * 20)
        log.append_as_leader(
            keyed_batch(pairs, timestamp=now_ms, producer=producer, codec=codec), 0
        )
    for number, kind in enumerate([ControlRecordType.COMMIT, ControlRecordType.ABORT]):
        batch = keyed_batch(
            [(b"key 1", b"%d" % number)],
            timestamp=now_ms,
            producer=(9000, 0, number),
            transactional=True,
        )
        log.append_as_leader(batch, 0)
        marker = build_end_txn_batch(EndTxnMarker(kind, 0), 9000, 0, now_ms)
        log.append_as_leader(marker, 0, origin="coordinator")
    log.high_watermark = log.log_end_offset


@version
def test_dump_log_of_kafka_reads_compacted_log(
    tmp_path: Path, tools_for: ToolsFor, version: str
) -> None:
    logs = LogManager(tmp_path / "data", system_runtime(), COMPACT)
    log = logs.get_or_create(TopicPartition("table", 0), bytes(range(16)))
    fill(log)
    log.maintenance.roll()
    before = len(records(log))
    clean(log)
    left = records(log)
    assert len(left) <= 501 < before
    logs.close()
    directory = tmp_path / "data" / "table-0"
    tools = tools_for("127.0.0.1:1", None, version)
    for path in directory.glob("*.deleted"):
        path.unlink()
    assert_dumps_agree(tools, int(version[0]), directory)
    batches = tools.dump_log(*sorted(directory.glob("*.log")))
    assert all(found.fields["isvalid"] == "true" for found in batches)
    assert any(found.fields["count"] == "0" for found in batches)


@version
def test_kafka_continues_compacted_log(start_cluster: StartCluster, version: str) -> None:
    cluster = start_cluster(ClusterOptions(heap_mb=512), version)
    node = cluster.nodes[0]
    kafka = RunningKafka(version, cluster.bootstrap(), cluster)
    name = kafka.create_topic(
        configs={
            "cleanup.policy": "compact",
            "segment.bytes": str(SEGMENT_BYTES),
            "min.compaction.lag.ms": "3600000",  # Kafka's own cleaner is off
        }
    )
    expected = {}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True})
    rng = random.Random(5)
    for number in range(8000):
        key, value = b"key %d" % rng.randrange(300), b"%d " % number + rng.randbytes(200)
        producer.produce(name, value, key)
        expected[key] = value
        producer.poll(0)
    assert producer.flush(60) == 0
    node.stop()

    logs = LogManager(node.data_directory, system_runtime(), LogConfig())
    logs.load({name: COMPACT})
    epoch = logs.last_broker_epoch
    log = logs.get_log(TopicPartition(name, 0))
    assert log is not None
    log.high_watermark = log.log_end_offset
    log.maintenance.roll()
    clean(log)
    assert last_values(log) == expected
    assert len(records(log)) == len(expected) == 300
    logs.close(broker_epoch=epoch)

    node.start()
    client = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap())
    read = client.consume(name, 300)
    assert {record.key: record.value for record in read} == expected
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(name, b"last", b"key 0")
    assert producer.flush(60) == 0
    assert client.consume(name, 301)[-1].offset == 8000
