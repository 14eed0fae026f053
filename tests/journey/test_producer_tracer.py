"""Traced records of a producer: no time is left out, none counts twice."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from kclient import Producer
from kclient.common.broker_errors import InvalidRecordError, NotLeaderOrFollowerError
from kclient.journey import Journey
from kclient.journey.stages import PRODUCER_STAGES
from kclient.journey.traces import Trace
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.virtual import VirtualProcess, VirtualWorld
from tests.support.checks.waiting import wait_until

NAMES = [stage.name for stage in PRODUCER_STAGES]
CONFIG = {"allow.unauthenticated.listeners": True, "listeners": "broker:9092"}
LINGER_MS = 20


def check(traces: list[Trace], count: int) -> None:
    """Check that the stages of each record add up to its whole, with those of the broker."""
    assert len(traces) == count
    for trace in traces:
        assert list(trace.durations_ns) == NAMES
        assert all(value >= 0 for value in trace.durations_ns.values())
        assert sum(trace.durations_ns.values()) == trace.ended_ns - trace.started_ns
    assert sorted(trace.offset for trace in traces) == list(range(count))


Send = Callable[[VirtualProcess, Producer], None]


def virtual_traces(
    seed: int, send: Send, set_faults: Callable[[BrokerFaults], object] | None = None
) -> list[Trace]:
    """Trace every record that `send` sends, in a simulation."""
    with VirtualWorld(seed) as world:
        host = world.machine("broker").process("broker")
        cluster = EmbeddedCluster(data_dir="/data", config=CONFIG, runtime=host.runtime)
        if set_faults is not None:
            set_faults(cluster.faults)
        starting = host.spawn("start", cluster.start)
        world.run(until=lambda: starting.over)
        shop = world.machine("shop").process("shop")
        found: list[Trace] = []

        def run() -> None:
            with (
                Producer(
                    bootstrap_servers="broker:9092", runtime=shop.runtime, linger_ms=LINGER_MS
                ) as producer,
                Journey(producer, interval=0, runtime=shop.runtime) as journey,
            ):
                cluster.broker.observe_requests(journey.broker_times.observe)
                send(shop, producer)
                assert journey.close() == 0
                shop.sleep(1.0)  # the broker has recorded the last response as sent
                found.extend(journey.traces())

        sending = shop.spawn("main", run)
        world.run(until=lambda: sending.over)
        return found


@pytest.mark.parametrize("seed", range(5))
def test_stages_add_up_in_a_simulation(seed: int) -> None:
    def send(shop: VirtualProcess, producer: Producer) -> None:
        for number in range(30):
            producer.send("orders", b"%d" % number, partition=0)
            shop.sleep(0.007)

    traces = virtual_traces(seed, send)
    check(traces, 30)
    # Time advances only in waits: for more records, on the wire, and for metadata.
    for trace in traces:
        spent = {name for name, value in trace.durations_ns.items() if value}
        assert spent <= {"partitioning", "accumulator wait", "wire to broker", "wire back"}
        assert trace.durations_ns["accumulator wait"] <= LINGER_MS * 1e6
    assert any(trace.durations_ns["wire to broker"] for trace in traces)


def test_time_of_a_failed_request_counts_as_retries() -> None:
    def send(_: VirtualProcess, producer: Producer) -> None:
        producer.send("orders", b"first", partition=0).result(timeout=60)

    def fail(faults: BrokerFaults) -> None:
        faults.fail(ApiKey.PRODUCE, NotLeaderOrFollowerError)

    traces = virtual_traces(1, send, fail)
    check(traces, 1)
    assert traces[0].durations_ns["retries"] > 0


def test_delay_in_the_broker_counts_as_its_remote_or_queue_time() -> None:
    def send(_: VirtualProcess, producer: Producer) -> None:
        producer.send("orders", b"first", partition=0).result(timeout=60)

    (trace,) = virtual_traces(1, send, lambda faults: faults.delay(ApiKey.PRODUCE, 0.3))
    inside = [value for name, value in trace.durations_ns.items() if name.startswith("broker")]
    assert sum(inside) == pytest.approx(300e6, rel=0.01)


def test_stages_add_up_over_sockets_and_follow_the_order_of_the_code() -> None:
    order: list[str] = []

    def serializer(_: str) -> bytes:
        order.append("serialized")
        return b"value"

    with (
        EmbeddedCluster() as cluster,
        Producer(
            bootstrap_servers=cluster.bootstrap_servers, value_serializer=serializer
        ) as producer,
        Journey(producer, interval=0) as journey,
    ):
        times = journey.broker_times
        cluster.broker.observe_requests(times.observe)
        for number in range(200):
            producer.send(
                "orders", f"{number}", partition=0, on_delivery=lambda *_: order.append("delivered")
            )
        assert journey.close() == 0
        last = {trace.ended_ns for trace in journey.traces()}
        wait_until(
            lambda: all("broker local" in trace.durations_ns for trace in journey.traces()),
            "the broker has recorded each request",
        )
        traces = journey.traces()
    check(traces, 200)
    assert {trace.ended_ns for trace in traces} == last
    assert (order.count("serialized"), order.count("delivered")) == (200, 200)
    starts = [trace.started_ns for trace in traces]
    assert all(first < second for first, second in pairwise(starts))


def test_record_that_fails_has_no_trace() -> None:
    with (
        EmbeddedCluster() as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers, retries=0) as producer,
        Journey(producer, interval=0) as journey,
    ):
        cluster.faults.fail(ApiKey.PRODUCE, InvalidRecordError)
        assert producer.send("orders", b"bad").exception(timeout=20) is not None
        assert journey.close() == 0
        assert journey.traces() == []
        assert journey.report().sections == []
