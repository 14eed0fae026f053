"""Logs on disk, both ways: Apache Kafka reads and continues ours, we read and continue Kafka's."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

import kclient
from integration.conftest import StartCluster, ToolsFor
from integration.harness.discovery import NEWEST, chosen_versions
from integration.harness.kafka_cluster import ClusterOptions
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient.broker.log.dump_log import DumpOptions, LogDump
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.cli.dump_log import decode_transactions
from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from kclient.network.system_runtime import system_runtime
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    build_end_txn_batch,
    read_batches,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS

TXN_PRODUCER = 9000
# Small enough for several segments, as large as Kafka asks for.
SEGMENT_BYTES = 1024 * 1024
SUFFIXES = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")

version = pytest.mark.parametrize("version", chosen_versions())


@pytest.fixture
def runtime() -> Runtime:
    return system_runtime()


@pytest.fixture
def open_logs(runtime: Runtime) -> Iterator[Callable[[Path], LogManager]]:
    opened = []

    def open_logs(directory: Path) -> LogManager:
        manager = LogManager(directory, runtime, LogConfig(segment_bytes=SEGMENT_BYTES))
        opened.append(manager)
        manager.load()
        assert manager.failed_logs() == {}
        return manager

    yield open_logs
    for manager in opened:
        manager.close(clean=False)


def batch(
    runtime: Runtime,
    count: int,
    producer: tuple[int, int, int],
    codec: CompressionType = CompressionType.NONE,
    *,
    transactional: bool = False,
) -> memoryview:
    builder = RecordBatchBuilder(bytearray(1 << 20))
    now_ms = runtime.clock.wall_ms()
    rng = random.Random(count)
    for number in range(count):
        key = b"k%d" % number if number % 3 else None
        headers = [("h", b"1"), ("n", None)] if number % 5 == 0 else []
        value = rng.randbytes(60).hex().encode()
        builder.append(now_ms - rng.randrange(1000), key, value, headers)
    producer_id, epoch, sequence = producer
    return builder.seal(
        producer_id, epoch, sequence, compression=codec, transactional=transactional
    )


def fill(log: UnifiedLog, runtime: Runtime, rounds: int = 30) -> int:
    """Append batches of every codec, a committed and an aborted transaction; count records."""
    sequence = 0
    for number in range(rounds * len(CompressionType)):
        codec = CompressionType(number % len(CompressionType))
        log.append_as_leader(batch(runtime, 100, (8000, 0, sequence), codec), number // 40)
        sequence += 100
    epoch = log.latest_epoch
    assert epoch is not None
    for number, kind in enumerate([ControlRecordType.COMMIT, ControlRecordType.ABORT]):
        data = batch(runtime, 5, (TXN_PRODUCER, 0, 5 * number), transactional=True)
        log.append_as_leader(data, epoch)
        marker = EndTxnMarker(kind, 0)
        control = build_end_txn_batch(marker, TXN_PRODUCER, 0, runtime.clock.wall_ms())
        log.append_as_leader(control, epoch, origin="coordinator")
    log.high_watermark = log.log_end_offset
    return sequence + 2 * 6


def files_of(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)


def kafkas_dump(tools: KafkaTools, major: int, path: Path, *options: str) -> list[str]:
    package = "org.apache.kafka.tools" if major >= 4 else "kafka.tools"
    arguments = ["--files", str(path), *options]
    output = tools.run(f"{package}.DumpLogSegments", arguments).stdout.decode()
    return output.splitlines()


def our_dump(path: Path, options: DumpOptions) -> list[str]:
    dump = LogDump(SystemFiles(), path, options)
    lines = list(dump.lines())
    assert dump.problems == []
    return lines


def assert_dumps_agree(tools: KafkaTools, major: int, directory: Path) -> None:
    options = DumpOptions(deep=True, print_data=True)
    for path in files_of(directory):
        expected = kafkas_dump(tools, major, path, "--deep-iteration", "--print-data-log")
        assert our_dump(path, options) == expected
        if path.suffix in {".index", ".timeindex"}:
            sane = kafkas_dump(tools, major, path, "--index-sanity-check")
            assert sane[1:] in ([f"{path} passed sanity check."], [f"{path} is empty."])


def read_all(log: UnifiedLog) -> list[bytes | None]:
    """Read every record and check every batch; return the values outside control batches."""
    values: list[bytes | None] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        records = log.read(offset, 1 << 20).records
        assert not isinstance(records, bytes)
        for found in read_batches(records.read()):
            found.ensure_valid()
            if not found.is_control:
                values += [record.value for record in found.records()]
            offset = found.next_offset
    return values


@version
def test_tool_of_kafka_reads_our_log_files(
    tmp_path: Path,
    runtime: Runtime,
    open_logs: Callable[[Path], LogManager],
    tools_for: ToolsFor,
    version: str,
) -> None:
    logs = open_logs(tmp_path / "data")
    log = logs.get_or_create(TopicPartition("ours", 0), bytes(range(16)))
    count = fill(log, runtime)
    logs.close()
    directory = tmp_path / "data" / "ours-0"
    assert {path.suffix for path in files_of(directory)} == set(SUFFIXES)
    assert len(list(directory.glob("*.log"))) > 1

    tools = tools_for("127.0.0.1:1", None, version)
    assert_dumps_agree(tools, int(version[0]), directory)
    batches = tools.dump_log(*sorted(directory.glob("*.log")))
    assert sum(len(found.records) for found in batches) == count
    assert all(found.fields["isvalid"] == "true" for found in batches)


def produce_everything(kafka: RunningKafka) -> str:
    """Let a foreign client write every codec and transactions that end either way."""
    name = kafka.create_topic(configs={"segment.bytes": str(SEGMENT_BYTES)})
    rng = random.Random(5)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "batch.num.messages": 100,
                "linger.ms": 5,
            }
        )
        for number in range(4000):
            producer.produce(name, rng.randbytes(50).hex(), b"%d" % number, headers=[("h", b"1")])
            producer.poll(0)
        assert producer.flush(30) == 0
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{name}-txn"})
    producer.init_transactions(30)
    for commit in (True, False, True):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(name, b"txn-%d" % number)
        assert producer.flush(30) == 0
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    return name


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files_of(directory)}


@version
def test_log_written_by_kafka_is_read_and_continued(
    tmp_path: Path,
    runtime: Runtime,
    open_logs: Callable[[Path], LogManager],
    start_cluster: StartCluster,
    tools_for: ToolsFor,
    version: str,
) -> None:
    cluster = start_cluster(ClusterOptions(heap_mb=512), version)
    node = cluster.nodes[0]
    name = produce_everything(RunningKafka(version, cluster.bootstrap(), cluster))
    node.stop()
    directory = node.data_directory / f"{name}-0"
    assert {path.suffix for path in files_of(directory)} == set(SUFFIXES)
    tools = tools_for(cluster.bootstrap(), None, version)
    assert_dumps_agree(tools, int(version[0]), directory)
    assert_we_rebuild_the_same(open_logs, directory, tmp_path / "bare")

    expected = append_to(open_logs, runtime, directory)
    node.start()
    client = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap())
    assert len(expected) == 5 * 4000 + 30 + 500
    assert [record.value for record in client.read_all(name)] == expected
    node.stop()
    final = open_logs(node.data_directory).get_log(TopicPartition(name, 0))
    assert final is not None
    assert read_all(final) == expected


def assert_we_rebuild_the_same(
    open_logs: Callable[[Path], LogManager], directory: Path, bare: Path
) -> None:
    """From the batches alone we make the indexes and the producers' state that Kafka had."""
    before = contents(directory)
    copy = bare / directory.name
    shutil.copytree(directory, copy)
    for path in files_of(copy):
        if path.suffix != ".log":
            path.unlink()
    logs = open_logs(bare)
    (log,) = logs.all_logs()
    assert len(read_all(log)) == 5 * 4000 + 30
    logs.close()
    after = contents(copy)
    assert after.keys() == before.keys()
    for name in before:
        if name.endswith(".snapshot"):
            # Kafka keeps its producers in a hash table, without order.
            theirs, ours = (our_dump(one / name, DumpOptions())[1:] for one in (directory, copy))
            assert sorted(ours) == sorted(theirs)
        else:
            assert after[name] == before[name], name


def append_to(
    open_logs: Callable[[Path], LogManager], runtime: Runtime, directory: Path
) -> list[bytes | None]:
    """Load Kafka's own directory, which by itself changes no file; append; return all values."""
    before = contents(directory)
    logs = open_logs(directory.parent)
    epoch = logs.last_broker_epoch
    assert epoch >= 0
    logs.close(broker_epoch=epoch)
    assert contents(directory) == before
    logs = open_logs(directory.parent)
    (log,) = (one for one in logs.all_logs() if one.directory == directory)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == log.log_end_offset
    aborted = log.read(20_000, 1 << 20, include_aborted=True).aborted_transactions
    assert [txn.last_offset - txn.first_offset for txn in aborted] == [10]
    for number, codec in enumerate(CompressionType):
        log.append_as_leader(batch(runtime, 100, (8000, 0, 100 * number), codec), 0)
    values = read_all(log)
    logs.close(broker_epoch=epoch)
    return values


def test_transaction_log_is_shown_as_by_kafka(
    start_cluster: StartCluster, tools_for: ToolsFor
) -> None:
    properties = {
        "transaction.state.log.num.partitions": "1",
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    }
    cluster = start_cluster(ClusterOptions(heap_mb=512, properties=properties))
    kafka = RunningKafka(NEWEST, cluster.bootstrap(), cluster)
    name = kafka.create_topic(2)
    with kclient.Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": name}
    ) as producer:
        producer.init_transactions(30)
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for partition in range(2):
                producer.send(name, b"v", partition=partition).result(30)
            end()
    node = cluster.nodes[0]
    (path,) = (node.data_directory / "__transaction_state-0").glob("*.log")

    def shown() -> list[str]:
        return our_dump(path, DumpOptions(print_data=True, decoder=decode_transactions))

    wait_until(lambda: "payload: <DELETE>" in shown()[-1], "the transactional id expires", 30)
    node.stop()
    expected = kafkas_dump(tools_for("127.0.0.1:1"), 4, path, "--transaction-log-decoder")
    assert shown() == expected
    assert len(expected) > 2 * 8
