"""Traces of consumed records: from `send` to the commit, no time is left out or counts twice."""

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.journey import Journey
from kclient.journey.broker_times import BrokerTimes
from kclient.journey.consumed import ConsumedTraces
from kclient.journey.consumer_tracer import FetchMarks, PolledRecords
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, PRODUCER_STAGES
from kclient.journey.traces import Trace
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.virtual import VirtualWorld

SENT = [stage.name for stage in PRODUCER_STAGES]
READ = [stage.name for stage in CONSUMER_STAGES]
NAMES = [*SENT[: SENT.index("broker remote") + 1], *READ]
CONFIG = {"allow.unauthenticated.listeners": True, "listeners": "broker:9092"}
ORDERS = TopicPartition("orders", 0)
MS = 1_000_000


class Found(NamedTuple):
    """Traces of a journey."""

    sent: list[Trace]
    consumed: list[Trace]
    titles: list[str]


def virtual_traces(
    seed: int,
    *,
    processing: float = 0.0,
    set_faults: Callable[[BrokerFaults], object] | None = None,
    exact: bool = True,
) -> Found:
    """Trace 20 records from a producer to a consumer, in a simulation."""
    with VirtualWorld(seed) as world:
        host = world.machine("broker").process("broker")
        cluster = EmbeddedCluster(data_dir="/data", config=CONFIG, runtime=host.runtime)
        starting = host.spawn("start", cluster.start)
        world.run(until=lambda: starting.over)
        shop = world.machine("shop").process("shop")
        found: list[Found] = []

        def run() -> None:
            with (
                Producer(
                    bootstrap_servers="broker:9092", runtime=shop.runtime, linger_ms=0
                ) as producer,
                Consumer(
                    bootstrap_servers="broker:9092",
                    group_id="g",
                    enable_auto_commit=False,
                    auto_offset_reset="earliest",
                    runtime=shop.runtime,
                ) as consumer,
            ):
                producer.send("orders", b"first", partition=0).result(timeout=60)
                consumer.assign([ORDERS])
                while not consumer.poll(1.0):
                    pass
                consumer.commit()
                with Journey(producer, consumer, interval=0, runtime=shop.runtime) as journey:
                    if exact:
                        cluster.broker.observe_requests(journey.broker_times.observe)
                    if set_faults is not None:
                        set_faults(cluster.faults)
                    for number in range(20):
                        future = producer.send("orders", b"%d" % number, partition=0)
                        while not consumer.poll(1.0):
                            pass
                        shop.sleep(processing)
                        consumer.commit()
                        future.result(timeout=60)
                    shop.sleep(1.0)  # the broker has recorded the last response as sent
                titles = [section.title for section in journey.report().sections]
                found.append(Found(journey.traces(), journey.consumed_traces(), titles))

        reading = shop.spawn("main", run)
        world.run(until=lambda: reading.over)
        return found[0]


@pytest.mark.parametrize("seed", range(5))
def test_stages_add_up_from_send_to_the_commit(seed: int) -> None:
    found = virtual_traces(seed, processing=0.05)
    assert sorted(trace.offset for trace in found.consumed) == list(range(1, 21))
    sent = {trace.offset: trace for trace in found.sent}
    for trace in found.consumed:
        assert list(trace.durations_ns) == NAMES
        assert trace.started_ns == sent[trace.offset].started_ns
        assert sum(trace.durations_ns.values()) == trace.ended_ns - trace.started_ns
        assert trace.durations_ns["processing"] == pytest.approx(50 * MS, rel=0.01)
        assert trace.durations_ns["commit"] > 0
        # Time advances only in waits.
        assert trace.durations_ns["decode"] == trace.durations_ns["deserializing"] == 0
    assert any(trace.durations_ns["wire"] for trace in found.consumed)
    assert found.titles == [
        "from send() to the delivery callback",
        "from send() to the commit",
        "Fetch requests, from the request to the response",
    ]


def test_delay_of_fetches_in_the_broker_is_fetch_wait() -> None:
    found = virtual_traces(1, set_faults=lambda faults: faults.delay(ApiKey.FETCH, 0.3))
    assert max(trace.durations_ns["fetch wait"] for trace in found.consumed) >= 250 * MS


def test_without_times_of_the_broker_it_is_one_stage_up_to_the_first_response() -> None:
    found = virtual_traces(2, exact=False)
    assert len(found.titles) == 2
    sent = {trace.offset: trace for trace in found.sent}
    for trace in found.consumed:
        names = list(trace.durations_ns)
        assert BROKER_IN_ALL.name in names
        assert not {"wire", "broker local", "wire back", "callback"} & set(names)
        assert (
            trace.durations_ns[BROKER_IN_ALL.name]
            <= (sent[trace.offset].durations_ns[BROKER_IN_ALL.name])
        )
        assert sum(trace.durations_ns.values()) == trace.ended_ns - trace.started_ns


def polled(first: int, end: int, taken_ns: int, *, committed_ns: int = 0) -> PolledRecords:
    fetch = FetchMarks(taken_ns, taken_ns - 30, taken_ns - 10)
    times = (taken_ns, taken_ns + 1, taken_ns + 3, taken_ns + 6, taken_ns + 10)
    return PolledRecords(ORDERS, first, end, fetch, *times, committed_ns)


def sent(offset: int, started_ns: int) -> Trace:
    stages = {"request encode": 5, BROKER_IN_ALL.name: 20, "callback": 7}
    return Trace("orders", 0, offset, started_ns, started_ns + 32, stages)


def consumed(*records: PolledRecords) -> ConsumedTraces:
    return ConsumedTraces(records, BrokerTimes(), "reader")


def test_record_is_found_by_partition_and_offset() -> None:
    traces = consumed(polled(10, 20, 1000), polled(0, 5, 500))
    offsets = [0, 4, 5, 9, 10, 19, 20]
    found = [trace.offset for trace in traces.from_send(sent(each, 100) for each in offsets)]
    assert found == [0, 4, 10, 19]
    elsewhere = sent(1, 100)._replace(partition=1)
    assert list(traces.from_send([elsewhere])) == []


def test_record_that_was_read_twice_counts_with_the_later_poll() -> None:
    traces = consumed(polled(0, 5, 500), polled(0, 5, 900))
    (trace,) = traces.from_send([sent(3, 100)])
    assert trace.ended_ns == 910


def test_stages_of_the_consumer_follow_those_until_the_record_is_readable() -> None:
    (trace,) = consumed(polled(0, 5, 500, committed_ns=550)).from_send([sent(3, 100)])
    assert trace.durations_ns == {
        "request encode": 5,
        BROKER_IN_ALL.name: 20,
        "fetch wait": 490 - 125,
        "fetch buffer": 10,
        "decode": 1,
        "deserializing": 2,
        "handed out": 3,
        "processing": 4,
        "commit": 40,
    }


def test_fetch_response_before_the_produce_response_ends_the_stage_of_the_broker() -> None:
    (trace,) = consumed(polled(0, 5, 120)).from_send([sent(3, 100)])
    assert trace.durations_ns[BROKER_IN_ALL.name] == 110 - 105
    assert trace.durations_ns["fetch wait"] == 0
    assert "commit" not in trace.durations_ns


def test_traces_of_a_consumer_alone_begin_with_the_fetch() -> None:
    trace, other = consumed(polled(0, 5, 500), polled(5, 9, 900)).from_fetch()
    assert (trace.offset, trace.started_ns) == (0, 470)
    assert (other.offset, other.started_ns) == (5, 870)
    assert trace.durations_ns["fetch wait"] == 20


def test_fetch_of_two_partitions_counts_once() -> None:
    times = BrokerTimes()
    header = {"requestApiKey": int(ApiKey.FETCH), "clientId": "reader", "correlationId": 500}
    stages = dict.fromkeys(
        ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs"), 1e-6
    )
    times.read_log([json.dumps({"requestHeader": header, "receivedNs": 475, **stages})])
    records = [polled(0, 5, 500), polled(5, 9, 500), polled(0, 1, 900)]
    found = list(ConsumedTraces(records, times, "reader").fetches())
    assert [list(trace.durations_ns.values()) for trace in found] == [[5, 1, 1, 1, 1, 11]]


def test_record_that_no_consumer_reads_is_not_reported() -> None:
    assert list(consumed().from_send([sent(1, 1)])) == []
