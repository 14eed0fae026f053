"""The metadata log, its snapshots and formatted directories: Apache Kafka's and ours, both ways."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    TopicMetadata,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

import kclient.admin
from integration.conftest import StartCluster, ToolsFor
from integration.harness.discovery import NEWEST
from integration.harness.free_port import free_port
from integration.harness.kafka_cluster import ClusterOptions
from integration.harness.kafka_jars import SHELL_POM, KafkaJars, cache_directory
from integration.harness.kafka_node import KafkaNode
from integration.harness.kafka_runtime import KafkaRuntime
from integration.harness.kafka_tools import KafkaTools
from integration.harness.local_java import LocalJava
from kclient.broker.metadata.bootstrap_metadata import read_bootstrap
from kclient.broker.metadata.image_records import encoded_records
from kclient.broker.metadata.meta_properties import read_meta_properties
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_loader import MetadataLoader
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.broker.metadata.storage_formatter import (
    METADATA_DIRECTORY,
    DynamicVoter,
    FormatOptions,
    format_storage,
)
from kclient.broker.raft.raft_types import CommittedBatch, OffsetAndEpoch
from kclient.broker.raft.snapshots import (
    SnapshotFiles,
    SnapshotReader,
    SnapshotWriter,
    committed_batch,
    snapshot_name,
)
from kclient.common.system_files import SystemFiles
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.metadata_records import (
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from kclient.record import read_batches
from tests.support.checks.waiting import wait_until
from tests.support.processes.broker_process import BrokerProcess

_RESPONSE = 30
_DECODER = "--cluster-metadata-decoder"
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    # Several snapshots while the test makes changes.
    "metadata.log.max.record.bytes.between.snapshots": "1500",
}
CREDENTIAL = "SCRAM-SHA-256=[name=first,password=secret]"


class SnapshotFile:
    """Snapshot for the loader."""

    def __init__(self, path: Path) -> None:
        offset, epoch = path.stem.split("-")
        self.snapshot_id = OffsetAndEpoch(int(offset), int(epoch))
        self._reader = SnapshotReader(SystemFiles(), path, self.snapshot_id)
        self.last_contained_log_timestamp = 0

    def batches(self) -> Iterable[CommittedBatch]:
        return self._reader.batches()

    def values(self) -> list[bytes]:
        return [value for batch in self.batches() for value in batch.records]


def log_batches(directory: Path) -> list[CommittedBatch]:
    """Return the batches of a metadata log from its start."""
    segments = sorted(directory.glob("*.log"))
    batches = [batch for path in segments for batch in read_batches(path.read_bytes())]
    for batch in batches:
        batch.ensure_valid()
    return list(map(committed_batch, batches))


def replayed(
    batches: Sequence[CommittedBatch], end: int | None = None, snapshot: SnapshotFile | None = None
) -> MetadataImage:
    """Return the image of a snapshot and of the batches below an offset; all must load."""
    loader = MetadataLoader(lambda: None, _fail)
    if snapshot is not None:
        loader.handle_load_snapshot(snapshot)
    start = loader.image.offset + 1
    loader.handle_commit(
        [
            batch
            for batch in batches
            if batch.base_offset >= start and (end is None or batch.base_offset < end)
        ]
    )
    return loader.image


def _fail(fault: object) -> None:
    raise AssertionError(fault)


def change_everything(bootstrap: str, tools: KafkaTools) -> None:
    """Make changes of each kind that Kafka's clients and tools can make."""
    admin = _admin(bootstrap)
    topics = [NewTopic("many", 12, 1), NewTopic("gone", 2, 1), NewTopic("a.b", 1, 1)]
    for topic in topics:
        topic.config = {"retention.ms": "86400000"}
    _await(admin.create_topics(topics, operation_timeout=_RESPONSE))
    _await(admin.create_partitions([NewPartitions("many", 20)]))
    _await(admin.delete_topics(["gone"], operation_timeout=_RESPONSE))
    for kind, name, key, value in (
        (ResourceType.TOPIC, "a.b", "max.message.bytes", "5000"),
        (ResourceType.BROKER, "1", "log.cleaner.threads", "2"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        _await(admin.incremental_alter_configs([resource]))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    _await(
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("second", info, b"secret", b"salt")]
        )
    )
    _await(
        admin.create_acls(
            [
                AclBinding(
                    ResourceType.TOPIC,
                    name,
                    ResourcePatternType.LITERAL,
                    "User:a",
                    "*",
                    AclOperation.READ,
                    AclPermissionType.ALLOW,
                )
                for name in ("many", "other")
            ]
        )
    )
    quotas = "producer_byte_rate=1024,request_percentage=12.5"
    entity = ["--entity-type", "users", "--entity-default", "--entity-type", "clients"]
    arguments = ["--bootstrap-server", bootstrap, "--alter", "--add-config", quotas, *entity]
    tools.run("kafka.admin.ConfigCommand", [*arguments, "--entity-name", "c"])


def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 3})


def _await(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(_RESPONSE)


def test_log_and_snapshots_in_both_directions(
    start_cluster: StartCluster, tools_for: ToolsFor
) -> None:
    options = ClusterOptions(
        heap_mb=512, properties=PROPERTIES, format_options=("--add-scram", CREDENTIAL)
    )
    cluster = start_cluster(options)
    node, bootstrap = cluster.nodes[0], cluster.bootstrap()
    tools = tools_for(bootstrap)
    change_everything(bootstrap, tools)
    listed = _admin(bootstrap).list_topics(timeout=_RESPONSE)
    directory = node.data_directory / METADATA_DIRECTORY
    wait_until(lambda: snapshots_of(directory), "Kafka has written a snapshot", _RESPONSE)
    running = replayed(log_batches(directory))
    assert_topics_are(running, listed.topics)
    assert_other_objects(running)
    node.stop()

    batches = log_batches(directory)
    image = replayed(batches)
    assert image.brokers[1].in_controlled_shutdown
    assert {each.leader for each in image.topics["many"].partitions} == {-1}
    for snapshot in snapshots_of(directory):
        end = snapshot.snapshot_id.offset
        then = replayed(batches, end)
        assert comparable(encoded_records(then)) == comparable(snapshot.values())
        assert_equal_content(replayed(batches, snapshot=snapshot), image)

    bootstrap_records = read_bootstrap(system_runtime().files, node.data_directory)
    assert bootstrap_records is not None
    found = read_meta_properties(system_runtime().files, node.data_directory)
    assert found is not None
    assert found.node_id == 1
    path = write_our_snapshot(image, directory)
    assert_kafka_dumps_our_snapshot(tools, image, path)
    node.start()
    admin = _admin(bootstrap)
    wait_until(
        lambda: leaders(admin.list_topics(timeout=_RESPONSE).topics) == leaders(listed.topics),
        "Kafka leads all partitions of our snapshot",
        _RESPONSE,
    )
    node.stop()
    assert_same_objects(replayed(log_batches(directory), snapshot=SnapshotFile(path)), image)


def write_our_snapshot(image: MetadataImage, directory: Path) -> Path:
    """Replace the log and Kafka's snapshots by ours, and return its path."""
    for path in directory.iterdir():
        if path.suffix in {".log", ".index", ".timeindex", ".snapshot", ".checkpoint"}:
            path.unlink()
    (directory / "leader-epoch-checkpoint").unlink()
    snapshot_id = OffsetAndEpoch(image.offset + 1, image.epoch)
    raw = SnapshotFiles(SystemFiles(), directory).write(snapshot_id)
    writer = SnapshotWriter(raw, image.timestamp_ms, ())
    writer.append(list(encoded_records(image)))
    writer.freeze()
    return directory / snapshot_name(snapshot_id)


def leaders(listed: Mapping[str, TopicMetadata]) -> dict[str, dict[int, int]]:
    return {
        name: {number: each.leader for number, each in topic.partitions.items()}
        for name, topic in listed.items()
    }


def assert_same_objects(first: MetadataImage, second: MetadataImage) -> None:
    """But for what changes when a broker starts and stops."""
    for name in ("topic_names", "configs", "features", "client_quotas", "acls", "scram"):
        assert getattr(first, name) == getattr(second, name), name


def snapshots_of(directory: Path) -> list[SnapshotFile]:
    return [SnapshotFile(path) for path in sorted(directory.glob("*.checkpoint"))]


def comparable(values: Iterable[bytes]) -> list[bytes]:
    """Return the values of records in order; Kafka keeps objects in hash tables."""
    found = []
    for value in values:
        record = MetadataRecord.decode_framed(value)
        if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
            record.features.sort(key=lambda each: each.name)
        found.append(record.encode_framed(value[2]))
    return sorted(found)


def assert_topics_are(image: MetadataImage, listed: Mapping[str, TopicMetadata]) -> None:
    ours = {
        name: {
            number: (each.leader, list(each.replicas), list(each.isr))
            for number, each in enumerate(topic.partitions)
        }
        for name, topic in image.topics.items()
    }
    theirs = {
        name: {
            number: (each.leader, each.replicas, each.isrs)
            for number, each in topic.partitions.items()
        }
        for name, topic in listed.items()
    }
    assert ours == theirs
    assert len(ours["many"]) == 20
    assert "gone" not in ours


def assert_other_objects(image: MetadataImage) -> None:
    assert image.topic_config("a.b") == {"retention.ms": "86400000", "max.message.bytes": "5000"}
    assert image.config(4, "1")["log.cleaner.threads"] == "2"
    assert set(image.scram) == {(1, "first"), (2, "second")}
    assert sorted(acl.resource_name for acl in image.acls.values()) == ["many", "other"]
    entity = (("client-id", "c"), ("user", None))
    assert image.client_quotas == {
        entity: {"producer_byte_rate": 1024.0, "request_percentage": 12.5}
    }
    assert image.features["metadata.version"] == MetadataVersion.parse(NEWEST)
    assert not image.brokers[1].fenced
    assert image.brokers[1].features["metadata.version"][0] == 7
    assert set(image.controllers) == {1}


def assert_equal_content(first: MetadataImage, second: MetadataImage) -> None:
    assert comparable(encoded_records(first)) == comparable(encoded_records(second))
    assert (first.offset, first.epoch) == (second.offset, second.epoch)


def assert_kafka_dumps_our_snapshot(tools: KafkaTools, image: MetadataImage, path: Path) -> None:
    values = list(encoded_records(image))
    output = tools.run(
        "org.apache.kafka.tools.DumpLogSegments", [_DECODER, "--files", str(path)]
    ).stdout.decode()
    assert output.count("payload: {") == len(values)
    assert "SnapshotHeader" in output
    assert "SnapshotFooter" in output
    assert "Could not" not in output
    assert output.count("PARTITION_RECORD") == sum(len(t.partitions) for t in image.topics.values())


def test_kafka_decodes_credentials_that_our_broker_wrote(
    tmp_path: Path, tools_for: ToolsFor
) -> None:
    data = tmp_path / "data"
    with (
        BrokerProcess(data) as broker,
        kclient.AdminClient(bootstrap_servers=broker.bootstrap) as admin,
    ):
        info = kclient.admin.ScramCredentialInfo("SCRAM-SHA-512", 8192)
        admin.alter_user_scram_credentials(
            kclient.admin.UserScramCredentialUpsertion("alice", info, "secret", b"salt")
        )
        admin.alter_user_scram_credentials(
            kclient.admin.UserScramCredentialDeletion("alice", "SCRAM-SHA-512")
        )
        assert broker.stop() == 0
    (log,) = (data / METADATA_DIRECTORY).glob("*.log")
    output = (
        tools_for("")
        .run("org.apache.kafka.tools.DumpLogSegments", [_DECODER, "--files", str(log)])
        .stdout.decode()
    )
    assert "Could not" not in output
    (added,) = re.findall(r'payload: (\{"type":"USER_SCRAM_CREDENTIAL_RECORD".*\})', output)
    record = json.loads(added)["data"]
    assert (record["name"], record["mechanism"], record["iterations"]) == ("alice", 2, 8192)
    (removed,) = re.findall(r'payload: (\{"type":"REMOVE_USER_SCRAM_CREDENTIAL.*\})', output)
    assert json.loads(removed)["data"] == {"name": "alice", "mechanism": 2}


def test_kafkas_metadata_shell_shows_the_metadata_of_our_broker(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with BrokerProcess(data) as broker:
        admin = _admin(broker.bootstrap)
        orders = NewTopic("orders", 2, 1, config={"retention.ms": "1000"})
        _await(admin.create_topics([orders, NewTopic("old", 1, 1)]))
        _await(admin.create_partitions([NewPartitions("orders", 3)]))
        _await(admin.delete_topics(["old"]))
        assert broker.stop() == 0
    java = LocalJava(KafkaJars(NEWEST, cache_directory(), SHELL_POM, "kafka-shell"))
    java.prepare()
    shell = KafkaTools(java, tmp_path, "")
    (log,) = (data / METADATA_DIRECTORY).glob("*.log")

    def show(expected: str, *command: str) -> str:
        arguments = ["--snapshot", str(log), *command]

        def output() -> str:
            found = shell.run("org.apache.kafka.shell.MetadataShell", arguments)
            text = found.stdout.decode().strip()
            return text if re.search(expected, text) else ""

        # It runs a command when it has read the file, at times before it has published all of it.
        return wait_until(output, f"the shell shows {expected}", timeout=60)

    image = replayed(log_batches(log.parent))
    topic = image.topics["orders"]
    assert show("orders", "ls", "/image/topics/byName") == "orders"
    assert show(r".", "cat", "/image/topics/byName/orders/id") == uuid_to_text(topic.topic_id)
    assert show("name", "ls", "/image/topics/byName/orders").split() == [
        "0",
        "1",
        "2",
        "id",
        "name",
    ]
    partition = show("leader=1", "cat", "/image/topics/byName/orders/2")
    directory = uuid_to_text(topic.partitions[2].directories[0])
    assert f"replicas=[1], directories=[{directory}], isr=[1]" in partition
    assert "leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0" in partition
    assert show("1000", "cat", "/image/configs/TOPIC:orders/retention.ms") == "1000"
    assert show("IV", "cat", "/image/features/metadataVersion") == "Optional[4.0-IV3]"
    registered = show("fenced=false", "cat", "/image/cluster/brokers/1")
    assert f"BrokerRegistration(id=1, epoch={image.brokers[1].epoch}, " in registered
    assert "fenced=false, inControlledShutdown=false" in registered


def test_kafka_starts_on_a_directory_that_we_formatted(
    runtimes: Callable[[str], KafkaRuntime], tools_for: ToolsFor, tmp_path: Path
) -> None:
    """As the only voter of a dynamic quorum, at a level below the newest."""
    broker, controller = free_port(), free_port()
    properties = {
        "process.roles": "broker,controller",
        "node.id": "7",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    addresses = {"PLAINTEXT": f"127.0.0.1:{broker}"}
    node = KafkaNode(runtimes(NEWEST), tmp_path / "node", properties, addresses, 512)
    node.configure()
    runtime = system_runtime()
    voter = DynamicVoter(7, random_uuid(runtime.random), "127.0.0.1", controller)
    cluster_id = uuid_to_text(random_uuid(runtime.random))
    options = FormatOptions(
        cluster_id=cluster_id,
        node_id=7,
        directories=(node.data_directory,),
        release_version=MetadataVersion.IBP_4_0_IV3,
        features={"eligible.leader.replicas.version": 1},
        initial_controllers=(voter,),
    )
    format_storage(runtime, options)
    tools = tools_for(addresses["PLAINTEXT"])
    configuration = str(node.directory / "server.properties")
    info = tools.run("kafka.tools.StorageTool", ["info", "-c", configuration]).stdout.decode()
    assert cluster_id in info
    assert uuid_to_text(voter.directory_id) in info
    try:
        node.start()
        admin = _admin(addresses["PLAINTEXT"])
        _await(admin.create_topics([NewTopic("t", 2, 1)]))
        node.stop()
    finally:
        node.kill()
    image = replayed(log_batches(node.data_directory / METADATA_DIRECTORY))
    assert image.features == {
        "metadata.version": 25,
        "eligible.leader.replicas.version": 1,
        "transaction.version": 2,
    }
    assert [len(topic.partitions) for topic in image.topics.values()] == [2]
    assert image.brokers[7].directories == (voter.directory_id,)
