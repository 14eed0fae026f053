"""Faults of frames."""

import logging
import struct
import sys
import threading
import time
from itertools import pairwise

import pytest

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Response
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.testing import Direction, EmbeddedCluster, Ending, FaultProxy, FaultRule
from kclient.testing.fault_link import FaultLink
from tests.support.clients.wire import Wire, ask_metadata, batch, records_of
from tests.support.virtual.virtual_cluster import VirtualCluster


def request_that_fails(proxy: FaultProxy) -> None:
    with (  # the connection may be reset so quickly that it was not even made
        pytest.raises((EOFError, ConnectionResetError, BrokenPipeError)),
        Wire(proxy.bootstrap_servers) as wire,
    ):
        ask_metadata(wire)


def seconds_to_ask(wire: Wire) -> float:
    started = time.monotonic()
    ask_metadata(wire)
    return time.monotonic() - started


def end_of_log(cluster: EmbeddedCluster) -> int:
    with Wire(cluster.bootstrap_servers) as straight:
        return straight.fetch("t", 0).high_watermark


def test_delay_holds_frames_for_its_duration(proxy: FaultProxy, wire: Wire) -> None:
    rule = proxy.delay(0.3)
    assert seconds_to_ask(wire) >= 0.6
    assert rule.hits == 2
    proxy.remove(rule)
    proxy.remove(rule)
    ask_metadata(wire)
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
def test_chunk_splits_frames_without_changing_bytes(
    proxy: FaultProxy, wire: Wire, size: int
) -> None:
    proxy.chunk(size)
    offset = wire.produce("t", batch([b"chunk" * 50])).base_offset
    assert records_of(wire.fetch("t", offset).records)[-1].value == b"chunk" * 50


def test_chunk_with_gap_pauses_between_pieces(proxy: FaultProxy, wire: Wire) -> None:
    proxy.chunk(1, gap=0.02, direction=Direction.TO_CLIENT, times=1)
    started = time.monotonic()
    wire.send(MetadataRequest(topics=[]), 12)
    size = len(wire.receive_frame()) + 4
    assert time.monotonic() - started >= 0.02 * (size - 1)


@pytest.mark.parametrize("ending", [Ending.CLOSE, Ending.RESET])
@pytest.mark.parametrize("after", [0, 1, 4, 10])
def test_cut_passes_the_given_number_of_bytes(
    proxy: FaultProxy, wire: Wire, after: int, ending: Ending
) -> None:
    ask_metadata(wire)
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
        ask_metadata(again)


def test_cut_request_does_not_reach_the_broker(
    proxy: FaultProxy, wire: Wire, cluster: EmbeddedCluster
) -> None:
    before = end_of_log(cluster)
    proxy.cut(60, api=ApiKey.PRODUCE)
    with pytest.raises((EOFError, ConnectionResetError)):
        wire.produce("t", batch([b"half"]))
    assert end_of_log(cluster) == before


def test_request_with_dropped_response_takes_effect(
    proxy: FaultProxy, wire: Wire, cluster: EmbeddedCluster
) -> None:
    before = end_of_log(cluster)
    proxy.drop_response(ApiKey.PRODUCE)
    with pytest.raises((EOFError, ConnectionResetError)):
        wire.produce("t", batch([b"kept"]))
    assert end_of_log(cluster) == before + 1


def test_ending_with_silence_keeps_connection_half_open(proxy: FaultProxy, wire: Wire) -> None:
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


def test_corrupt_flips_one_bit_that_depends_on_the_seed(cluster: EmbeddedCluster) -> None:
    assert corrupted(cluster, 3, 12) == [12]
    first = corrupted(cluster, 3, None)
    assert len(first) == 1
    assert corrupted(cluster, 3, None) == first
    assert [corrupted(cluster, seed, None) for seed in range(4, 8)] != [first] * 4


def test_replace_substitutes_bytes_of_a_frame(proxy: FaultProxy, wire: Wire) -> None:
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
    assert ask_metadata(wire).cluster_id != "another"
    assert ask_metadata(wire).cluster_id == "another"
    assert ask_metadata(wire).cluster_id == "another"


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
        assert ask_metadata(other).brokers
    with pytest.raises(ValueError, match="mine"):
        proxy.close()
    proxy.close()  # raised once


def test_failing_fault_does_not_hide_an_earlier_error(cluster: EmbeddedCluster) -> None:
    def fail_in_the_block() -> None:
        with FaultProxy(cluster.bootstrap_servers) as proxy:
            proxy.corrupt(at=1_000_000)
            request_that_fails(proxy)
            raise EOFError("first")

    with pytest.raises(EOFError, match="first"):
        fail_in_the_block()


def test_fault_that_fails_while_writing_closes_only_its_connection(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frame's beginning that a broken connection leaves behind is shaped while bytes are sent."""

    def fail(link: FaultLink, now_ms: float, idle_ms: float) -> float:
        raise ValueError(f"mine: {link.number} at {now_ms}")

    proxy = FaultProxy(cluster.bootstrap_servers)
    proxy.start()
    with monkeypatch.context() as patch:
        patch.setattr(FaultLink, "step", fail)
        request_that_fails(proxy)
    with Wire(proxy.bootstrap_servers) as other:
        assert ask_metadata(other).brokers
    with pytest.raises(ValueError, match="mine"):
        proxy.close()


def test_faults_set_by_concurrent_threads_are_kept(proxy: FaultProxy) -> None:
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
        ask_metadata(wire)
    assert [rule.hits for rule in rules] == [2] * 800
