"""Administration on the command line: the same outcome as Kafka's own tools, on both brokers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import ToolsFor
from integration.harness.kafka_tools import KafkaTools
from integration.harness.running_kafka import RunningKafka
from kclient.cli.main import main
from kclient.common.types import TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients

_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_CONFIGS = "kafka.admin.ConfigCommand"
_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
_CLUSTER = "org.apache.kafka.tools.ClusterTool"


class Site:
    """A broker with two topics of the same records, one for each tool.

    Attributes:
        ours: Topic and group of kclient.
        theirs: Topic and group of Kafka's tool.
    """

    def __init__(
        self, clients: Clients, java: KafkaTools, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.clients, self.java, self._capfd = clients, java, capfd
        self.ours, self.theirs = clients.topic(2), clients.topic(2)
        producer = clients.producer()
        for topic in (self.ours, self.theirs):
            for time_ms in (1000, 3000, 2000, 5000, 4000):
                producer.send(topic, b"x", partition=0, timestamp_ms=time_ms)
            producer.send(topic, b"x", partition=1, timestamp_ms=6000)
        producer.flush()
        admin = clients.admin()
        for topic in (self.ours, self.theirs):
            offsets = {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 0}
            admin.alter_consumer_group_offsets(topic, offsets).raise_for_errors()

    def run(self, *arguments: str, status: int = 0) -> list[dict[str, object]]:
        """Run a command of kclient; return its lines of JSON."""
        ended = main([*arguments, "--json", "-b", self.clients.bootstrap])
        shown = self._capfd.readouterr()
        assert ended == status, shown.err
        return [json.loads(line) for line in shown.out.splitlines()]

    def tool(self, name: str, *arguments: str) -> str:
        """Run a tool of Kafka; return its output."""
        server = ("--bootstrap-server", self.clients.bootstrap)
        return self.java.run(name, [*arguments, *server]).stdout.decode()

    def committed(self, group: str) -> dict[int, int]:
        found = self.clients.admin().list_consumer_group_offsets(group).raise_for_errors()
        return {each.partition: offset.offset for each, offset in found.items()}


@pytest.fixture(params=["apache", pytest.param("companion", marks=pytest.mark.campaign)])
def site(
    request: pytest.FixtureRequest,
    kafka: RunningKafka,
    tools_for: ToolsFor,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Site]:
    if request.param == "apache":
        with Clients(kafka.bootstrap) as clients:
            yield Site(clients, tools_for(clients.bootstrap), capfd)
    else:
        with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as clients:
            yield Site(clients, tools_for(clients.bootstrap), capfd)


RESETS = {
    ("--to-earliest",): ("--to-earliest",),
    ("--to-latest",): ("--to-latest",),
    ("--to-current",): ("--to-current",),
    ("--to-offset", "4"): ("--to-offset", "4"),
    ("--shift-by", "-2"): ("--shift-by", "-2"),
    ("--to-time", "1970-01-01T00:00:02.500Z"): ("--to-datetime", "1970-01-01T00:00:02.500"),
    ("--by-duration", "PT1H"): ("--by-duration", "PT1H"),
}


def test_resets_have_the_outcome_of_kafkas_tool(site: Site) -> None:
    for ours, theirs in RESETS.items():
        reset = ("groups", "reset", site.ours, "--topic", site.ours)
        planned = site.run(*reset, *ours)
        site.run(*reset, *ours, "--execute")
        options = ("--reset-offsets", "--group", site.theirs, "--topic", site.theirs, "--execute")
        site.tool(_GROUPS, *options, *theirs)
        after = site.committed(site.ours)
        assert after == site.committed(site.theirs), ours
        assert {row["partition"]: row["offset"] for row in planned} == after


def test_exported_offsets_are_those_of_kafkas_tool(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    export = ("--reset-offsets", "--export", "--dry-run", "--group", site.theirs, "--to-earliest")
    file.write_text(
        site.tool(_GROUPS, *export, "--topic", site.theirs).replace(site.theirs, site.ours)
    )
    site.run("groups", "reset", site.ours, "--from-file", str(file), "--execute")
    assert site.committed(site.ours) == {0: 0, 1: 0}


def test_lag_is_that_of_kafkas_tool(site: Site) -> None:
    found = {
        row["partition"]: (row["offset"], row["log_end_offset"], row["lag"])
        for row in site.run("groups", "lag", site.ours)
    }
    assert found == {
        row.partition: (row.current_offset, row.log_end_offset, row.lag)
        for row in site.java.describe_group(site.theirs)
    }
    (described,) = site.run("groups", "describe", site.ours)
    assert isinstance(described["offsets"], list)
    assert {each["partition"]: each["lag"] for each in described["offsets"]} == {0: 2, 1: 1}


def test_offsets_and_groups_are_deleted(site: Site) -> None:
    site.run("groups", "delete-offsets", site.ours, "--topic", f"{site.ours}:0")
    site.tool(_GROUPS, "--delete-offsets", "--group", site.theirs, "--topic", f"{site.theirs}:0")
    assert site.committed(site.ours) == site.committed(site.theirs) == {1: 0}
    site.run("groups", "delete", site.ours)
    site.tool(_GROUPS, "--delete", "--group", site.theirs)
    listed = {row["group_id"] for row in site.run("groups", "list")}
    assert listed & {site.ours, site.theirs} == set()


def test_members_are_removed(site: Site) -> None:
    consumer = site.clients.consumer(site.ours, group_instance_id="one")
    consumer.subscribe(site.ours)
    while not consumer.poll():
        pass
    reset = ("groups", "reset", site.ours, "--topic", site.ours, "--to-earliest", "--execute")
    site.run(*reset, status=1)
    removed = site.run("groups", "remove-members", site.ours, "--instance-id", "one")
    assert [row["member"] for row in removed] == ["one"]
    assert site.java.group_state(site.ours).state == "Empty"
    site.run(*reset)
    assert site.committed(site.ours) == {0: 0, 1: 0}


def test_offsets_of_topics_are_those_of_kafkas_tool(site: Site) -> None:
    for time in ("latest", "earliest", "max-timestamp", "2500"):
        rows = site.run("topics", "offsets", site.ours, "--time", time)
        ours = {row["partition"]: row["offset"] for row in rows}
        assert ours == site.java.offsets(site.ours, time), time


def test_records_are_deleted_as_by_kafkas_tool(site: Site, tmp_path: Path) -> None:
    for topic in (site.ours, site.theirs):
        partitions = [
            {"topic": topic, "partition": 0, "offset": 2},
            {"topic": topic, "partition": 1, "offset": -1},
        ]
        (tmp_path / topic).write_text(json.dumps({"partitions": partitions, "version": 1}))
    site.run("records", "delete", "--from-file", str(tmp_path / site.ours), "--execute")
    site.tool(_RECORDS, "--offset-json-file", str(tmp_path / site.theirs))
    starts = site.java.offsets(site.ours, "earliest")
    assert starts == site.java.offsets(site.theirs, "earliest") == {0: 2, 1: 1}
    site.run("records", "delete", site.ours, "--before-time", "4500", "--execute")
    assert site.java.offsets(site.ours, "earliest") == {0: 3, 1: 1}


def test_settings_are_those_of_kafkas_tool(site: Site) -> None:
    for topic in (site.ours, site.theirs):
        entity = ("--entity-type", "topics", "--entity-name", topic)
        if topic == site.ours:
            site.run("configs", "set", "--topic", topic, "retention.ms=5", "segment.ms=7")
            site.run("configs", "set", "--topic", topic, "--append", "cleanup.policy=compact")
            site.run("configs", "delete", "--topic", topic, "segment.ms")
        else:
            added = "retention.ms=5,cleanup.policy=[delete,compact]"
            site.tool(_CONFIGS, *entity, "--alter", "--add-config", added)
        shown = site.tool(_CONFIGS, *entity, "--describe")
        assert "retention.ms=5 " in shown
        assert "cleanup.policy=delete,compact " in shown
        assert "segment.ms=7 " not in shown
    found = [
        {row["name"]: row["value"] for row in site.run("configs", "get", "--topic", topic)}
        for topic in (site.ours, site.theirs)
    ]
    assert found[0] == found[1]
    assert found[0]["cleanup.policy"] == "delete,compact"


def test_topics_are_altered_as_kafkas_tool_shows(site: Site) -> None:
    changes = ("--partitions", "4", "--topic-config", "retention.ms=5")
    site.run("topics", "alter", site.ours, *changes)

    def described() -> tuple[str, dict[object, object]]:
        (found,) = site.run("topics", "describe", site.ours)
        assert isinstance(found["partitions"], list)
        assert isinstance(found["configs"], dict)
        replicas = {each["partition"]: each["replicas"] for each in found["partitions"]}
        return found["configs"]["retention.ms"], replicas

    # Brokers apply changes of the metadata shortly after the response.
    wait_until(lambda: len(described()[1]) == 4, "the partitions are known")
    theirs = {each.partition: list(each.replicas) for each in site.java.describe_topic(site.ours)}
    assert described() == ("5", theirs)


def test_cluster_is_that_of_kafkas_tool(site: Site) -> None:
    shown = site.tool(_CLUSTER, "cluster-id")
    (row,) = site.run("cluster", "id")
    assert f"Cluster ID: {row['cluster_id']}" in shown
    (described,) = site.run("cluster", "describe")
    assert described["cluster_id"] == row["cluster_id"]
    assert isinstance(described["quorum"], dict)
    assert described["quorum"]["voters"]
    site.run("cluster", "unregister", "--id", "999", status=1)
