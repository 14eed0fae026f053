"""Kafka's own tools print the same about the companion broker as about Apache Kafka.

Each case is a function that runs tools against one broker and returns their outputs, without
addresses, directories and ids. It runs against both brokers, and the results have to be equal.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from integration.conftest import ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.kafka_cluster import ClusterOptions, KafkaCluster
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.types import OffsetAndMetadata
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import HarnessError, wait_until

CONFIGS = "kafka.admin.ConfigCommand"
TOOLS = "org.apache.kafka.tools."
TOPICS, GROUPS = f"{TOOLS}TopicCommand", f"{TOOLS}consumer.group.ConsumerGroupCommand"
REASSIGN = f"{TOOLS}reassign.ReassignPartitionsCommand"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
}


class Broker(NamedTuple):
    """A broker, and Kafka's tools for it.

    Attributes:
        bootstrap: Its address.
        tools: The tools.
        directory: Where the tools' files go.
    """

    bootstrap: str
    tools: KafkaTools
    directory: Path

    def run(self, tool: str, *arguments: str) -> list[str]:
        """Run a tool; return the lines that it prints, or those of its failure."""
        given = ["--bootstrap-server", self.bootstrap, *arguments]
        if tool == f"{TOOLS}ClusterTool":  # its action comes first
            given = [*arguments, "--bootstrap-server", self.bootstrap]
        try:
            text = self.tools.run(tool, given).stdout.decode()
        except HarnessError as error:
            lines = str(error).splitlines()[1:]
            # Without the trace of the error's origin.
            text = "failed\n" + "\n".join(each for each in lines if not each.startswith("\tat "))
        return [
            self._neutral(line)
            for line in text.splitlines()
            # A setting of Apache Kafka's cluster, while eligible leader replicas are recorded.
            if line.strip() and not line.startswith("  min.insync.replicas=")
        ]

    def file(self, name: str, content: object) -> str:
        """Write a file for a tool; return its path."""
        path = self.directory / name
        path.write_text(json.dumps(content))
        return str(path)

    def _neutral(self, line: str) -> str:
        """Return a line without what differs between brokers."""
        line = line.replace(self.bootstrap, "ADDRESS")
        line = re.sub(r"TopicId: [\w-]{22}", "TopicId: ID", line)
        line = re.sub(r'"log_dirs":\[[^\]]*\]', '"log_dirs":[DIRECTORY]', line)
        line = re.sub(r"Configs: min\.insync\.replicas=1,?", "Configs: ", line)
        line = re.sub(r"^\d{4}-\S+Z ", "", line)
        return line.rstrip()


@pytest.fixture(scope="module")
def kafka_address(
    runtimes: Callable[[str], KafkaRuntime], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("companion-tools-")
    options = ClusterOptions(properties=SETTINGS)
    with KafkaCluster(runtimes(NEWEST), directory, options) as cluster:
        yield cluster.bootstrap()


@pytest.fixture(scope="module")
def companion_address() -> Iterator[str]:
    with EmbeddedCluster(config=SETTINGS) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def brokers(
    kafka_address: str, companion_address: str, tools_for: ToolsFor, tmp_path: Path
) -> list[Broker]:
    """The companion broker and Apache Kafka."""
    return [
        Broker(address, tools_for(address), tmp_path)
        for address in (companion_address, kafka_address)
    ]


def create(broker: Broker, *names: str, partitions: int = 1) -> None:
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions, 1) for name in names])
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for name in names:
            for number in range(5):
                producer.send(name, b"%d" % number, partition=0).result(30)


def commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=broker.bootstrap, group_id=group) as consumer:
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(offset)})


def configs_of_topics(broker: Broker) -> object:
    create(broker, "settings")
    topic = ("--entity-type", "topics", "--entity-name", "settings")
    values = "retention.ms=1000,cleanup.policy=[compact,delete]"
    return [
        broker.run(CONFIGS, "--alter", *topic, "--add-config", values),
        broker.run(CONFIGS, "--describe", *topic),
        broker.run(CONFIGS, "--describe", *topic, "--all"),
        broker.run(CONFIGS, "--alter", *topic, "--delete-config", "retention.ms"),
        broker.run(CONFIGS, "--describe", *topic),
        broker.run(TOPICS, "--describe", "--topic", "settings"),
        broker.run(CONFIGS, "--alter", *topic, "--add-config", "retention.ms=x"),
        broker.run(CONFIGS, "--alter", "--topic", "absent", "--add-config", "retention.ms=5"),
    ]


def configs_of_brokers(broker: Broker) -> object:
    one = ("--entity-type", "brokers", "--entity-name", "1")
    every = ("--entity-type", "brokers", "--entity-default")
    values = "log.retention.ms=6000,message.max.bytes=2000000"
    seen = [
        broker.run(CONFIGS, "--alter", *one, "--add-config", "log.retention.ms=5000"),
        broker.run(CONFIGS, "--alter", *every, "--add-config", values),
    ]

    def described() -> list[str]:
        return broker.run(CONFIGS, "--describe", "--entity-type", "brokers")

    wait_until(lambda: "message.max.bytes=2000000" in str(described()), "the values are set", 30)
    seen += [described(), broker.run(CONFIGS, "--describe", *one)]
    names = "log.retention.ms,message.max.bytes"
    seen += [
        broker.run(CONFIGS, "--alter", *one, "--delete-config", "log.retention.ms"),
        broker.run(CONFIGS, "--alter", *every, "--delete-config", names),
    ]
    wait_until(lambda: "=2000000" not in str(described()), "the values are removed", 30)
    seen += [described(), broker.run(CONFIGS, "--alter", *one, "--add-config", "log.dirs=x")]
    return seen


def configs_of_other_resources(broker: Broker) -> object:
    seen = []
    for kind, name, values, keys in (
        ("users", "u", "producer_byte_rate=1000,request_percentage=50", "producer_byte_rate"),
        ("clients", "c", "consumer_byte_rate=1000", "consumer_byte_rate"),
        ("ips", "1.2.3.4", "connection_creation_rate=100", "connection_creation_rate"),
        ("groups", "g", "consumer.session.timeout.ms=45001", "consumer.session.timeout.ms"),
        ("client-metrics", "m", "interval.ms=1000,metrics=[a,b]", "metrics"),
    ):
        resource = ("--entity-type", kind, "--entity-name", name)
        seen += [
            broker.run(CONFIGS, "--alter", *resource, "--add-config", values),
            broker.run(CONFIGS, "--describe", *resource),
            broker.run(CONFIGS, "--alter", *resource, "--delete-config", keys),
            broker.run(CONFIGS, "--describe", *resource),
        ]
    return seen


def topics_and_records(broker: Broker) -> object:
    create(broker, "records", partitions=2)
    deletion = {"partitions": [{"topic": "records", "partition": 0, "offset": 2}], "version": 1}
    beyond = {"partitions": [{"topic": "records", "partition": 0, "offset": 9}], "version": 1}
    offsets, delete = f"{TOOLS}GetOffsetShell", f"{TOOLS}DeleteRecordsCommand"
    seen = [
        broker.run(TOPICS, "--alter", "--topic", "records", "--partitions", "4"),
        broker.run(TOPICS, "--alter", "--topic", "records", "--partitions", "3"),
        broker.run(TOPICS, "--describe", "--topic", "records"),
        broker.run(delete, "--offset-json-file", broker.file("d", deletion)),
        broker.run(delete, "--offset-json-file", broker.file("b", beyond)),
    ]
    return seen + [
        broker.run(offsets, "--topic", "records", "--time", time)
        for time in ("latest", "earliest", "max-timestamp")
    ]


def offsets_of_groups(broker: Broker) -> object:
    create(broker, "consumed")
    commit(broker, "readers", "consumed", 3)
    group = ("--group", "readers")
    topic = (*group, "--topic", "consumed")
    return [
        broker.run(GROUPS, "--describe", *group),
        broker.run(GROUPS, "--reset-offsets", *topic, "--to-earliest", "--dry-run"),
        broker.run(GROUPS, "--reset-offsets", *topic, "--shift-by", "1", "--execute"),
        broker.run(GROUPS, "--describe", *group),
        broker.run(GROUPS, "--delete-offsets", *topic),
        broker.run(GROUPS, "--describe", *group),
        broker.run(GROUPS, "--delete", *group),
        broker.run(GROUPS, "--delete-offsets", *topic),
    ]


def reassigned_partitions(broker: Broker) -> object:
    create(broker, "moved")

    def plan(name: str, broker_id: int) -> tuple[str, str]:
        partitions = [{"topic": "moved", "partition": 0, "replicas": [broker_id]}]
        content = {"partitions": partitions, "version": 1}
        return "--reassignment-json-file", broker.file(name, content)

    own, other = plan("own", 1), plan("other", 9)
    return [
        broker.run(REASSIGN, *own, "--execute"),
        broker.run(REASSIGN, *own, "--verify"),
        broker.run(REASSIGN, *own, "--cancel"),
        broker.run(REASSIGN, *own, "--execute", "--throttle", "1000"),
        broker.run(REASSIGN, *own, "--verify"),
        broker.run(REASSIGN, *other, "--execute"),
        broker.run(REASSIGN, "--list"),
    ]


def leaders_and_features(broker: Broker) -> object:
    create(broker, "led")
    elect, features = f"{TOOLS}LeaderElectionCommand", f"{TOOLS}FeatureCommand"
    preferred = ("--election-type", "preferred")
    described = broker.run(features, "describe")
    return [
        broker.run(elect, *preferred, "--topic", "led", "--partition", "0"),
        broker.run(elect, *preferred, "--topic", "absent", "--partition", "0"),
        [re.sub(r"Epoch:.*", "", line) for line in described if "transaction.version" in line],
        broker.run(features, "upgrade", "--feature", "transaction.version=2"),
        broker.run(features, "upgrade", "--feature", "unknown.version=2"),
        broker.run(features, "downgrade", "--feature", "transaction.version=1", "--dry-run"),
    ]


def directories_and_cluster(broker: Broker) -> object:
    create(broker, "stored", partitions=2)
    lines = broker.run(f"{TOOLS}LogDirsCommand", "--describe", "--topic-list", "stored")
    (node,) = json.loads(lines[-1])["brokers"]
    (directory,) = node["logDirs"]
    partitions = sorted(
        (each["partition"], each["size"] > 0, each["offsetLag"], each["isFuture"])
        for each in directory["partitions"]
    )
    quorum = broker.run(f"{TOOLS}MetadataQuorumCommand", "describe", "--status")
    cluster = broker.run(f"{TOOLS}ClusterTool", "cluster-id")
    endpoints = broker.run(f"{TOOLS}ClusterTool", "list-endpoints")
    return [
        lines[:-1],
        (node["broker"], directory["error"], partitions),
        [line.split(":")[0] for line in quorum],
        [line for line in quorum if line.startswith(("LeaderId", "LeaderEpoch", "MaxFollower"))],
        [line.partition(":")[0] for line in cluster],
        [re.split(r"\s+", line)[0] for line in endpoints],
    ]


def test_reassignment_of_three_brokers(tools_for: ToolsFor, tmp_path: Path) -> None:
    with EmbeddedCluster(brokers=3) as cluster:
        address = cluster.bootstrap_servers
        broker = Broker(address, tools_for(address), tmp_path)
        with AdminClient(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic("moved", 1, 2)])
            (partition,) = admin.describe_topics(["moved"])["moved"].partitions
        (other,) = {1, 2, 3} - set(partition.replicas)
        with Producer(bootstrap_servers=address) as producer:
            producer.send("moved", b"a", partition=0).result(30)
        target = [other, partition.replicas[0]]
        moves = [{"topic": "moved", "partition": 0, "replicas": target}]
        plan = broker.file("plan", {"partitions": moves, "version": 1})
        options = ("--reassignment-json-file", plan)
        started = broker.run(REASSIGN, *options, "--execute")
        assert started[-1] == "Successfully started partition reassignment for moved-0"
        completed = "Reassignment of partition moved-0 is completed."
        wait_until(lambda: completed in broker.run(REASSIGN, *options, "--verify"), completed, 60)
        assert [each.replicas for each in broker.tools.describe_topic("moved")] == [tuple(target)]
        assert broker.tools.offsets("moved") == {0: 1}


CASES: Sequence[Callable[[Broker], object]] = (
    configs_of_topics,
    configs_of_brokers,
    configs_of_other_resources,
    topics_and_records,
    offsets_of_groups,
    reassigned_partitions,
    leaders_and_features,
    directories_and_cluster,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_outputs_equal_those_about_kafka(
    brokers: list[Broker], case: Callable[[Broker], object]
) -> None:
    ours, theirs = (case(broker) for broker in brokers)
    assert ours == theirs
