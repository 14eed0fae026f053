"""Clients against the profiles of managed services."""

import re
from collections.abc import Iterator

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer
from kclient.common.broker_errors import ClusterAuthorizationError, PolicyViolationError
from kclient.common.errors import ConfigError, InvalidArgumentError
from kclient.errors import (
    DeliveryTimeoutError,
    ProducerFatalError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)
from kclient.testing import (
    AZURE_EVENT_HUBS,
    OCI_STREAMING,
    ApiKey,
    Direction,
    EmbeddedCluster,
    FaultProxy,
    ServiceProfile,
)
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import FOREIGN_CLIENTS
from tests.support.clients.foreign_record import ForeignRecord

TOPIC = "orders"
# The error of the record, or that of a call after the producer has stopped.
FATAL = (ClusterAuthorizationError, ProducerFatalError, UnsupportedVersionError)
FAST = {"request_timeout_ms": 500, "delivery_timeout_ms": 2_000, "linger_ms": 0}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def proxy(cluster: EmbeddedCluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap_servers) as proxy:
        yield proxy


def send(proxy: FaultProxy, value: bytes = b"x", count: int = 1, **options: object) -> int:
    """Send records one after another; return the offset of the last one."""
    with Producer({"bootstrap.servers": proxy.bootstrap_servers, **options}) as producer:
        return [producer.send(TOPIC, value).result(20).offset for _ in range(count)][-1]


def produce_responses(proxy: FaultProxy) -> int:
    return sum(
        frame.api is ApiKey.PRODUCE and frame.direction is Direction.TO_CLIENT
        for frame in proxy.frames
    )


def test_clients_work_with_azure_event_hubs(proxy: FaultProxy) -> None:
    proxy.imitate(AZURE_EVENT_HUBS)
    with Producer(bootstrap_servers=proxy.bootstrap_servers) as producer:
        futures = [producer.send("hub", b"%d" % number, partition=0) for number in range(50)]
        assert [future.result(20).offset for future in futures] == list(range(50))
    with Consumer(
        bootstrap_servers=proxy.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe("hub")
        received: list[bytes | None] = []
        while len(received) < 50:
            received += [record.value for record in consumer.poll(5.0)]
        consumer.commit()
    assert received == [b"%d" % number for number in range(50)]
    versions = {frame.version for frame in proxy.frames if frame.api is ApiKey.PRODUCE}
    assert versions == {7}


def test_reset_on_api_versions_costs_each_client_one_connection(proxy: FaultProxy) -> None:
    proxy.imitate(AZURE_EVENT_HUBS)
    with Producer(bootstrap_servers=proxy.bootstrap_servers, reconnect_backoff_ms=1) as producer:
        producer.send(TOPIC, b"x").result(20)
        for _ in range(5):
            proxy.kill_connections()
            producer.send(TOPIC, b"x").result(20)
    resets = [
        frame
        for frame in proxy.frames
        if frame.api is ApiKey.API_VERSIONS
        and frame.direction is Direction.TO_BROKER
        and frame.version >= 4
    ]
    assert len(resets) == 1


def test_responses_to_acks_0_are_discarded(proxy: FaultProxy) -> None:
    proxy.imitate(AZURE_EVENT_HUBS)
    send(proxy, count=20, acks=0, enable_idempotence=False)
    assert produce_responses(proxy) >= 19  # that of the last one may come after close()
    assert proxy.accepted <= 3


@pytest.mark.parametrize("client", FOREIGN_CLIENTS)
def test_foreign_clients_can_use_a_profile(proxy: FaultProxy, client: str) -> None:
    proxy.imitate(ServiceProfile("an old broker", offered={ApiKey.PRODUCE: (3, 8)}))
    topic = f"old-{client}"
    records = [ForeignRecord(value=value) for value in (b"a", b"b")]
    FOREIGN_CLIENTS[client](proxy.bootstrap_servers).produce(topic, records)
    assert len(FOREIGN_CLIENTS[client](proxy.bootstrap_servers).consume(topic, 2)) == 2
    versions = {frame.version for frame in proxy.frames if frame.api is ApiKey.PRODUCE}
    assert max(versions) <= 8


def test_refused_codec_is_named(proxy: FaultProxy) -> None:
    proxy.imitate(AZURE_EVENT_HUBS)
    before = send(proxy, compression_type="gzip")
    with pytest.raises(UnsupportedCompressionTypeError, match="some services accept gzip alone"):
        send(proxy, compression_type="zstd")
    assert send(proxy) == before + 1  # the refused record was not written


def test_missing_init_producer_id_names_the_option(proxy: FaultProxy) -> None:
    proxy.imitate(OCI_STREAMING)
    with pytest.raises(
        FATAL, match=r"does not offer INIT_PRODUCER_ID.*set enable_idempotence=False"
    ):
        send(proxy)
    assert send(proxy, enable_idempotence=False) >= 0


def test_refused_idempotence_names_the_permission(proxy: FaultProxy) -> None:
    refused = {ApiKey.INIT_PRODUCER_ID: ClusterAuthorizationError}
    proxy.imitate(ServiceProfile("MSK with IAM", refused=refused))
    with pytest.raises(FATAL, match="kafka-cluster:WriteDataIdempotently"):
        send(proxy)
    assert send(proxy, enable_idempotence=False) >= 0


def test_policy_violation_names_the_quota(proxy: FaultProxy) -> None:
    proxy.imitate(ServiceProfile("throttled", refused={ApiKey.PRODUCE: PolicyViolationError}))
    with pytest.raises(PolicyViolationError, match=r"orders-\d+: POLICY_VIOLATION: .*quota"):
        send(proxy)


def test_close_on_a_large_request_names_the_limit(proxy: FaultProxy) -> None:
    proxy.imitate(AZURE_EVENT_HUBS)
    with pytest.raises(DeliveryTimeoutError, match=r"1100074 bytes.*max\.request\.size"):
        send(proxy, bytes(1_100_000), max_request_size=2_000_000, **FAST)


def test_request_of_several_batches_is_smaller_when_it_is_repeated(proxy: FaultProxy) -> None:
    with AdminClient(bootstrap_servers=proxy.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("wide", 5)]).raise_for_errors()
    proxy.imitate(AZURE_EVENT_HUBS)
    with Producer(
        bootstrap_servers=proxy.bootstrap_servers,
        batch_size=250_000,
        linger_ms=50,
        max_request_size=1_300_000,
    ) as producer:
        producer.send("wide", b"x", partition=0).result(20)
        futures = [
            producer.send("wide", bytes(240_000), partition=partition) for partition in range(5)
        ]
        assert all(future.result(20).offset >= 0 for future in futures)
    sizes = [
        frame.size
        for frame in proxy.frames
        if frame.api is ApiKey.PRODUCE and frame.direction is Direction.TO_BROKER
    ]
    assert max(sizes) > 1_046_528
    assert sum(size > 200_000 for size in sizes[sizes.index(max(sizes)) + 1 :]) >= 2


def test_connection_dropped_without_notice_costs_one_retry(proxy: FaultProxy) -> None:
    with Producer(bootstrap_servers=proxy.bootstrap_servers, request_timeout_ms=500) as producer:
        producer.send(TOPIC, b"x").result(20)
        proxy.drop_idle(0.05)
        wait_until(
            lambda: all(link.is_silent for link in proxy._running().links), "idle connections"
        )
        proxy.drop_idle(60.0)
        before = len(proxy.frames)
        producer.send(TOPIC, b"after the pause").result(20)
        requests = [
            frame
            for frame in list(proxy.frames)[before:]
            if frame.api is ApiKey.PRODUCE and frame.direction is Direction.TO_BROKER
        ]
    assert len(requests) == 1  # the first attempt was lost with the connection


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_idle_timeout_must_be_positive(proxy: FaultProxy, seconds: float) -> None:
    with pytest.raises(InvalidArgumentError, match="seconds: got"):
        proxy.drop_idle(seconds)


def test_client_id_with_separators_reaches_the_broker(cluster: EmbeddedCluster) -> None:
    faults = cluster.faults
    client_id = "ws_az=us-east-1a,ws_host_override=10.0.0.1"
    with Producer(bootstrap_servers=cluster.bootstrap_servers, client_id=client_id) as producer:
        producer.send(TOPIC, b"x").result(20)
        assert producer.metrics()
    assert client_id in {request.client_id for request in faults.requests}


@pytest.mark.parametrize("scheme", ["PLAINTEXT", "kafka"])
def test_scheme_without_security_is_accepted(cluster: EmbeddedCluster, scheme: str) -> None:
    with Producer(bootstrap_servers=f"{scheme}://{cluster.bootstrap_servers}") as producer:
        producer.send(TOPIC, b"x").result(20)


@pytest.mark.parametrize("scheme", ["kafka+ssl", "SSL", "SASL_SSL", "SASL_PLAINTEXT"])
def test_scheme_with_security_is_refused(scheme: str) -> None:
    with pytest.raises(
        ConfigError, match=f"remove '{re.escape(scheme)}://' and set security_protocol"
    ):
        Producer(bootstrap_servers=f"{scheme}://host:9096")
