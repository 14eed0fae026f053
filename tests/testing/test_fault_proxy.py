"""The fault proxy passes everything on, except for the faults that are set."""

import logging
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest

from kclient import Consumer, Producer
from kclient.common.errors import ConfigError, IllegalStateError, InvalidArgumentError
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import encode_request
from kclient.protocol.message import Response
from kclient.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.testing import Direction, EmbeddedCluster, Ending, FaultProxy, FaultRule
from kclient.testing.fault_link import FaultLink
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import read
from tests.support.clients.wire import Wire, batch, fetch_request, joined, records_of
from tests.support.virtual.virtual_cluster import VirtualCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
        yield cluster


@pytest.fixture
def proxy(cluster: EmbeddedCluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap_servers, seed=1) as proxy:
        yield proxy


@pytest.fixture
def wire(proxy: FaultProxy) -> Iterator[Wire]:
    with Wire(proxy.bootstrap_servers) as wire:
        yield wire


def ask(wire: Wire) -> MetadataResponse:
    return wire.ask(MetadataRequest(topics=[]), 12, MetadataResponse)


def request_that_fails(proxy: FaultProxy) -> None:
    with (  # the connection may be reset so quickly that it was not even made
        pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)),
        Wire(proxy.bootstrap_servers) as wire,
    ):
        ask(wire)


def seconds_to_ask(wire: Wire) -> float:
    started = time.monotonic()
    ask(wire)
    return time.monotonic() - started


def end_of_log(cluster: EmbeddedCluster) -> int:
    with Wire(cluster.bootstrap_servers) as straight:
        return straight.fetch("t", 0).high_watermark


# --- passing on


def test_without_a_fault_clients_notice_nothing(proxy: FaultProxy) -> None:
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


def test_bytes_are_left_as_they_are_where_nothing_is_advertised(cluster: EmbeddedCluster) -> None:
    responses = []
    with FaultProxy(cluster.bootstrap_servers, advertise=False) as proxy:
        for address in (cluster.bootstrap_servers, proxy.bootstrap_servers):
            with Wire(address) as wire:
                wire.send(MetadataRequest(topics=None), 12)
                responses.append(wire.receive_frame())
    assert responses[0] == responses[1]


@pytest.mark.parametrize("version", [0, 1, 5, 8, 9, 12, 13])
def test_metadata_names_the_proxy(proxy: FaultProxy, wire: Wire, version: int) -> None:
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


def test_each_broker_that_is_named_gets_a_port_of_its_own() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    listener = {
        "listeners": f"127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
    }
    with EmbeddedCluster(config=listener), FaultProxy(f"127.0.0.1:{port}") as proxy:
        with Wire(proxy.bootstrap_servers) as wire:
            (broker,) = ask(wire).brokers
            assert broker.port != proxy.address[1]
        with Wire(f"{broker.host}:{broker.port}") as second:
            assert [one.port for one in ask(second).brokers] == [broker.port]


def test_what_is_not_kafka_passes_too() -> None:
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


def test_half_a_frame_comes_out_when_its_sender_ends() -> None:
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
def test_a_broker_that_is_not_there_is_a_reset(target: str) -> None:
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


# --- faults of frames


def test_delay_keeps_frames_back(proxy: FaultProxy, wire: Wire) -> None:
    rule = proxy.delay(0.3)
    assert seconds_to_ask(wire) >= 0.6
    assert rule.hits == 2
    proxy.remove(rule)
    proxy.remove(rule)
    ask(wire)
    assert rule.hits == 2
    proxy.delay(0.1, jitter=0.1, api=ApiKey.METADATA, direction=Direction.TO_CLIENT)
    assert seconds_to_ask(wire) >= 0.1


def test_pipelined_requests_are_delayed_once() -> None:
    with VirtualCluster() as simulation:
        producer = simulation.clients.producer(linger_ms=0, batch_size=1)
        producer.send("t", b"first", partition=0).result(10)
        rule = simulation.proxy.delay(0.5, api=ApiKey.PRODUCE, direction=Direction.TO_BROKER)
        started = simulation.now
        futures = []
        for _ in range(5):
            futures.append(producer.send("t", b"v", partition=0))
            simulation.sleep(0.02)
        for future in futures:
            future.result(10)
        assert rule.hits == 5
        assert 0.5 <= simulation.now - started < 0.7


def test_stall_affects_some_frames() -> None:
    with VirtualCluster() as simulation:
        admin = simulation.clients.admin()
        admin.list_topics()
        simulation.proxy.stall(0.1, 0.5, direction=Direction.TO_BROKER)
        times = [simulation.now]
        for _ in range(20):
            admin.list_topics()
            times.append(simulation.now)
        stalled = sum(later - earlier >= 0.1 for earlier, later in pairwise(times))
        assert 0 < stalled < 20


def test_limit_rate_paces_bytes(proxy: FaultProxy, wire: Wire) -> None:
    proxy.limit_rate(20_000, direction=Direction.TO_BROKER)
    started = time.monotonic()
    wire.produce("t", batch([b"v" * 5000]))
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_chunk_cuts_frames_small_and_changes_no_byte(
    proxy: FaultProxy, wire: Wire, size: int
) -> None:
    proxy.chunk(size)
    offset = wire.produce("t", batch([b"chunk" * 50])).base_offset
    assert records_of(wire.fetch("t", offset).records)[-1].value == b"chunk" * 50


def test_chunk_with_a_gap_drips(proxy: FaultProxy, wire: Wire) -> None:
    proxy.chunk(1, gap=0.02, direction=Direction.TO_CLIENT, times=1)
    started = time.monotonic()
    wire.send(MetadataRequest(topics=[]), 12)
    size = len(wire.receive_frame()) + 4
    assert time.monotonic() - started >= 0.02 * (size - 1)


@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET])
@pytest.mark.parametrize("after", [0, 1, 4, 10])
def test_cut_lets_so_many_bytes_through(
    proxy: FaultProxy, wire: Wire, after: int, ending: Ending
) -> None:
    ask(wire)
    rule = proxy.cut(after, ending, api=ApiKey.METADATA, direction=Direction.TO_CLIENT)
    wire.send(MetadataRequest(topics=[]), 12)
    got = b""
    try:
        while chunk := wire.socket.recv(100):
            got += chunk
        ended = Ending.CLOSE
    except ConnectionResetError:
        ended = Ending.RESET
    assert ended is ending
    assert len(got) == after if ending is Ending.CLOSE else len(got) <= after
    assert rule.hits == 1
    with Wire(proxy.bootstrap_servers) as again:
        ask(again)


def test_cut_of_a_request_keeps_it_from_the_broker(
    proxy: FaultProxy, wire: Wire, cluster: EmbeddedCluster
) -> None:
    before = end_of_log(cluster)
    proxy.cut(60, api=ApiKey.PRODUCE)
    with pytest.raises((EOFError, ConnectionResetError)):
        wire.produce("t", batch([b"half"]))
    assert end_of_log(cluster) == before


def test_drop_response_lets_the_request_take_effect(
    proxy: FaultProxy, wire: Wire, cluster: EmbeddedCluster
) -> None:
    before = end_of_log(cluster)
    proxy.drop_response(ApiKey.PRODUCE)
    with pytest.raises((EOFError, ConnectionResetError)):
        wire.produce("t", batch([b"kept"]))
    assert end_of_log(cluster) == before + 1


def test_silence_leaves_the_connection_half_open(proxy: FaultProxy, wire: Wire) -> None:
    proxy.drop_response(ApiKey.METADATA, Ending.SILENCE)
    wire.send(MetadataRequest(topics=[]), 12)
    wire.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    wire.send(MetadataRequest(topics=[]), 12)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    assert proxy.connections == 1
    proxy.heal()
    wire.socket.settimeout(10)
    assert wire.is_closed_by_peer()


def test_drop_and_duplicate(proxy: FaultProxy, wire: Wire) -> None:
    proxy.drop(api=ApiKey.METADATA, direction=Direction.TO_CLIENT)
    proxy.duplicate(api=ApiKey.METADATA, direction=Direction.TO_CLIENT, nth=2)
    sent = [wire.send(MetadataRequest(topics=[]), 12) for _ in range(3)]
    got = [wire.receive(MetadataResponse, 12)[0] for _ in range(3)]
    assert got == [sent[1], sent[1], sent[2]]


def corrupted(cluster: EmbeddedCluster, seed: int, at: int | None) -> list[int]:
    """Return the positions of the bytes that a proxy changed in a response."""
    with FaultProxy(cluster.bootstrap_servers, seed=seed) as proxy:
        with Wire(proxy.bootstrap_servers) as wire:
            rule = proxy.corrupt(at, direction=Direction.TO_CLIENT)
            frames = []
            for _ in range(2):
                wire.send(MetadataRequest(topics=[]), 12)
                frames.append(wire.receive_frame()[4:])
        assert rule.hits == 1
    return [index + 8 for index, pair in enumerate(zip(*frames, strict=True)) if len({*pair}) > 1]


def test_corrupt_turns_one_bit_over_the_same_for_the_same_seed(cluster: EmbeddedCluster) -> None:
    assert corrupted(cluster, 3, 12) == [12]
    first = corrupted(cluster, 3, None)
    assert len(first) == 1
    assert corrupted(cluster, 3, None) == first
    assert [corrupted(cluster, seed, None) for seed in range(4, 8)] != [first] * 4


def test_replace_puts_any_bytes_in_place(proxy: FaultProxy, wire: Wire) -> None:
    proxy.replace(b"HTTP/1.1", direction=Direction.TO_CLIENT)
    wire.send(MetadataRequest(topics=[]), 12)
    assert wire.socket.recv(100) == b"HTTP/1.1"
    proxy.replace(lambda data: data[:4] + struct.pack(">i", 77) + data[8:], nth=2)
    wire.send(MetadataRequest(topics=[]), 12)
    assert wire.receive(MetadataResponse, 12)[0] == 77


def test_edit_changes_a_field(proxy: FaultProxy, wire: Wire) -> None:
    def rename(response: Response) -> None:
        assert isinstance(response, MetadataResponse)
        response.cluster_id = "another"

    proxy.edit(ApiKey.METADATA, rename, nth=2)
    assert ask(wire).cluster_id != "another"
    assert ask(wire).cluster_id == "another"
    assert ask(wire).cluster_id == "another"


def test_failing_fault_function_resets_connection_and_raises_at_close(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(data: bytes) -> bytes:
        raise ValueError(f"mine: {len(data)}")

    proxy = FaultProxy(cluster.bootstrap_servers)
    proxy.start()
    proxy.replace(fail, connection=1)
    with caplog.at_level(logging.ERROR):
        request_that_fails(proxy)
    assert "mine" in caplog.text
    with Wire(proxy.bootstrap_servers) as other:
        assert ask(other).brokers
    with pytest.raises(ValueError, match="mine"):
        proxy.close()
    proxy.close()  # raised once


def test_a_fault_that_failed_does_not_hide_what_failed_before_it(cluster: EmbeddedCluster) -> None:
    def fail_in_the_block() -> None:
        with FaultProxy(cluster.bootstrap_servers) as proxy:
            proxy.corrupt(at=1_000_000)
            request_that_fails(proxy)
            raise EOFError("first")

    with pytest.raises(EOFError, match="first"):
        fail_in_the_block()


def test_a_fault_that_fails_where_bytes_are_written_costs_only_its_connection(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame's beginning that a broken connection leaves behind is shaped while bytes are sent."""

    def fail(link: FaultLink, now_ms: float) -> float:
        raise ValueError(f"mine: {link.number} at {now_ms}")

    proxy = FaultProxy(cluster.bootstrap_servers)
    proxy.start()
    with monkeypatch.context() as patch:
        patch.setattr(FaultLink, "step", fail)
        request_that_fails(proxy)
    with Wire(proxy.bootstrap_servers) as other:
        assert ask(other).brokers
    with pytest.raises(ValueError, match="mine"):
        proxy.close()


def test_threads_that_set_faults_at_once_lose_none(proxy: FaultProxy) -> None:
    rules: list[FaultRule] = []

    def set_many() -> None:
        for _ in range(200):
            proxy.remove(proxy.drop(connection=99))
            rules.append(proxy.delay(0, connection=1))

    threads = [threading.Thread(target=set_many) for _ in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    with Wire(proxy.bootstrap_servers) as wire:
        ask(wire)
    assert [rule.hits for rule in rules] == [2] * 800


def test_frames_are_counted_by_what_was_asked_for(proxy: FaultProxy) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(Wire(proxy.bootstrap_servers)) for _ in range(2))
        ask(first)
        ask(second)
        rule = proxy.drop(connection=2, nth=3, times=2, direction=Direction.TO_CLIENT)
        for wire in (first, second):
            sent = [wire.send(MetadataRequest(topics=[]), 12) for _ in range(6)]
            expected = sent if wire is first else [sent[0], sent[1], sent[4], sent[5]]
            assert [wire.receive(MetadataResponse, 12)[0] for _ in expected] == expected
        assert (rule.seen, rule.hits) == (6, 2)


# --- faults of connections


def test_kill_connections_and_take_new_ones(proxy: FaultProxy, wire: Wire) -> None:
    ask(wire)
    proxy.kill_connections()
    assert proxy.connections == 0
    assert wire.is_closed_by_peer()
    with Wire(proxy.bootstrap_servers) as again:
        ask(again)
    assert proxy.accepted == 2


def test_connections_live_only_so_long(proxy: FaultProxy) -> None:
    proxy.limit_lifetime(0.1, 0.2)
    started = time.monotonic()
    with Wire(proxy.bootstrap_servers) as wire:
        ask(wire)
        assert wire.is_closed_by_peer()
    assert time.monotonic() - started >= 0.1


def test_refuse_and_heal_at_the_same_port(proxy: FaultProxy, wire: Wire) -> None:
    ask(wire)
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        Wire(proxy.bootstrap_servers)
    ask(wire)
    proxy.heal()
    with Wire(proxy.bootstrap_servers) as again:
        ask(again)


def test_heal_says_that_its_port_was_taken(proxy: FaultProxy) -> None:
    proxy.refuse()
    with socket.create_server(proxy.address), pytest.raises(OSError, match="in use"):
        proxy.heal()
    proxy.heal()
    with Wire(proxy.bootstrap_servers) as wire:
        ask(wire)


def test_a_black_hole_swallows(proxy: FaultProxy, wire: Wire) -> None:
    ask(wire)
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


def test_hold_lets_nothing_move_and_loses_nothing(proxy: FaultProxy, wire: Wire) -> None:
    ask(wire)
    proxy.hold()
    sent = wire.send(MetadataRequest(topics=[]), 12)
    wire.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        wire.socket.recv(1)
    proxy.heal()
    wire.socket.settimeout(10)
    assert wire.receive(MetadataResponse, 12)[0] == sent


def test_a_reader_that_does_not_read_is_waited_for(proxy: FaultProxy, wire: Wire) -> None:
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


def test_leaves_nothing_behind(cluster: EmbeddedCluster) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    for _ in range(3):
        with FaultProxy(cluster.bootstrap_servers) as proxy, Wire(proxy.bootstrap_servers) as wire:
            ask(wire)
    wait_until(lambda: descriptors() <= before, "descriptors are given back")
    assert not [one for one in threading.enumerate() if one.name == "kclient-fault-proxy"]


def test_is_used_in_a_with_block(cluster: EmbeddedCluster) -> None:
    proxy = FaultProxy(cluster.bootstrap_servers)
    for use in (proxy.heal, proxy.refuse, lambda: proxy.address, lambda: proxy.connections):
        with pytest.raises(IllegalStateError, match="with block"):
            use()
    proxy.close()
    with proxy, pytest.raises(IllegalStateError, match="already"):
        proxy.start()
    with proxy, Wire(proxy.bootstrap_servers) as wire:
        ask(wire)


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
        (lambda: proxy.edit(ApiKey.VOTE, lambda _: None), "api: got .*VOTE"),
    ):
        with pytest.raises(InvalidArgumentError, match=text):
            call()
