"""A broker with known topics and groups, on which commands of a table run as written."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from integration.harness.kafka_tools import KafkaTools
from kclient import ConsumerRecord
from kclient.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ScramCredentialInfo,
    TopicDescription,
    TopicPartition,
    UserScramCredentialDeletion,
)
from kclient.common.broker_errors import UnknownTopicOrPartitionError
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ROOT

START_MS = 1_769_860_800_000
"""Time of the first record: 2026-01-31T12:00:00Z."""

_TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "kafka-topics.sh": f"{_TOOLS}TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups.sh": f"{_TOOLS}consumer.group.ConsumerGroupCommand",
    "kafka-get-offsets.sh": f"{_TOOLS}GetOffsetShell",
    "kafka-delete-records.sh": f"{_TOOLS}DeleteRecordsCommand",
    "kafka-console-producer.sh": f"{_TOOLS}ConsoleProducer",
    "kafka-console-consumer.sh": f"{_TOOLS}consumer.ConsoleConsumer",
    "kafka-cluster.sh": f"{_TOOLS}ClusterTool",
}
_DYNAMIC = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
    ConfigSource.DYNAMIC_GROUP_CONFIG,
    ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}
_BARRIER = "barrier-"
_barriers = count(1)


@dataclass(frozen=True, slots=True)
class Output:
    """What a command wrote.

    Attributes:
        stdout: Its standard output, also if it was redirected to a file.
        stderr: Its standard error.
    """

    stdout: bytes
    stderr: str


class JobSite:
    """A broker whose topics, groups, settings and quotas can be prepared again and read.

    Attributes:
        clients: Clients of the broker.
        directory: Working directory of the commands, with the files that they read.
        broker_id: Id of the broker.
    """

    def __init__(
        self,
        clients: Clients,
        java: KafkaTools,
        directory: Path,
        files: Mapping[str, bytes],
        logs: Path,
    ) -> None:
        """Describe the site.

        Args:
            clients: Clients of the broker.
            java: Tools of the broker.
            directory: Where commands run; it exists.
            files: Content of the files that each preparation writes to it.
            logs: Data directory of the broker.
        """
        self.clients, self.directory = clients, directory
        self._files, self._logs = files, logs
        self._java = java
        self._admin = clients.admin()
        self.broker_id = self._admin.describe_cluster().nodes[0].id

    # -- preparation

    def prepare(self) -> None:
        """Remove what commands have changed; create topics, records and a group again.

        Records of orders have keys, headers and times that are not in the order of offsets.
        """
        for name, data in self._files.items():
            (self.directory / name).write_bytes(data)
        self._clear()
        self.clients.topic(2, "orders")
        self.clients.topic(1, "payments")
        self.apply()
        producer = self.clients.producer()
        for partition, times in enumerate(((0, 2, 1, 4, 3), (10, 11, 12))):
            for number, second in enumerate(times):
                producer.send(
                    "orders",
                    b"o%d-%d" % (partition, number),
                    key=b"k%d" % number,
                    headers=[("source", b"shop"), ("number", b"%d" % number)],
                    partition=partition,
                    timestamp_ms=START_MS + 1000 * second,
                )
        for number in range(2):
            producer.send("payments", b"p%d" % number, timestamp_ms=START_MS + number)
        producer.close()
        self.commit("billing", {("orders", 0): 3, ("orders", 1): 1, ("payments", 0): 1})

    def commit(self, group: str, offsets: dict[tuple[str, int], int]) -> None:
        committed = {TopicPartition(*place): offset for place, offset in offsets.items()}
        self._admin.alter_consumer_group_offsets(group, committed).raise_for_errors()

    def configure(self, resource: ConfigResource, **settings: str) -> None:
        """Set settings; two underscores are a dot."""
        changes = [AlterConfigOp(name.replace("__", "."), text) for name, text in settings.items()]
        self._admin.incremental_alter_configs({resource: changes}).raise_for_errors()

    def apply(self) -> None:
        """Wait until the broker has applied every change that was made before this call."""
        name = f"{_BARRIER}{next(_barriers)}"
        self.clients.topic(1, name)

        def is_applied() -> bool:
            try:
                (partition,) = self._admin.describe_topics(name)[name].partitions
            except UnknownTopicOrPartitionError:
                return False
            return partition.leader is not None

        wait_until(is_applied, f"{name} is known")
        self._admin.delete_topics(name).raise_for_errors()

    def _clear(self) -> None:
        if topics := self._topics():
            self._admin.delete_topics(topics).raise_for_errors()
        if groups := self._groups():
            self._admin.delete_consumer_groups(groups).raise_for_errors()
        for resource in self._resources():
            names = self._settings(resource)
            changes = [AlterConfigOp(name, None, AlterConfigOpType.DELETE) for name in names]
            if changes:
                self._admin.incremental_alter_configs({resource: changes}).raise_for_errors()
        deletions = [
            UserScramCredentialDeletion(user, each.mechanism)
            for user, credentials in self._users().items()
            for each in credentials
        ]
        if deletions:
            self._admin.alter_user_scram_credentials(deletions).raise_for_errors()
        quotas = self._admin.describe_client_quotas(())
        removed = {entity: dict.fromkeys(values) for entity, values in quotas.items()}
        if removed:
            self._admin.alter_client_quotas(removed).raise_for_errors()
        self.apply()

    # -- commands

    def run(self, command: str) -> Output:
        """Run a line of the shell, in the directory of the files."""
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.directory,
            timeout=60,
            env={
                **os.environ,
                "PATH": programs,
                "PYTHONPATH": str(ROOT),
                "KCLIENT_BOOTSTRAP_SERVERS": self.clients.bootstrap,
            },
        )
        shown = done.stderr.decode()
        assert done.returncode == 0, f"{command}: {shown}"
        return Output(self._redirected(command) or done.stdout, shown)

    def run_tool(self, command: str) -> Output:
        """Run a line with one of Kafka's tools and redirections."""
        name, *words = shlex.split(command)
        arguments, stdin = [], b""
        rest = iter(words)
        for word in rest:
            if word == "<":
                stdin = (self.directory / next(rest)).read_bytes()
            elif word == ">":
                next(rest)
            else:
                file = self.directory / word
                arguments.append(str(file) if word and file.is_file() else word)
        arguments += ["--bootstrap-server", self.clients.bootstrap]
        done = self._java.run(CLASSES[name], arguments, stdin)
        return Output(done.stdout, done.stderr)

    def _redirected(self, command: str) -> bytes:
        _, found, file = command.rpartition(" > ")
        return (self.directory / file).read_bytes() if found else b""

    # -- state

    def state(self) -> dict[str, object]:
        """Return what commands can change, of everything but internal topics."""
        self.apply()
        return {
            "topics": self._described(),
            "records": self.records(),
            "committed": {
                group: self._committed(group) for group in self._groups() if self._committed(group)
            },
            "settings": {str(each): self._settings(each) for each in self._resources()},
            "users": {
                user: [(each.mechanism, each.iterations) for each in credentials]
                for user, credentials in self._users().items()
            },
            "quotas": {
                each.entries: values
                for each, values in self._admin.describe_client_quotas(()).items()
            },
        }

    def records(self) -> dict[str, object]:
        """Return log starts and records by topic, sorted; without key, without the partition."""
        found: dict[str, object] = {}
        for topic, described in self._describe().items():
            places = [TopicPartition(topic, each.partition) for each in described.partitions]
            consumer = self.clients.consumer()
            consumer.assign(places)
            starts = [offset for _, offset in sorted(consumer.beginning_offsets(places).items())]
            rows = sorted(map(repr, map(_row, read_to_end(consumer, places))))
            consumer.close()
            found[topic] = (starts, rows)
        return found

    def sent(self) -> list[ConsumerRecord]:
        """Return the records of orders that were sent after the preparation."""
        places = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        consumer = self.clients.consumer()
        consumer.assign(places)
        found = read_to_end(consumer, places)
        consumer.close()
        return [each for each in found if each.offset >= (5, 3)[each.partition]]

    def codecs(self) -> set[str]:
        """Return the compression codecs of the batches of orders."""
        segments = [*self._logs.glob("orders-0/*.log"), *self._logs.glob("orders-1/*.log")]
        batches = self._java.dump_log(*segments)
        return {batch.fields["compresscodec"] for batch in batches}

    def _topics(self) -> list[str]:
        names = [each.name for each in self._admin.list_topics()]
        return [name for name in names if not name.startswith(_BARRIER)]

    def _describe(self) -> dict[str, TopicDescription]:
        names = self._topics()
        return dict(self._admin.describe_topics(names).raise_for_errors()) if names else {}

    def _described(self) -> dict[str, object]:
        return {
            name: [(each.partition, each.replicas) for each in topic.partitions]
            for name, topic in self._describe().items()
        }

    def _users(self) -> dict[str, tuple[ScramCredentialInfo, ...]]:
        return dict(self._admin.describe_user_scram_credentials().raise_for_errors())

    def _groups(self) -> list[str]:
        """Return the groups, without those that the console consumer creates for one run."""
        names = sorted(each.group_id for each in self._admin.list_groups())
        return [name for name in names if not name.startswith("console-consumer-")]

    def _committed(self, group: str) -> dict[str, int]:
        offsets = self._admin.list_consumer_group_offsets(group).raise_for_errors()
        return {str(each): offset.offset for each, offset in sorted(offsets.items())}

    def _resources(self) -> list[ConfigResource]:
        kind = ConfigResourceType
        topics = [ConfigResource(kind.TOPIC, name) for name in self._topics()]
        brokers = [ConfigResource(kind.BROKER, name) for name in ("", str(self.broker_id))]
        return [*topics, *brokers, ConfigResource(kind.GROUP, "billing")]

    def _settings(self, resource: ConfigResource) -> dict[str, str | None]:
        entries = self._admin.describe_configs(resource)[resource].values()
        # A new cluster has min.insync.replicas, which cannot be removed.
        return {
            each.name: each.value
            for each in entries
            if each.source in _DYNAMIC and each.name != "min.insync.replicas"
        }


def read_to_end(consumer: Any, places: Iterable[TopicPartition]) -> list[ConsumerRecord]:
    """Return the records up to the present end offsets."""
    ends = consumer.end_offsets(list(places))
    consumer.seek_to_beginning()
    found: list[ConsumerRecord] = []
    while any(consumer.position(place) < end for place, end in ends.items()):
        found += consumer.poll(0.1)
    return found


def _row(record: ConsumerRecord) -> tuple[object, ...]:
    """Return what producers determine; the partition of a record without key is chosen freely."""
    partition = None if record.key is None else record.partition
    return record.key, record.value, tuple(record.headers), partition
