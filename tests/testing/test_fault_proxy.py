"""The fault proxy passes everything on, except for the faults that are set."""

import os
import socket
import struct
import threading
import time
from contextlib import ExitStack

import pytest

from kclient import Consumer, Producer
from kclient.common.errors import ConfigError, IllegalStateError, InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import encode_request
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from kclient.testing import Direction, EmbeddedCluster, FaultProxy
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import read
from tests.support.clients.wire import Wire, ask_metadata, batch, fetch_request, joined

# --- passing on


def test_proxy_without_faults_passes_all_frames(proxy: FaultProxy) -> None:
    values = [b"%d" % number * 50 for number in range(2000)]
    with Producer(bootstrap_servers=proxy.bootstrap_servers, compression_type="zstd") as producer:
        producer.send_many("ordinary", values, partition=0).result(20)
    with Consumer(
        bootstrap_servers=proxy.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe("ordinary")
        found = [record.value for record in read(consumer, len(values))]
    assert found == values
    used = {frame.api for frame in proxy.frames if frame.direction is Direction.TO_CLIENT}
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT} <= used


def test_proxy_without_advertising_changes_no_byte(cluster: EmbeddedCluster) -> None:
    responses = []
    with FaultProxy(cluster.bootstrap_servers, advertise=False) as proxy:
        for address in (cluster.bootstrap_servers, proxy.bootstrap_servers):
            with Wire(address) as wire:
                wire.send(MetadataRequest(topics=None), 12)
                responses.append(wire.receive_frame())
    assert responses[0] == responses[1]


@pytest.mark.parametrize("version", [0, 1, 5, 8, 9, 12, 13])
def test_metadata_contains_the_address_of_the_proxy(
    proxy: FaultProxy, wire: Wire, version: int
) -> None:
    response = wire.ask(MetadataRequest(topics=[]), version, MetadataResponse)
    assert [(broker.host, broker.port) for broker in response.brokers] == [proxy.address]


def test_all_responses_with_broker_addresses_are_rewritten(proxy: FaultProxy, wire: Wire) -> None:
    def coordinator(version: int) -> tuple[str, int]:
        if version < 4:
            old = FindCoordinatorRequest(key="g")
            response = wire.ask(old, version, FindCoordinatorResponse)
            return response.host, response.port
        new = FindCoordinatorRequest(coordinator_keys=["g"])
        (found,) = wire.ask(new, version, FindCoordinatorResponse).coordinators
        return found.host, found.port

    wait_until(lambda: coordinator(4)[0], "the topic of positions is there")
    for version in (0, 3, 4, 6):
        assert coordinator(version) == proxy.address
    (broker,) = wire.ask(DescribeClusterRequest(), 1, DescribeClusterResponse).brokers
    assert (broker.host, broker.port) == proxy.address


def test_each_advertised_broker_gets_its_own_port() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    listener = {
        "listeners": f"127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    with EmbeddedCluster(config=listener), FaultProxy(f"127.0.0.1:{port}") as proxy:
        with Wire(proxy.bootstrap_servers) as wire:
            (broker,) = ask_metadata(wire).brokers
            assert broker.port != proxy.address[1]
        with Wire(f"{broker.host}:{broker.port}") as second:
            assert [one.port for one in ask_metadata(second).brokers] == [broker.port]


def test_bytes_of_other_protocols_pass() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with (
            FaultProxy(f"127.0.0.1:{port}") as proxy,
            socket.create_connection(proxy.address, timeout=10) as client,
        ):
            far, _ = server.accept()
            with far:
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert far.recv(100) == b"GET / HTTP/1.1\r\n\r\n"
                far.sendall(b"HTTP/1.1 400 Bad")
                assert client.recv(100) == b"HTTP/1.1 400 Bad"
                far.sendall(b" Request")
            assert client.recv(100) == b" Request"
            assert client.recv(100) == b""


def test_incomplete_frame_is_passed_on_when_its_sender_closes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with FaultProxy(f"127.0.0.1:{port}") as proxy:
            with socket.create_connection(proxy.address, timeout=10) as client:
                far, _ = server.accept()
                client.sendall(b"\x00\x00\x01\x00abc")
            with far:
                far.settimeout(10)
                assert far.recv(100) == b"\x00\x00\x01\x00abc"
                assert far.recv(100) == b""


@pytest.mark.parametrize("target", ["a closed port", "no-such-host.invalid:1"])
def test_unreachable_broker_resets_the_connection(target: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"127.0.0.1:{unused.getsockname()[1]}"
        with FaultProxy(closed if target == "a closed port" else target) as proxy:
            try:
                with Wire(proxy.bootstrap_servers) as wire:
                    assert wire.is_closed_by_peer()
            except ConnectionResetError:  # so quickly that it was not even connected
                pass
            wait_until(lambda: proxy.accepted == 1 and not proxy.connections, "it was reset")


def test_frames_are_counted_by_the_selection_of_the_fault(proxy: FaultProxy) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(Wire(proxy.bootstrap_servers)) for _ in range(2))
        ask_metadata(first)
        ask_metadata(second)
        rule = proxy.drop(connection=2, nth=3, times=2, direction=Direction.TO_CLIENT)
        for wire in (first, second):
            sent = [wire.send(MetadataRequest(topics=[]), 12) for _ in range(6)]
            expected = sent if wire is first else [sent[0], sent[1], sent[4], sent[5]]
            assert [wire.receive(MetadataResponse, 12)[0] for _ in expected] == expected
        assert (rule.seen, rule.hits) == (6, 2)


# --- faults of connections


def test_new_connections_are_accepted_after_kill_connections(proxy: FaultProxy, wire: Wire) -> None:
    ask_metadata(wire)
    proxy.kill_connections()
    assert proxy.connections == 0
    assert wire.is_closed_by_peer()
    with Wire(proxy.bootstrap_servers) as again:
        ask_metadata(again)
    assert proxy.accepted == 2


def test_limit_lifetime_closes_connections(proxy: FaultProxy) -> None:
    proxy.limit_lifetime(0.1, 0.2)
    started = time.monotonic()
    with Wire(proxy.bootstrap_servers) as wire:
        ask_metadata(wire)
        assert wire.is_closed_by_peer()
    assert time.monotonic() - started >= 0.1


def test_heal_listens_at_the_refused_port_again(proxy: FaultProxy, wire: Wire) -> None:
    ask_metadata(wire)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        Wire(proxy.bootstrap_servers)
    ask_metadata(wire)
    proxy.heal()
    with Wire(proxy.bootstrap_servers) as again:
        ask_metadata(again)


def test_heal_reports_that_its_port_is_in_use(proxy: FaultProxy) -> None:
    proxy.refuse()
    with socket.create_server(proxy.address), pytest.raises(OSError, match="in use"):
        proxy.heal()
    proxy.heal()
    with Wire(proxy.bootstrap_servers) as wire:
        ask_metadata(wire)


def test_black_hole_passes_no_byte(proxy: FaultProxy, wire: Wire) -> None:
    ask_metadata(wire)
    proxy.black_hole()
    with Wire(proxy.bootstrap_servers) as fresh:
        for one in (wire, fresh):
            one.send_bytes(b"x" * 100_000)
            one.socket.settimeout(0.2)
            with pytest.raises(TimeoutError):
                one.socket.recv(1)
    wait_until(lambda: proxy.connections == 1, "the one that left is forgotten")
    proxy.heal()
    assert wire.is_closed_by_peer()


def test_held_bytes_are_passed_on_after_heal(proxy: FaultProxy, wire: Wire) -> None:
    ask_metadata(wire)
    proxy.hold()
    sent = wire.send(MetadataRequest(topics=[]), 12)
    wire.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    proxy.heal()
    wire.socket.settimeout(10)
    assert wire.receive(MetadataResponse, 12)[0] == sent


def test_proxy_waits_for_a_slow_reader(proxy: FaultProxy, wire: Wire) -> None:
    wire.produce("t", batch([b"big" * 200_000]))
    end = wire.fetch("t", 0).high_watermark
    asked = 30
    for _ in range(asked):
        wire.send_bytes(fetch_frame(end - 1))
    wait_until(lambda: proxy.frames[-1].api is ApiKey.FETCH, "requests have arrived")
    for _ in range(asked):
        assert len(wire.receive_frame()) > 600_000


def fetch_frame(offset: int) -> bytes:
    body = joined(encode_request(fetch_request("t", offset), 12, 5, "test"))
    return struct.pack(">i", len(body)) + body


# --- life


def test_closed_proxy_leaves_no_descriptor_or_thread(cluster: EmbeddedCluster) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(3):
        with FaultProxy(cluster.bootstrap_servers) as proxy, Wire(proxy.bootstrap_servers) as wire:
            ask_metadata(wire)
    wait_until(lambda: descriptors() <= before, "descriptors are given back")
    assert not [one for one in threading.enumerate() if one.name == "kclient-fault-proxy"]


def test_proxy_requires_a_with_block(cluster: EmbeddedCluster) -> None:
    proxy = FaultProxy(cluster.bootstrap_servers)
    for use in (proxy.heal, proxy.refuse, lambda: proxy.address, lambda: proxy.connections):
        with pytest.raises(IllegalStateError, match="with block"):
            use()
    proxy.close()
    with proxy, pytest.raises(IllegalStateError, match="already"):
        proxy.start()
    with proxy, Wire(proxy.bootstrap_servers) as wire:
        ask_metadata(wire)


def test_wrong_arguments_are_named(proxy: FaultProxy) -> None:
    with pytest.raises(ConfigError, match=r"target: got 'localhost', expected 'host:port'"):
        FaultProxy("localhost")
    with pytest.raises(ConfigError, match=r"listen: got '127\.0\.0\.1'"):
        FaultProxy("h:1", listen="127.0.0.1")
    for call, text in (
        (lambda: proxy.delay(-1), "seconds: got -1"),
        (lambda: proxy.delay(1, float("nan")), "jitter: got nan"),
        (lambda: proxy.stall(-1, 0.5), "seconds: got -1"),
        (lambda: proxy.stall(1, 1.5), "probability: got 1.5"),
        (lambda: proxy.limit_rate(0), "bytes_per_second: got 0"),
        (lambda: proxy.chunk(0), "size: got 0"),
        (lambda: proxy.cut(-3), "after_bytes: got -3"),
        (lambda: proxy.drop(nth=0), "nth: got 0"),
        (lambda: proxy.drop(times=0), "times: got 0"),
        (lambda: proxy.limit_lifetime(2, 1), "lifetime: got 2 to 1"),
        (lambda: proxy.edit(ApiKey.SHARE_FETCH, lambda _: None), "api: got .*SHARE_FETCH"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            call()
