"""Limits of connections, descriptors, memory and idle time."""

import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch, fetch_request, records_of
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import open_descriptors, peak_bytes, resident_bytes


def is_served(wire: Wire) -> bool:
    return wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


@pytest.mark.fault("B14")
def test_connections_over_limit_wait() -> None:
    with EmbeddedCluster(config={"max.connections": 2}) as cluster, ExitStack() as stack:
        first, second = (stack.enter_context(Wire(cluster.bootstrap_servers)) for _ in range(2))
        assert is_served(first)
        assert is_served(second)
        third = stack.enter_context(Wire(cluster.bootstrap_servers))
        third.send(ApiVersionsRequest(), 0)
        third.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            third.socket.recv(1, socket.MSG_PEEK)
        assert is_served(first)
        second.socket.close()
        third.socket.settimeout(10)
        assert third.receive(ApiVersionsResponse, 0)[1].error_code == 0


@pytest.mark.fault("B14")
def test_connection_limit_per_address() -> None:
    config = {"max.connections.per.ip": 1}
    with (
        EmbeddedCluster(config=config) as cluster,
        Wire(cluster.bootstrap_servers) as first,
    ):
        assert is_served(first)
        with Wire(cluster.bootstrap_servers) as second:
            assert second.is_closed_by_peer()
        assert is_served(first)


@pytest.mark.fault("B15")
def test_idle_connections_are_closed() -> None:
    with (
        EmbeddedCluster(config={"connections.max.idle.ms": 200}) as cluster,
        Wire(cluster.bootstrap_servers) as wire,
    ):
        assert is_served(wire)
        assert wire.is_closed_by_peer()


@pytest.mark.fault("B14")
def test_many_connections_are_served() -> None:
    with EmbeddedCluster() as cluster, ExitStack() as stack:
        wires = [stack.enter_context(Wire(cluster.bootstrap_servers)) for _ in range(100)]
        assert all(is_served(wire) for wire in wires)


@pytest.mark.fault("B14")
def test_exhausted_file_descriptors(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as process, Wire(process.bootstrap) as first, ExitStack() as more:
        first.create_topic("t")
        first.produce("t", batch([b"a"]))  # opens the files of the first append
        in_use = open_descriptors(process.pid)
        _, hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (in_use + 2, hard))
        waiting = [more.enter_context(Wire(process.bootstrap)) for _ in range(5)]
        for wire in waiting:
            wire.send(ApiVersionsRequest(), 0)
        assert first.produce("t", batch([b"a"])).error_code == 0
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (in_use + 100, hard))
        assert all(wire.receive(ApiVersionsResponse, 0)[1].error_code == 0 for wire in waiting)


@pytest.mark.fault("B16")
def test_memory_depends_on_received_bytes_not_on_frame_size(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as process, ExitStack() as stack:
        wires = [stack.enter_context(Wire(process.bootstrap)) for _ in range(20)]
        assert all(is_served(wire) for wire in wires)
        before = resident_bytes(process.pid)
        for wire in wires:
            wire.send_bytes((100 << 20).to_bytes(4, "big") + b"x" * 1000)
        with Wire(process.bootstrap) as wire:
            assert is_served(wire)
        assert resident_bytes(process.pid) - before < 8 << 20


@pytest.mark.fault("B15")
def test_stalled_reader_does_not_block_others(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as process, Wire(process.bootstrap) as slow:
        slow.create_topic("t", max_message_bytes="2000000")
        for _ in range(20):
            assert slow.produce("t", batch([b"x" * 900_000])).error_code == 0
        before = resident_bytes(process.pid)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for _ in range(5):
            slow.send(fetch_request("t", 0, max_bytes=50 << 20), 12)
        with Wire(process.bootstrap) as other:
            for _ in range(50):
                assert is_served(other)
        # The file is sent by sendfile: unread data is not in memory.
        assert resident_bytes(process.pid) - before < 4 << 20


@pytest.mark.fault("B16")
def test_queued_requests_are_bounded_in_memory(tmp_path: Path) -> None:
    """Thirty clients send three megabytes at once; the broker reads as memory is released."""
    setting = f"queued.max.request.bytes={4 << 20}"
    with BrokerProcess(tmp_path, setting) as broker, ExitStack() as stack:
        wires = [stack.enter_context(Wire(broker.bootstrap)) for _ in range(30)]
        assert all(is_served(wire) for wire in wires)
        too_large = ProduceRequest(
            acks=1,
            topic_data=[
                TopicProduceData(
                    name="t", partition_data=[PartitionProduceData(records=bytes(3 << 20))]
                )
            ],
        )
        before = resident_bytes(broker.pid)
        senders = [threading.Thread(target=wire.send, args=[too_large, 9]) for wire in wires]
        for sender in senders:
            sender.start()
        for wire in wires:
            _, response = wire.receive(ProduceResponse, 9)
            assert response.responses[0].partition_responses[0].error_code == 3
        for sender in senders:
            sender.join()
        assert peak_bytes(broker.pid) - before < 25 << 20


@pytest.mark.fault("B16")
def test_control_requests_are_limited_in_size(tmp_path: Path) -> None:
    """A decoded request takes many times its size, and one thread decodes all requests."""
    with BrokerProcess(tmp_path, "control.request.max.bytes=100000") as broker:
        with Wire(broker.bootstrap) as wire:
            wire.create_topic("t")
            assert wire.produce("t", batch([b"x" * 500_000])).error_code == 0
            names = [MetadataRequestTopic(name="x" * 200) for _ in range(400)]
            assert wire.ask(MetadataRequest(topics=names), 12, MetadataResponse).topics
            wire.send(MetadataRequest(topics=names * 2), 12)
            assert wire.is_closed_by_peer()
        with Wire(broker.bootstrap) as other:
            assert is_served(other)


@pytest.fixture
def pooled() -> Iterator[EmbeddedCluster]:
    """Broker with handler threads and a request queue of two."""
    config = {"num.io.threads": 2, "num.network.threads": 2, "queued.max.requests": 2}
    with EmbeddedCluster(config=config) as cluster:
        yield cluster


def test_handler_threads(pooled: EmbeddedCluster) -> None:
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(pooled.bootstrap_servers)) for _ in range(12)]
        wires[0].create_topic("t")
        for wire in wires:
            wire.send(fetch_request("t", 0, max_wait_ms=9000), 12)
        with Wire(pooled.bootstrap_servers) as writer:
            for number in range(3):
                assert writer.produce("t", batch([b"%d" % number])).base_offset == number
        for wire in wires:
            _, response = wire.receive(FetchResponse, 12)
            assert records_of(response.responses[0].partitions[0].records)[0].value == b"0"
