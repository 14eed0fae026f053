"""Clients that send or read very slowly cost little and are closed."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.common.broker_errors import NONE
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, fetch_request
from tests.support.processes.broker_process import BrokerProcess
from tests.support.processes.process_stats import cpu_seconds, open_descriptors, resident_bytes

pytestmark = pytest.mark.fault("B15")

CLIENTS = 100
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("slow")
    with BrokerProcess(directory) as made, Wire(made.bootstrap) as wire:
        for number in range(10):
            wire.create_topic(f"topic-{number}" + "x" * 200, partitions=20)
        for _ in range(20):
            assert wire.produce(TOPIC, batch([b"x" * 100_000])).error_code == NONE
        yield made


TOPIC = "topic-0" + "x" * 200


def ask_and_never_read(wire: Wire) -> None:
    """Request records and metadata repeatedly without reading the responses."""
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    wire.socket.settimeout(0.2)
    try:
        for _ in range(20_000):
            wire.send(fetch_request(TOPIC, 0, max_bytes=2 * MEGABYTE), 12)
            wire.send(MetadataRequest(topics=None), 12)
    except TimeoutError:
        pass  # the broker reads no further request while a response is pending
    else:
        raise AssertionError("the broker takes requests without end")


def is_served(wire: Wire) -> bool:
    return wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == NONE


def test_unread_responses_are_bounded(broker: BrokerProcess) -> None:
    with ExitStack() as stack, Wire(broker.bootstrap) as other:
        wires = [stack.enter_context(Wire(broker.bootstrap)) for _ in range(20)]
        assert is_served(other)
        before = resident_bytes(broker.pid)
        for wire in wires:
            ask_and_never_read(wire)
        assert resident_bytes(broker.pid) - before < 20 * MEGABYTE
        busy = cpu_seconds(broker.pid)
        for _ in range(50):
            assert is_served(other)
        # Full sockets are waited for, not polled.
        assert cpu_seconds(broker.pid) - busy < 1.0


def test_byte_by_byte_requests(broker: BrokerProcess) -> None:
    """A hundred clients announce a megabyte each, and send it byte by byte."""
    with ExitStack() as stack, Wire(broker.bootstrap) as other:
        assert is_served(other)
        before = resident_bytes(broker.pid)
        wires = [stack.enter_context(Wire(broker.bootstrap)) for _ in range(CLIENTS)]
        for wire in wires:
            wire.send_bytes(MEGABYTE.to_bytes(4, "big"))
        for _ in range(20):
            for wire in wires:
                wire.send_bytes(b"x")
            assert is_served(other)
        assert resident_bytes(broker.pid) - before < 20 * MEGABYTE


def test_idle_clients_use_no_cpu(broker: BrokerProcess) -> None:
    with ExitStack() as stack, Wire(broker.bootstrap) as other:
        for _ in range(CLIENTS):
            stack.enter_context(Wire(broker.bootstrap))
        assert is_served(other)
        before = cpu_seconds(broker.pid)
        # A long poll shows the time by the broker.
        other.fetch("topic-1" + "x" * 200, 0, max_wait_ms=2000)
        assert cpu_seconds(broker.pid) - before < 0.4


def test_stalled_connections_are_closed_after_idle_time(tmp_path: Path) -> None:
    """Idle clients, clients within a request, and clients that do not read their response."""
    with BrokerProcess(tmp_path, "connections.max.idle.ms=1000") as broker:
        before = open_descriptors(broker.pid)
        with ExitStack() as stack, Wire(broker.bootstrap) as alive:
            alive.create_topic(TOPIC)
            for _ in range(20):
                assert alive.produce(TOPIC, batch([b"x" * 100_000])).error_code == NONE
            logs = open_descriptors(broker.pid) - before - 1
            silent = stack.enter_context(Wire(broker.bootstrap))
            halfway = stack.enter_context(Wire(broker.bootstrap))
            halfway.send_bytes(b"\0\0\0\x20half of it")
            deaf = stack.enter_context(Wire(broker.bootstrap))
            ask_and_never_read(deaf)

            def only_one_is_left() -> bool:
                return is_served(alive) and open_descriptors(broker.pid) <= before + logs + 1

            wait_until(only_one_is_left, "the others were closed")
            assert silent.is_closed_by_peer()
            assert halfway.is_closed_by_peer()
