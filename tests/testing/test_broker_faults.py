"""Faults inside the broker affect the selected calls only."""

import time
from collections.abc import Iterator

import pytest

from kclient import Producer
from kclient.common.broker_errors import NotEnoughReplicasError, NotLeaderOrFollowerError
from kclient.common.errors import IllegalStateError, InvalidArgumentError
from kclient.protocol.headers import peek_correlation_id
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kclient.testing import ApiKey, EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, fetch_request


@pytest.fixture(scope="module", params=[0, 2], ids=["inline", "handler threads"])
def shared(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"num.io.threads": request.param}) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
        yield cluster


@pytest.fixture
def cluster(shared: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    shared.faults.requests.clear()
    yield shared
    shared.faults.heal()


@pytest.fixture
def wire(cluster: EmbeddedCluster) -> Iterator[Wire]:
    with Wire(cluster.bootstrap_servers) as wire:
        yield wire


def request_that_fails(cluster: EmbeddedCluster) -> None:
    with (
        Wire(cluster.bootstrap_servers) as wire,
        pytest.raises((EOFError, ConnectionResetError)),
    ):
        wire.ask(MetadataRequest(topics=[]), 12, MetadataResponse)


def end(wire: Wire) -> int:
    return wire.fetch("t", 0).high_watermark


def test_nth_calls_fail_without_effect(cluster: EmbeddedCluster, wire: Wire) -> None:
    before = end(wire)
    fault = cluster.faults.fail(ApiKey.PRODUCE, NotLeaderOrFollowerError, nth=2, times=2)
    codes = [wire.produce("t", batch([b"v"])).error_code for _ in range(4)]
    assert codes == [0, 6, 6, 0]
    assert end(wire) == before + 2
    assert (fault.seen, fault.hits) == (4, 2)


def test_handled_call_fails_and_takes_effect(cluster: EmbeddedCluster, wire: Wire) -> None:
    before = end(wire)
    cluster.faults.fail(ApiKey.PRODUCE, 20, handled=True)
    assert wire.produce("t", batch([b"v"])).error_code == 20
    assert end(wire) == before + 1


def test_fault_affects_only_its_client(cluster: EmbeddedCluster, wire: Wire) -> None:
    cluster.faults.fail(ApiKey.PRODUCE, NotEnoughReplicasError, client_id="another")
    assert wire.produce("t", batch([b"v"])).error_code == 0
    cluster.faults.fail(ApiKey.PRODUCE, NotEnoughReplicasError, client_id="test")
    assert wire.produce("t", batch([b"v"])).error_code == 19


def test_failed_request_without_response_closes_connection(
    cluster: EmbeddedCluster, wire: Wire
) -> None:
    cluster.faults.fail(ApiKey.PRODUCE, NotEnoughReplicasError)
    wire.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 9)
    assert wire.is_closed_by_peer()
    assert cluster.faults.requests[-1].api is ApiKey.PRODUCE


def test_delayed_request_is_handled_after_the_delay(cluster: EmbeddedCluster, wire: Wire) -> None:
    with Wire(cluster.bootstrap_servers) as other:
        before = end(other)
        cluster.faults.delay(ApiKey.PRODUCE, 0.3)
        started = time.monotonic()
        sent = wire.send(produce_request(), 9)
        wait_until(lambda: end(other) == before + 1, "the request is handled")
        assert time.monotonic() - started >= 0.3
        assert wire.receive(ProduceResponse, 9)[0] == sent


def test_delayed_response_is_sent_after_the_delay(cluster: EmbeddedCluster, wire: Wire) -> None:
    cluster.faults.delay(ApiKey.PRODUCE, 0.3, response_only=True)
    started = time.monotonic()
    assert wire.produce("t", batch([b"v"])).error_code == 0
    assert time.monotonic() - started >= 0.3


def test_request_with_delayed_response_is_handled_before_the_delay_ends(
    cluster: EmbeddedCluster, wire: Wire
) -> None:
    with Wire(cluster.bootstrap_servers) as other:
        before = end(other)
        cluster.faults.delay(ApiKey.PRODUCE, 3600, response_only=True)
        wire.send(produce_request(), 9)
        wait_until(lambda: end(other) == before + 1, "the request is handled")


def produce_request() -> ProduceRequest:
    part = PartitionProduceData(index=0, records=batch([b"v"]))
    return ProduceRequest(
        acks=-1, timeout_ms=5000, topic_data=[TopicProduceData(name="t", partition_data=[part])]
    )


def test_drop_response_and_disconnect(cluster: EmbeddedCluster, wire: Wire) -> None:
    for set_fault, effect in ((cluster.faults.drop_response, 1), (cluster.faults.disconnect, 0)):
        with Wire(cluster.bootstrap_servers) as victim:
            before = end(wire)
            set_fault(ApiKey.PRODUCE)
            with pytest.raises((EOFError, ConnectionResetError)):
                victim.produce("t", batch([b"v"]))
            assert end(wire) == before + effect


def test_edit_changes_response(cluster: EmbeddedCluster, wire: Wire) -> None:
    def throttle(response: MetadataResponse) -> None:
        response.throttle_time_ms = 77

    fault = cluster.faults.edit(ApiKey.METADATA, throttle)
    ask = MetadataRequest(topics=[])
    assert wire.ask(ask, 12, MetadataResponse).throttle_time_ms == 77
    assert wire.ask(ask, 12, MetadataResponse).throttle_time_ms == 77
    cluster.faults.remove(fault)
    assert wire.ask(ask, 12, MetadataResponse).throttle_time_ms == 0


def test_edit_changes_response_to_single_append(cluster: EmbeddedCluster, wire: Wire) -> None:
    def shift(response: ProduceResponse) -> None:
        response.responses[0].partition_responses[0].base_offset += 1000

    before = end(wire)
    fault = cluster.faults.edit(ApiKey.PRODUCE, shift)
    assert wire.produce("t", batch([b"v"])).base_offset == before + 1000
    cluster.faults.remove(fault)
    assert wire.produce("t", batch([b"v"])).base_offset == before + 1


def test_failing_fault_function_raises_at_close() -> None:
    cluster = EmbeddedCluster()
    cluster.start()
    cluster.faults.edit(ApiKey.METADATA, lambda response: response.no_such_field)
    request_that_fails(cluster)
    with pytest.raises(AttributeError, match="no_such_field"):
        cluster.close()
    cluster.close()  # raised once


def test_failing_fault_does_not_hide_an_earlier_error() -> None:
    def fail_in_the_block() -> None:
        with EmbeddedCluster() as cluster:
            cluster.faults.edit(ApiKey.METADATA, lambda response: response.no_such_field)
            request_that_fails(cluster)
            raise EOFError("first")

    with pytest.raises(EOFError, match="first"):
        fail_in_the_block()


def test_muted_broker_responds_after_unmute(cluster: EmbeddedCluster, wire: Wire) -> None:
    before = end(wire)
    with Wire(cluster.bootstrap_servers) as waiting:
        asked = waiting.send(fetch_request("t", before, max_wait_ms=20_000), 12)
        wait_until(lambda: cluster.faults.requests[-1].api is ApiKey.FETCH, "it waits")
        cluster.faults.mute()
        wire.socket.settimeout(0.3)
        sent = wire.send(produce_request(), 9)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        cluster.faults.unmute()
        wire.socket.settimeout(10)
        assert wire.receive(ProduceResponse, 9)[0] == sent
        assert peek_correlation_id(waiting.receive_frame()) == asked
    assert end(wire) == before + 1


def test_seen_requests_are_recorded(cluster: EmbeddedCluster, wire: Wire) -> None:
    wire.produce("t", batch([b"v"]))
    seen = cluster.faults.requests[-1]
    assert (seen.api, seen.version, seen.client_id) == (ApiKey.PRODUCE, 9, "test")
    assert isinstance(seen.body, ProduceRequest)
    assert seen.body.topic_data[0].name == "t"


@pytest.mark.parametrize("handled", [False, True])
def test_kill_fault_kills_the_broker_at_a_call(handled: bool) -> None:
    with EmbeddedCluster() as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            broker = cluster.broker
            cluster.faults.kill(ApiKey.PRODUCE, handled=handled)
            with pytest.raises((EOFError, ConnectionResetError)):
                wire.produce("t", batch([b"v"]))
        wait_until(lambda: not broker.is_running, "it is dead")
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            assert end(wire) == handled
            wire.produce("t", batch([b"v"]))
        cluster.faults.kill()
        with pytest.raises(IllegalStateError):
            _ = cluster.broker


def test_faults_remain_over_a_restart() -> None:
    with EmbeddedCluster() as cluster:
        cluster.faults.fail(ApiKey.PRODUCE, NotLeaderOrFollowerError, times=3)
        cluster.restart()
        with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            assert producer.send("t", b"v").result(20).offset == 0
        assert [seen.api for seen in cluster.faults.requests].count(ApiKey.PRODUCE) == 4


def test_wrong_arguments_are_named() -> None:
    faults = EmbeddedCluster().faults
    with pytest.raises(InvalidArgumentError, match=r"api: got .*VOTE"):
        faults.fail(ApiKey.VOTE, 1)
    with pytest.raises(InvalidArgumentError, match="seconds: got -1"):
        faults.delay(ApiKey.FETCH, -1)
    with pytest.raises(InvalidArgumentError, match="nth: got 0"):
        faults.disconnect(ApiKey.FETCH, nth=0)
    with pytest.raises(InvalidArgumentError, match="times: got 0"):
        faults.disconnect(ApiKey.FETCH, times=0)
