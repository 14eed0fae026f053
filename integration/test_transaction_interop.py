"""Transactions of each client in one topic, read by each other client as a committed reader."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.conftest import ToolsFor
from integration.harness.go_programs import franz_go_program
from integration.harness.running_kafka import RunningKafka
from integration.harness.transactional_clients import COMMITTED, PRODUCERS, READERS
from kclient import AdminClient, NewTopic, Producer
from kclient.testing import EmbeddedCluster
from tests.support.processes.child_process import ChildProcess

TOPIC = "transactions-of-all"
SEEDS = [b"%04d" % number for number in range(3_000)]
TIMEOUT_S = 30.0
_numbers = itertools.count(1)
EXPECTED = sorted(COMMITTED * len(PRODUCERS))


class Written(NamedTuple):
    """A topic with the transactions of all clients."""

    bootstrap: str
    topic: str


@pytest.fixture(scope="module", params=["companion", "apache"])
def written(request: pytest.FixtureRequest, kafka: RunningKafka) -> Iterator[Written]:
    if request.param == "companion":
        with EmbeddedCluster() as cluster:
            with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
                admin.create_topics([NewTopic(TOPIC, 3)]).raise_for_errors()
            yield _write(Written(cluster.bootstrap_servers, TOPIC))
    else:
        yield _write(Written(kafka.bootstrap, kafka.create_topic(3)))


def _write(written: Written) -> Written:
    for produce in PRODUCERS.values():
        produce(*written)
    return written


@pytest.mark.parametrize("reader", READERS)
def test_python_client_reads_committed_records_alone(written: Written, reader: str) -> None:
    assert sorted(READERS[reader](*written, len(EXPECTED))) == EXPECTED


def test_console_consumer_reads_committed_records_alone(
    written: Written, tools_for: ToolsFor
) -> None:
    java = tools_for(written.bootstrap)
    output = java.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        [
            *("--bootstrap-server", written.bootstrap, "--topic", written.topic),
            *("--from-beginning", "--isolation-level", "read_committed"),
            *("--timeout-ms", "5000"),
        ],
    ).stdout
    values = re.findall(rb"^\d-\d$", output, re.MULTILINE)  # without the line of the timeout
    assert sorted(values) == EXPECTED


@pytest.fixture
def topics(written: Written) -> tuple[str, str]:
    """Return a filled topic and an empty one."""
    source, target = f"source-{next(_numbers)}", f"target-{next(_numbers)}"
    with AdminClient(bootstrap_servers=written.bootstrap) as admin:
        admin.create_topics([NewTopic(source, 3), NewTopic(target, 3)]).raise_for_errors()
    with Producer(bootstrap_servers=written.bootstrap) as producer:
        producer.send_many(source, SEEDS).result(TIMEOUT_S)
    return source, target


def copied(written: Written, topic: str, at_least: int = len(SEEDS)) -> list[bytes]:
    return sorted(READERS["kclient"](written.bootstrap, topic, at_least))


def test_copier_of_franz_go_that_dies_copies_once(
    written: Written, topics: tuple[str, str], tmp_path: Path
) -> None:
    source, target = topics
    command = [
        *(str(franz_go_program("copier")), "-bootstrap", written.bootstrap),
        *("-source", source, "-target", target, "-id", target, "-group", target),
    ]
    everything = ("-records", f"{len(SEEDS)}", "-deadly", "5")
    with ChildProcess([*command, *everything], tmp_path, name="first") as first:
        first.finish(9)
    done = len(copied(written, target, at_least=1))
    rest = ("-records", f"{len(SEEDS) - done}")
    with ChildProcess([*command, *rest], tmp_path, name="second") as second:
        second.finish()
    assert copied(written, target) == sorted(SEEDS)


def test_copier_of_java_that_aborts_copies_once(
    written: Written, topics: tuple[str, str], tools_for: ToolsFor
) -> None:
    source, target = topics
    tools_for(written.bootstrap).run(
        "org.apache.kafka.tools.TransactionalMessageCopier",
        [
            *("--broker-list", written.bootstrap, "--group-mode", "--use-group-metadata"),
            *("--input-topic", source, "--input-partition", "-1", "--output-topic", target),
            "--enable-random-aborts",
            *("--max-messages", f"{len(SEEDS)}", "--transaction-size", "100"),
            *("--transactional-id", target, "--consumer-group", target),
        ],
    )
    assert copied(written, target) == sorted(SEEDS)
