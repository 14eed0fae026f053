"""The reference of the metrics names each metric, and no other; its stages exist."""

import asyncio
import re
from pathlib import Path

import pytest

from kclient import Consumer, Producer, aio
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, PRODUCER_STAGES
from kclient.testing import EmbeddedCluster

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
SECTIONS = ["Producer", "Consumer", "Clients of an event loop", "Companion broker"]
STAGES = {stage.name for stage in (*PRODUCER_STAGES, BROKER_IN_ALL, *CONSUMER_STAGES)}


def rows(section: str) -> list[list[str]]:
    """Return the cells of a section's table."""
    text = PAGE.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def described(section: str) -> list[str]:
    return [name for row in rows(section) for name in re.findall(r"`([^`]+)`", row[0])]


def test_page_names_each_metric_of_clients_and_broker() -> None:
    with (
        EmbeddedCluster() as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers) as producer,
        Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="g") as consumer,
    ):
        producer.send("orders", b"a").result(timeout=20)
        assert sorted(described("Producer")) == sorted(producer.metrics())
        assert sorted(described("Consumer")) == sorted(consumer.metrics())
        request = cluster.broker.request_metrics()["ApiVersions"]
        assert sorted(described("Companion broker")) == sorted(request)


def test_page_names_each_metric_of_clients_of_an_event_loop() -> None:
    async def names() -> tuple[set[str], set[str]]:
        async with (
            aio.Producer(bootstrap_servers="localhost:1") as producer,
            aio.Consumer(bootstrap_servers="localhost:1", group_id="g") as consumer,
        ):
            return set(producer.metrics()), set(consumer.metrics())

    own = set(described("Clients of an event loop"))
    of_producer, of_consumer = asyncio.run(names())
    assert of_producer == own | set(described("Producer"))
    assert of_consumer == own | set(described("Consumer"))


@pytest.mark.parametrize("section", SECTIONS)
def test_stages_of_the_metrics_exist(section: str) -> None:
    for _, _, stage in rows(section):
        names = re.split(r", to | and |, if .*", stage)
        assert {name for name in names if name} <= STAGES, stage
