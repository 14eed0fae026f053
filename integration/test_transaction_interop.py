"""Transactions of each client in one topic, read by each other client as a committed reader."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from integration.conftest import ToolsFor
from integration.harness.running_kafka import RunningKafka
from integration.harness.transactional_clients import COMMITTED, PRODUCERS, READERS
from kclient import AdminClient, NewTopic
from kclient.testing import EmbeddedCluster

TOPIC = "transactions-of-all"
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
                admin.create_topics([NewTopic(TOPIC, 3)])
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
