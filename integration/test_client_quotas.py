"""Quotas throttle clients of the companion broker as they throttle those of Apache Kafka."""

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from integration.conftest import StartCluster
from integration.harness.kafka_cluster import ClusterOptions
from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import ClientQuotaEntity, ClientQuotaFilterComponent, QuotaMatchType
from kclient.common.broker_errors import ThrottlingQuotaExceededError
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
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
    DeleteTopicState,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, fetch_request

SETTINGS = {"quota.window.num": "3"}
RECORD = batch([b"a" * 5000])
RATE = 200_000
SECONDS = 9.0
SIZE = 10_000

Entity = Mapping[str, str | None]


@pytest.fixture
def brokers(start_cluster: StartCluster) -> Iterator[list[str]]:
    """Addresses of the companion broker and of Apache Kafka."""
    apache = start_cluster(ClusterOptions(heap_mb=512, properties=SETTINGS))
    with EmbeddedCluster(config=SETTINGS) as companion:
        yield [companion.bootstrap_servers, apache.bootstrap()]


def set_quota(bootstrap: str, entity: Entity, **quotas: float) -> None:
    changes = {ClientQuotaEntity(tuple(entity.items())): quotas}
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.alter_client_quotas(changes).raise_for_errors()


def ask(wire: Wire, request: object, version: int, response: type, client_id: str) -> object:
    wire.send(request, version, client_id)  # type: ignore[arg-type]
    return wire.receive(response, version)[1]


def produced(bootstrap: str, client_id: str, version: int = 9) -> int:
    """Produce with a new connection; return the throttle time, or -1 after an error."""
    data = PartitionProduceData(index=0, records=RECORD)
    topics = [TopicProduceData(name="t", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    with Wire(bootstrap) as wire:
        response = ask(wire, request, version, ProduceResponse, client_id)
    assert isinstance(response, ProduceResponse)
    has_failed = response.responses[0].partition_responses[0].error_code != 0
    return -1 if has_failed else response.throttle_time_ms


def fetched(bootstrap: str, client_id: str, version: int, epoch: int) -> tuple[int, ...]:
    """Fetch with a new connection; return throttle time, error, session and topics."""
    request: FetchRequest = fetch_request("t", 0)
    request.session_epoch = epoch
    with Wire(bootstrap) as wire:
        response = ask(wire, request, version, FetchResponse, client_id)
    assert isinstance(response, FetchResponse)
    has_session = response.session_id != 0
    return (
        response.throttle_time_ms,
        response.error_code,
        has_session,
        len(response.responses),
    )


def first_throttle_times(bootstrap: str) -> list[object]:
    """Return the throttle times of first requests, which do not depend on the time."""
    with Wire(bootstrap) as wire:
        wire.create_topic("t")
    quotas: list[tuple[Entity, dict[str, float]]] = [
        ({"client-id": "p1"}, {"producer_byte_rate": 100}),
        ({"client-id": "p2"}, {"producer_byte_rate": 777}),
        ({"client-id": "p3"}, {"producer_byte_rate": 1_000_000}),
        ({"client-id": "p4"}, {"producer_byte_rate": 777, "consumer_byte_rate": 10}),
        ({"client-id": None}, {"producer_byte_rate": 300, "consumer_byte_rate": 300}),
        ({"user": "ANONYMOUS", "client-id": "p5"}, {"producer_byte_rate": 500}),
        ({"user": None, "client-id": "p6"}, {"producer_byte_rate": 700}),
        ({"client-id": "p7"}, {"request_percentage": 0.0001}),
        ({"user": "ANONYMOUS", "client-id": None}, {"producer_byte_rate": 600}),
    ]
    found: list[object] = []
    for entity, values in quotas[:5]:
        set_quota(bootstrap, entity, **values)
    wait_until(lambda: produced(bootstrap, "probe1") > 0, "the quotas take effect")
    names = ("p1", "p2", "p3", "p4", "no")
    found += [(name, produced(bootstrap, name)) for name in names]
    found += [fetched(bootstrap, f"f{number}", 12, -1) for number in range(2)]
    found.append(fetched(bootstrap, "f8", 12, 0))
    found.append(fetched(bootstrap, "f9", 4, -1))
    found.append(fetched(bootstrap, "p4", 12, -1))
    before = produced(bootstrap, "probe2")
    for entity, values in quotas[5:]:
        set_quota(bootstrap, entity, **values)
    others = (f"x{number:05}" for number in itertools.count())
    wait_until(lambda: produced(bootstrap, next(others)) != before, "the quotas take effect")
    found += [(name, produced(bootstrap, name, 3)) for name in ("p5", "p6", "xx")]
    with Wire(bootstrap) as wire:
        response = ask(wire, MetadataRequest(topics=[]), 9, MetadataResponse, "p7")
        found.append(response.throttle_time_ms)  # type: ignore[attr-defined]
    return found


def test_first_throttle_times_are_equal(brokers: list[str]) -> None:
    companion, apache = [first_throttle_times(each) for each in brokers]
    assert companion == apache


def mutated(bootstrap: str, client_id: str, request: Request, version: int) -> tuple[int, int]:
    """Change topics with a new connection; return throttle time and error."""
    with Wire(bootstrap) as wire:
        response = ask(wire, request, version, request.response_type, client_id)
    assert isinstance(
        response, CreateTopicsResponse | CreatePartitionsResponse | DeleteTopicsResponse
    )
    if isinstance(response, CreateTopicsResponse):
        code = response.topics[0].error_code
    elif isinstance(response, CreatePartitionsResponse):
        code = response.results[0].error_code
    else:
        code = response.responses[0].error_code
    return response.throttle_time_ms, code


def creation(name: str, partitions: int, *, validate_only: bool = False) -> Request:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=validate_only)


def limit_mutations(bootstrap: str) -> None:
    """Allow each client id 2 changes of partitions per second, and 22 at first."""
    set_quota(bootstrap, {"client-id": None}, controller_mutation_rate=2)
    names = (f"probe{number}" for number in itertools.count())
    probe = creation("probe", 30, validate_only=True)
    wait_until(lambda: mutated(bootstrap, next(names), probe, 5)[0] > 0, "the quota takes effect")


def throttled_mutations(bootstrap: str) -> tuple[list[tuple[str, int]], list[float]]:
    """Return the errors of changes of partitions, and their throttle times in seconds."""
    limit_mutations(bootstrap)
    growth = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="a", count=45, assignments=None)], timeout_ms=5000
    )
    old_deletion = DeleteTopicsRequest(topic_names=["b"], timeout_ms=5000)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=5000)
    steps: list[tuple[str, Request, int]] = [
        ("strict", creation("a", 42), 7),
        ("strict", creation("b", 1), 7),
        ("strict", creation("a", 1), 7),
        ("strict", growth, 3),
        ("strict", deletion, 6),
        ("old", creation("b", 32), 5),
        ("old", creation("c", 10), 5),
        ("old", old_deletion, 4),
        ("growing", growth, 2),
        ("growing", growth, 3),
        ("large", creation("d", 90), 5),
        ("large", CreatePartitionsRequest(topics=growth.topics, timeout_ms=5000), 3),
    ]
    errors, throttle_times = [], []
    for client_id, request, version in steps:
        throttle_ms, code = mutated(bootstrap, client_id, request, version)
        errors.append((client_id, code))
        throttle_times.append(throttle_ms / 1000)
    return errors, throttle_times


def test_changes_of_partitions_are_throttled_alike(brokers: list[str]) -> None:
    companion, apache = [throttled_mutations(each) for each in brokers]
    assert companion[0] == apache[0]
    assert {code for _, code in apache[0]} >= {0, 36, 89}
    assert max(apache[1]) > 20
    # A slow machine adds tokens between the changes.
    assert companion[1] == pytest.approx(apache[1], abs=3)


def test_admin_client_tries_again_what_the_quota_refuses(brokers: list[str]) -> None:
    for each in brokers:
        limit_mutations(each)
        with AdminClient(bootstrap_servers=each, client_id="again") as admin:
            admin.create_topics(NewTopic("large", 25, 1))
            with pytest.raises(ThrottlingQuotaExceededError):
                admin.create_topics(NewTopic("small", 1, 1), retry_on_quota_violation=False)
            admin.create_topics(NewTopic("small", 1, 1))
            assert admin.describe_topics("small")["small"].partitions


def second_response(bootstrap: str) -> tuple[int, float]:
    """Return a throttle time, and the seconds until the next response of the connection."""
    set_quota(bootstrap, {"client-id": "muted"}, producer_byte_rate=2000)
    with Wire(bootstrap) as wire:
        wire.create_topic("t")
    wait_until(lambda: produced(bootstrap, "muted") > 0, "the quota takes effect")
    data = PartitionProduceData(index=0, records=RECORD)
    topics = [TopicProduceData(name="t", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)
    with Wire(bootstrap) as wire:
        response = ask(wire, request, 9, ProduceResponse, "muted")
        began = time.monotonic()
        ask(wire, MetadataRequest(topics=[]), 9, MetadataResponse, "other")
        return response.throttle_time_ms, time.monotonic() - began  # type: ignore[attr-defined]


def test_connection_is_read_after_the_throttle_time(brokers: list[str]) -> None:
    for each in brokers:
        throttle_ms, seconds = second_response(each)
        assert throttle_ms > 0
        assert throttle_ms / 1000 - 0.05 < seconds < throttle_ms / 1000 + 2


def served_connections(bootstrap: str) -> tuple[int, bool]:
    """Return how many of some connections are served, and whether the others are closed late."""
    component = ClientQuotaFilterComponent("ip", QuotaMatchType.DEFAULT)
    changes = {ClientQuotaEntity((("ip", None),)): {"connection_creation_rate": 1}}
    with AdminClient(bootstrap_servers=bootstrap) as admin, ExitStack() as stack:
        admin.alter_client_quotas(changes).raise_for_errors()
        wait_until(lambda: admin.describe_client_quotas([component]), "the quota takes effect")
        began = time.monotonic()
        wires = [stack.enter_context(Wire(bootstrap)) for _ in range(5)]
        for wire in wires:
            wire.send(ApiVersionsRequest(), 0)
        ends = []
        for wire in wires:
            with suppress(EOFError, ConnectionResetError):
                wire.receive(ApiVersionsResponse, 0)
                continue
            ends.append(time.monotonic() - began)
    return len(wires) - len(ends), all(0.8 < each < 5 for each in ends)


def test_connections_beyond_the_rate_of_an_address_are_closed_late(brokers: list[str]) -> None:
    assert [served_connections(each) for each in brokers] == [(2, True), (2, True)]


def bytes_per_second(step: Callable[[], int]) -> float:
    total, began = 0, time.monotonic()
    while (elapsed := time.monotonic() - began) < SECONDS:
        total += step()
    return total / elapsed


def producing(bootstrap: str) -> tuple[float, float]:
    """Return the bytes per second, and the bytes per second of throttle time."""
    with Producer(bootstrap_servers=bootstrap, client_id="loaded", linger_ms=0) as producer:

        def step() -> int:
            producer.send("load", bytes(SIZE), partition=0).result(30)
            return SIZE

        rate = bytes_per_second(step)
        return rate, 1000 * SIZE / producer.metrics()["produce-throttle-time-avg"]


def consuming(bootstrap: str) -> tuple[float, float]:
    """Return the bytes per second, and the bytes per second of throttle time."""
    with Consumer(
        bootstrap_servers=bootstrap,
        client_id="loaded",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=SIZE,
    ) as consumer:
        consumer.assign([TopicPartition("load", 0)])
        rate = bytes_per_second(
            lambda: sum(len(each.value or b"") for each in consumer.poll(timeout=5))
        )
        metrics = consumer.metrics()
        fetched = metrics["fetch-size-avg"]
        return rate, 1000 * fetched / metrics["fetch-throttle-time-avg"]


def test_rates_of_producers_and_consumers_are_those_of_the_quota(brokers: list[str]) -> None:
    for each in brokers:
        with Wire(each) as wire:
            wire.create_topic("load")
        # Each batch has one record, so that a fetch of the consumer has one record, too.
        with Producer(bootstrap_servers=each, batch_size=SIZE) as free:
            for _ in range(int(RATE * SECONDS * 2 / SIZE)):
                free.send("load", bytes(SIZE), partition=0)
        set_quota(each, {"client-id": "loaded"}, producer_byte_rate=RATE, consumer_byte_rate=RATE)
    with ThreadPoolExecutor(4) as pool:
        for load in (producing, consuming):
            for rate, rate_while_throttled in pool.map(load, brokers):
                assert rate < 1.2 * RATE
                # A slow machine lowers the rate, but does not make the broker throttle for longer.
                assert rate_while_throttled > 0.9 * RATE
