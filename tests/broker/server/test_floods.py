"""More connections than the limit: existing ones are served, and the broker recovers."""

import resource
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, records_of
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import open_descriptors

pytestmark = pytest.mark.fault("B14")


def is_served(wire: Wire) -> bool:
    return wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0


def check_served(wire: Wire, topic: str, written: int) -> None:
    """Write and read over an existing connection."""
    assert wire.produce(topic, batch([b"%d" % written])).base_offset == written
    assert len(records_of(wire.fetch(topic, 0).records)) == written + 1


def test_connection_flood_leaves_descriptors_for_logs(tmp_path: Path) -> None:
    """Topics are created and written to while connections exhaust the descriptors."""
    with (
        BrokerProcess(tmp_path, "socket.listen.backlog.size=200") as broker,
        Wire(broker.bootstrap) as wire,
        ExitStack() as flood,
    ):
        wire.create_topic("t")
        limit = open_descriptors(broker.pid) + 120
        _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (limit, hard))
        connections = [flood.enter_context(Wire(broker.bootstrap)) for _ in range(150)]
        kept = limit - limit // 4
        wait_until(lambda: open_descriptors(broker.pid) >= kept - 1, "all descriptors are in use")
        for number in range(5):
            check_served(wire, "t", number)
            wire.create_topic(f"new-{number}")
            check_served(wire, f"new-{number}", 0)
        assert open_descriptors(broker.pid) < limit
        for connection in connections:
            connection.socket.close()
        with Wire(broker.bootstrap) as late:
            assert is_served(late)
        wait_until(lambda: open_descriptors(broker.pid) < limit // 2, "the connections are closed")


def test_connection_flood_from_one_address_does_not_block_others(tmp_path: Path) -> None:
    with EmbeddedCluster(config={"max.connections.per.ip": 3}) as cluster, ExitStack() as stack:
        host, _, port = cluster.bootstrap_servers.rpartition(":")
        wires = [stack.enter_context(Wire(cluster.bootstrap_servers)) for _ in range(3)]
        assert all(is_served(wire) for wire in wires)
        for _ in range(30):
            with Wire(cluster.bootstrap_servers) as refused:
                assert refused.is_closed_by_peer()
        elsewhere = socket.create_connection((host, int(port)), 10, ("127.0.0.2", 0))
        with Wire(cluster.bootstrap_servers, connected=elsewhere) as other:
            assert is_served(other)
        wires[0].socket.close()
        wait_until(lambda: _gets_in(cluster.bootstrap_servers), "a place is free again")
        assert all(is_served(wire) for wire in wires[1:])


def _gets_in(address: str) -> bool:
    try:
        with Wire(address) as wire:
            return is_served(wire)
    except (OSError, EOFError):
        return False


def test_connection_creation_rate_is_limited() -> None:
    """KIP-612: connections over the rate wait in the backlog; existing ones are not slowed."""
    with (
        EmbeddedCluster(config={"max.connection.creation.rate": 20}) as cluster,
        Wire(cluster.bootstrap_servers) as existing,
        ExitStack() as stack,
    ):
        assert is_served(existing)
        began = time.monotonic()
        wires = [stack.enter_context(Wire(cluster.bootstrap_servers)) for _ in range(40)]
        for wire in wires:
            wire.send(ApiVersionsRequest(), 0)
        assert is_served(existing)
        for wire in wires:
            assert wire.receive(ApiVersionsResponse, 0)[1].error_code == 0
        # Twenty at once, and the others at twenty a second.
        assert time.monotonic() - began >= 0.9
