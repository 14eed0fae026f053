"""``kclient consume`` and ``produce`` compared with Kafka's own tools, on Apache Kafka and here."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from kclient import Producer
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.child_process import ROOT

_START_MS = 1_700_000_000_000
_numbers = count(1)


@pytest.fixture(
    scope="module", params=["apache", pytest.param("companion", marks=pytest.mark.campaign)]
)
def servers(
    request: pytest.FixtureRequest,
    runtimes: Callable[[str], KafkaRuntime],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Address of Apache Kafka, then of a companion broker."""
    directory = tmp_path_factory.mktemp("command-line-")
    if request.param == "companion":
        with BrokerProcess(directory / "data") as broker:
            yield broker.bootstrap
    else:
        with KafkaCluster(runtimes(NEWEST), directory) as cluster:
            yield cluster.bootstrap()


@pytest.fixture
def java(servers: str, tools_for: ToolsFor) -> KafkaTools:
    return tools_for(servers)


@pytest.fixture
def topic(java: KafkaTools) -> str:
    """A topic with 20 records of the values 0 to 19, one second apart, in each partition."""
    name = f"records-{next(_numbers)}"
    java.create_topic(name, partitions=2)
    with Producer(bootstrap_servers=java.bootstrap) as producer:
        for partition in range(2):
            producer.send_many(
                name,
                [b"%d" % number for number in range(20)],
                keys=[b"k%d" % number if number % 2 else None for number in range(20)],
                headers=[("h", b"1"), ("none", None)],
                partition=partition,
                timestamps_ms=[_START_MS + 1000 * number for number in range(20)],
            ).result(20)
    return name


def kclient(java: KafkaTools, *arguments: str, lines: bytes = b"") -> bytes:
    """Run a command; return its output."""
    done = subprocess.run(
        [sys.executable, "-m", "kclient", *arguments, "-b", java.bootstrap],
        check=False,
        input=lines,
        capture_output=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def console(java: KafkaTools, topic: str, records: int, *arguments: str) -> bytes:
    """Return what kafka-console-consumer prints; fewer records are an error."""
    main_class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    given = ("--topic", topic, "--bootstrap-server", java.bootstrap)
    return java.run(main_class, [*given, "--max-messages", str(records), *arguments]).stdout


def values(java: KafkaTools, topic: str, *arguments: str) -> list[int]:
    return sorted(map(int, kclient(java, "consume", topic, *arguments).split()))


@pytest.mark.parametrize("offset", ["5", "beginning"])
def test_offset_of_a_partition(java: KafkaTools, topic: str, offset: str) -> None:
    theirs = "earliest" if offset == "beginning" else offset
    records = 20 if offset == "beginning" else 15
    expected = console(java, topic, records, "--partition", "1", "--offset", theirs)
    found = kclient(java, "consume", topic, "--partition", "1", "--offset", offset, "--until-end")
    assert found == expected


def test_last_records_are_those_before_the_end_offsets(java: KafkaTools, topic: str) -> None:
    assert java.offsets(topic) == {0: 20, 1: 20}
    expected = console(java, topic, 3, "--partition", "0", "--offset", "17")
    assert kclient(java, "consume", topic, "--partition", "0", "--tail", "3") == expected
    assert values(java, topic, "--tail", "3") == [17, 17, 18, 18, 19, 19]


def test_times_are_those_of_the_offset_tool(java: KafkaTools, topic: str) -> None:
    start, stop = _START_MS + 4500, _START_MS + 8000
    found = java.offsets(topic, str(start)), java.offsets(topic, str(stop))
    assert found == ({0: 5, 1: 5}, {0: 8, 1: 8})
    given = ("--from-time", str(start), "--to-time", str(stop))
    assert values(java, topic, *given) == [5, 5, 6, 6, 7, 7]
    iso = ("--from-time", "2023-11-14T22:13:24.500Z", "--to-time", "2023-11-14T23:13:28+01:00")
    assert values(java, topic, *iso) == [5, 5, 6, 6, 7, 7]
    assert values(java, topic, "--from-time", "-1h", "--until-end") == []


def test_json_lines_have_what_the_console_consumer_prints(java: KafkaTools, topic: str) -> None:
    printed = kclient(java, "consume", topic, "--until-end", "--format", "json")
    found = []
    for line in printed.splitlines():
        record = json.loads(line)
        assert (record["topic"], record["timestamp_type"]) == (topic, "CreateTime")
        key, value = record["key"], record["value"]
        found.append(
            ForeignRecord(
                value=value.encode(),
                key=None if key is None else key.encode(),
                headers=tuple(
                    (name, None if data is None else data.encode())
                    for name, data in record["headers"]
                ),
                timestamp_ms=record["timestamp"],
                partition=record["partition"],
                offset=record["offset"],
            )
        )
    place = by_place(found)
    assert place == by_place(java.consume(topic, 40))


def by_place(records: list[ForeignRecord]) -> list[ForeignRecord]:
    return sorted(records, key=lambda record: (record.partition, record.offset))


def test_lines_are_the_records_of_the_console_producer(java: KafkaTools, topic: str) -> None:
    ours, theirs = (f"{topic}-{name}" for name in ("ours", "theirs"))
    java.create_topic(ours)
    java.create_topic(theirs)
    lines = b"k1\tv1\nk2\t\n\tempty key\nk3\tNULL\nlast\tno newline"
    kclient(java, "produce", ours, "--key-separator", r"\t", "--null-value", "NULL", lines=lines)
    main_class = "org.apache.kafka.tools.ConsoleProducer"
    given = ["--topic", theirs, "--bootstrap-server", java.bootstrap]
    for setting in ("parse.key=true", "null.marker=NULL"):
        given += ["--reader-property", setting]
    java.run(main_class, given, lines)
    found, expected = java.consume(ours, 5), java.consume(theirs, 5)
    assert [record.content for record in found] == [record.content for record in expected]
    assert (b"k3", None, ()) in [record.content for record in found]


def test_topic_is_copied_with_headers_and_times(
    java: KafkaTools, topic: str, tmp_path: Path
) -> None:
    copy = f"{topic}-copy"
    java.create_topic(copy)
    file = tmp_path / "records.jsonl"
    file.write_bytes(kclient(java, "consume", topic, "--until-end", "--format", "json"))
    kclient(java, "produce", copy, "--format", "json", "--lines", str(file))

    def contents(records: list[ForeignRecord]) -> list[str]:
        return sorted(repr((record.content, record.timestamp_ms)) for record in records)

    assert contents(java.consume(copy, 40)) == contents(java.consume(topic, 40))


def test_group_is_continued_by_the_console_consumer(java: KafkaTools, topic: str) -> None:
    group = f"group-of-{topic}"
    given = ("--group", group, "--from-beginning", "--max-records", "30")
    first = kclient(java, "consume", topic, *given).split()
    lags = [row.lag for row in java.describe_group(group)]
    assert (len(first), sum(lag or 0 for lag in lags)) == (30, 10)
    rest = console(java, topic, 10, "--group", group).split()
    assert sorted([*first, *rest]) == sorted(b"%d" % number for number in range(20) for _ in "ab")
    assert values(java, topic, "--group", group, "--until-end") == []


def test_until_end_with_aborted_and_open_transactions(java: KafkaTools) -> None:
    topic = f"records-{next(_numbers)}"
    java.create_topic(topic)
    options = {"bootstrap_servers": java.bootstrap}
    with (
        Producer(options, transactional_id=f"{topic}-a") as producer,
        Producer(options, transactional_id=f"{topic}-b") as other,
    ):
        producer.init_transactions()
        other.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number).result(20)
            (producer.abort_transaction if number % 2 else producer.commit_transaction)()
        committed = ("--until-end", "-X", "isolation.level=read_committed")
        assert values(java, topic, *committed) == [0, 2]
        assert values(java, topic, "--until-end") == [0, 1, 2, 3]
        other.begin_transaction()
        other.send(topic, b"9").result(20)
        assert values(java, topic, *committed) == [0, 2]
        theirs = ("--from-beginning", "--isolation-level", "read_committed")
        assert console(java, topic, 2, *theirs) == b"0\n2\n"
        assert values(java, topic, "--until-end") == [0, 1, 2, 3, 9]
        other.abort_transaction()
    assert values(java, topic, *committed) == [0, 2]
