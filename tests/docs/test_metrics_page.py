"""The reference of the metrics names each metric, and no other; its stages exist."""

import re
from pathlib import Path

import pytest

from kclient import Consumer, Producer
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, PRODUCER_STAGES
from kclient.testing import EmbeddedCluster

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
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


@pytest.mark.parametrize("section", ["Producer", "Consumer", "Companion broker"])
def test_stages_of_the_metrics_exist(section: str) -> None:
    for _, _, stage in rows(section):
        names = re.split(r", to | and |, if .*", stage)
        assert {name for name in names if name} <= STAGES, stage
