"""Long requests, such as topic changes, do not delay other requests."""

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.common.broker_errors import TopicExistsError, code_of
from kclient.common.files import File
from kclient.common.system_files import SystemFile, SystemFiles
from kclient.network.system_runtime import system_runtime
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kclient.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, records_of

PATIENCE = 20.0


class WatchedFiles(SystemFiles):
    """Counts flushes, and delays operations on the directories of some topics.

    Creation and renaming are delayed for topics called "slow", removal for "stuck".

    Attributes:
        flushes: Flushes by file.
        held_up: Set when a call waits.
        resume: Lets the waiting call continue when set.
    """

    def __init__(self) -> None:
        self.flushes: Counter[str] = Counter()
        self.held_up = threading.Event()
        self.resume = threading.Event()

    def open(self, path: Path, *, create: bool = False) -> File:
        return _WatchedFile(path, super().open(path, create=create), self.flushes)

    def rename(self, source: Path, target: Path, *, flushed: bool = True) -> None:
        self._hold_up(source)
        super().rename(source, target, flushed=flushed)
        if flushed:
            self.flushes["directory"] += 1

    def make_directory(self, path: Path, *, flushed: bool = True) -> None:
        self._hold_up(path)
        super().make_directory(path, flushed=flushed)

    def flush_directory(self, path: Path) -> None:
        self.flushes["directory"] += 1
        super().flush_directory(path)

    def remove_tree(self, path: Path) -> None:
        self._hold_up(path, "stuck-")
        super().remove_tree(path)

    def _hold_up(self, path: Path, prefix: str = "slow-") -> None:
        if path.name.startswith(prefix):
            self.held_up.set()
            assert self.resume.wait(PATIENCE), f"{path} is held up for longer than {PATIENCE:g} s"


class _WatchedFile(SystemFile):
    def __init__(self, path: Path, file: File, flushes: Counter[str]) -> None:
        super().__init__(path, file.fileno())
        self._kept = file  # garbage collection would close the descriptor
        self._flushes = flushes

    def flush(self) -> None:
        self._flushes["file"] += 1
        super().flush()

    def close(self) -> None:
        self._descriptor = -1
        self._kept.close()


@pytest.fixture
def files() -> WatchedFiles:
    return WatchedFiles()


@pytest.fixture(params=[0, 2])
def slow_cluster(
    request: pytest.FixtureRequest, files: WatchedFiles, tmp_path: Path
) -> Iterator[EmbeddedCluster]:
    """Broker, without and with handler threads, in which the topic "slow" is handled slowly."""
    runtime = system_runtime()._replace(files=files)
    config = {"num.io.threads": request.param, "log.segment.delete.delay.ms": 0}
    with EmbeddedCluster(data_dir=tmp_path, config=config, runtime=runtime) as running:
        yield running
        files.resume.set()


def create(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
            for name in names
        ]
    )


def codes(wire: Wire, request: Request) -> list[int]:
    """Send a request that creates or deletes topics; return the error codes."""
    if isinstance(request, CreateTopicsRequest):
        return [topic.error_code for topic in wire.ask(request, 7, CreateTopicsResponse).topics]
    response = wire.ask(request, 4, DeleteTopicsResponse)
    return [topic.error_code for topic in response.responses]


def check_other_requests_succeed(address: str) -> None:
    """Send requests of several kinds; `Wire` times out after some seconds."""
    named = [MetadataRequestTopic(name="other")]
    requests: list[tuple[Request, int, type[Response]]] = [
        (MetadataRequest(topics=named), 12, MetadataResponse),
        (InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse),
        (ListGroupsRequest(), 4, ListGroupsResponse),
    ]
    with Wire(address) as wire:
        assert wire.produce("other", batch([b"a"])).error_code == 0
        assert records_of(wire.fetch("other", 0).records)
        for request, version, response in requests:
            wire.ask(request, version, response)


def check_requests_without_topics_succeed(address: str) -> None:
    with Wire(address) as wire:
        wire.ask(ListGroupsRequest(), 4, ListGroupsResponse)


def test_other_requests_are_served_during_topic_changes(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    address = slow_cluster.bootstrap_servers
    with Wire(address) as busy, Wire(address) as wire:
        assert codes(wire, create("other")) == [0]
        wire.ask(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse)
        slow: list[tuple[Request, int, type[Response]]] = [
            (create("slow", partitions=2), 7, CreateTopicsResponse),
            (
                CreatePartitionsRequest(
                    topics=[CreatePartitionsTopic(name="slow", count=3, assignments=None)]
                ),
                3,
                CreatePartitionsResponse,
            ),
            (DeleteTopicsRequest(topic_names=["slow"]), 4, DeleteTopicsResponse),
        ]
        for request, version, response in slow:
            files.held_up.clear()
            files.resume.clear()
            sent = busy.send(request, version)
            assert files.held_up.wait(PATIENCE)
            check_other_requests_succeed(address)
            files.resume.set()
            assert busy.receive(response, version)[0] == sent


def test_lookups_are_served_while_requests_wait_for_controller(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    address = slow_cluster.bootstrap_servers
    with ExitStack() as stack:
        first, second, third, wire = (stack.enter_context(Wire(address)) for _ in range(4))
        assert codes(wire, create("other")) == [0]
        first.send(create("slow"), 7)
        assert files.held_up.wait(PATIENCE)
        second.send(create("later"), 7)
        third.send(MetadataRequest(topics=[MetadataRequestTopic(name="latest")]), 12)
        since = ListOffsetsPartition(partition_index=0, timestamp=0, current_leader_epoch=-1)
        by_time = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="other", partitions=[since])]
        )
        wire.ask(by_time, 7, ListOffsetsResponse)
        everything = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(resource_type=2, resource_name=str(number))
                for number in range(200)
            ]
        )
        wire.ask(everything, 4, DescribeConfigsResponse)
        files.resume.set()
        for busy in (first, second):
            assert busy.receive(CreateTopicsResponse, 7)[1].topics[0].error_code == 0
        assert third.receive(MetadataResponse, 12)[1].topics[0].name == "latest"


def test_responses_keep_request_order_with_long_requests(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    with Wire(slow_cluster.bootstrap_servers) as wire:
        sent = [
            wire.send(create("slow"), 7),
            wire.send(MetadataRequest(topics=[MetadataRequestTopic(name="slow")]), 12),
            wire.send(DeleteTopicsRequest(topic_names=["slow"]), 4),
            wire.send(MetadataRequest(topics=[]), 12),
        ]
        assert files.held_up.wait(PATIENCE)
        check_requests_without_topics_succeed(slow_cluster.bootstrap_servers)
        wire.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.socket.recv(1, socket.MSG_PEEK)
        wire.socket.settimeout(PATIENCE)
        files.resume.set()
        created = wire.receive(CreateTopicsResponse, 7)
        shown = wire.receive(MetadataResponse, 12)
        deleted = wire.receive(DeleteTopicsResponse, 4)
        last = wire.receive(MetadataResponse, 12)
    assert [created[0], shown[0], deleted[0], last[0]] == sent
    assert created[1].topics[0].error_code == 0
    assert [topic.error_code for topic in shown[1].topics] == [0]
    assert deleted[1].responses[0].error_code == 0


def test_long_request_completes_after_disconnect(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    with Wire(slow_cluster.bootstrap_servers) as closed:
        closed.send(create("slow"), 7)
        assert files.held_up.wait(PATIENCE)
    files.resume.set()
    with Wire(slow_cluster.bootstrap_servers) as wire:
        # The next creation waits for the previous one.
        assert codes(wire, create("other")) == [0]
        assert wire.produce("slow", batch([b"a"])).error_code == 0


def test_topic_appears_in_metadata_only_when_usable(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    address = slow_cluster.bootstrap_servers
    with Wire(address) as busy, Wire(address) as wire:
        busy.send(create("early", "slow"), 7)
        assert files.held_up.wait(PATIENCE)
        request = MetadataRequest(topics=None)
        assert wire.ask(request, 12, MetadataResponse).topics == []
        files.resume.set()
        busy.receive(CreateTopicsResponse, 7)
        assert len(wire.ask(request, 12, MetadataResponse).topics) == 2
        assert wire.produce("early", batch([b"a"])).error_code == 0


def test_topic_changes_proceed_during_file_deletion(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    with Wire(slow_cluster.bootstrap_servers) as wire:
        assert codes(wire, create("stuck")) == [0]
        assert codes(wire, DeleteTopicsRequest(topic_names=["stuck"])) == [0]
        assert files.held_up.wait(PATIENCE)
        assert codes(wire, create("stuck", "other")) == [0, 0]
        check_other_requests_succeed(slow_cluster.bootstrap_servers)
        assert codes(wire, DeleteTopicsRequest(topic_names=["other"])) == [0]


def test_flush_count_is_independent_of_topic_count(
    slow_cluster: EmbeddedCluster, files: WatchedFiles
) -> None:
    def flushes(*requests: Request) -> list[Counter[str]]:
        counted = []
        for request in requests:
            files.flushes.clear()
            assert set(codes(wire, request)) == {0}
            counted.append(files.flushes.copy())
        return counted

    names = [f"many-{number}" for number in range(30)]
    metadata = slow_cluster.data_dir / "__cluster_metadata-0"
    with Wire(slow_cluster.bootstrap_servers) as wire:
        one = flushes(create("one"), DeleteTopicsRequest(topic_names=["one"]))
        before = sum(path.stat().st_size for path in metadata.glob("*.log"))
        many = flushes(create(*names), DeleteTopicsRequest(topic_names=names))
        written = sum(path.stat().st_size for path in metadata.glob("*.log")) - before
    assert written > 30 * 50
    # Log maintenance runs concurrently: it may write checkpoints and topic ids.
    upkeep = 5 + len(names)
    for few, lots in zip(one, many, strict=True):
        assert lots.total() <= few.total() + 2 * upkeep


def test_deleted_topic_can_be_recreated_at_once(tmp_path: Path) -> None:
    """Its old files stay for file.delete.delay.ms, also over a crash, and are not loaded."""
    names = [f"again-{number}" for number in range(5)]
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            for value in (b"first", b"second", b"third"):
                assert set(codes(wire, create(*names, partitions=2))) == {0}
                for name in names:
                    assert wire.produce(name, batch([value])).base_offset == 0
                if value != b"third":
                    assert set(codes(wire, DeleteTopicsRequest(topic_names=names))) == {0}
        assert len(list(tmp_path.glob("again-*-delete"))) == 2 * 2 * len(names)
        cluster.kill()
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            for name in names:
                (record,) = records_of(wire.fetch(name, 0).records)
                assert record.value == b"third"
        wait_until(
            lambda: not list(tmp_path.glob("again-*-delete")), "the deleted logs' files are removed"
        )


def test_topics_of_one_request_are_validated_together(cluster: EmbeddedCluster) -> None:
    with Wire(cluster.bootstrap_servers) as wire:
        assert codes(wire, create("a.b", "a_b", "fine")) == [0, 17, 0]
        exists = code_of(TopicExistsError())
        assert codes(wire, create("fine", "new")) == [exists, 0]
        twice = DeleteTopicsRequest(topic_names=["fine", "absent", "new"])
        assert codes(wire, twice) == [0, 3, 0]
