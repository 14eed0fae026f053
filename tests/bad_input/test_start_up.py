"""Causes that keep a client from starting although a broker responds: each error names its cause.

The tests of the client have peers that are not brokers.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common import broker_errors as broker
from kclient.common.errors import KafkaError
from kclient.testing import ApiKey, BrokerFaults, EmbeddedCluster

PART = TopicPartition("t", 0)
ALWAYS = None

Failing = Callable[[str], None]
Obstacle = Callable[[BrokerFaults], object]


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as started:
        with AdminClient(bootstrap_servers=started.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)]).raise_for_errors()
        yield started


@pytest.fixture
def cluster(running: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    yield running
    running.faults.heal()


def produce(servers: str) -> None:
    producer = Producer(
        bootstrap_servers=servers, max_block_ms=900, delivery_timeout_ms=900, request_timeout_ms=800
    )
    try:
        producer.send("t", b"x").result(5)
    finally:
        producer.close(0)


def _consumer(servers: str) -> Consumer:
    return Consumer(
        bootstrap_servers=servers,
        group_id="g",
        default_api_timeout_ms=900,
        request_timeout_ms=800,
        auto_offset_reset="earliest",
    )


def commit(servers: str) -> None:
    with _consumer(servers) as consumer:
        consumer.assign([PART])
        consumer.commit({PART: 0})


def read_committed_offsets(servers: str) -> None:
    with _consumer(servers) as consumer:
        consumer.committed([PART])


def look_up_offsets(servers: str) -> None:
    with _consumer(servers) as consumer:
        consumer.end_offsets([PART])


def join(servers: str) -> None:
    with _consumer(servers) as consumer:
        consumer.subscribe("t")
        consumer.poll(5)


def ask(servers: str) -> None:
    with AdminClient(bootstrap_servers=servers, default_api_timeout_ms=900) as admin:
        admin.list_topics()


def _foreign_versions(response: Any) -> None:
    for api in response.api_keys:
        api.min_version, api.max_version = 90, 99


def _without_metadata(response: Any) -> None:
    response.api_keys[:] = [api for api in response.api_keys if api.api_key != ApiKey.METADATA]


def _refused_port(response: Any) -> None:
    for node in response.brokers:
        node.port = 1


def _unknown_host(response: Any) -> None:
    for node in response.brokers:
        node.host = "nowhere.invalid"


def _topic_code(code: int) -> Callable[[Any], None]:
    def change(response: Any) -> None:
        for topic in response.topics:
            topic.error_code = code
            topic.partitions.clear()

    return change


def _no_leader(response: Any) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code, partition.leader_id = 5, -1


def failing(api: ApiKey, error: type[KafkaError] | int) -> Obstacle:
    return lambda faults: faults.fail(api, error, times=ALWAYS)


def changed_response(api: ApiKey, change: Callable[[Any], object]) -> Obstacle:
    return lambda faults: faults.edit(api, change)


EVERYBODY = (produce, look_up_offsets, ask)
REFUSED = "127.0.0.1:1 (advertised by broker 1): could not connect: Connection refused"
UNKNOWN = "(advertised by broker 1): could not look up nowhere.invalid: "
# Before it: that the peer closed the connection, or a reset if it had data to read by then.
UNWELCOME = " after a METADATA request; the listener probably requires SASL or TLS"
NO_COORDINATOR = "no coordinator was found for group 'g': COORDINATOR_NOT_AVAILABLE"

CAUSES: list[tuple[str, Obstacle, tuple[Failing, ...], str]] = [
    (
        "a broker too old for ApiVersions",
        failing(ApiKey.API_VERSIONS, broker.UnsupportedVersionError),
        EVERYBODY,
        "the broker refused ApiVersions in version 0",
    ),
    (
        "versions refused for another reason",
        failing(ApiKey.API_VERSIONS, broker.ClusterAuthorizationError),
        EVERYBODY,
        "ApiVersions failed with CLUSTER_AUTHORIZATION_FAILED",
    ),
    (
        "no version in common",
        changed_response(ApiKey.API_VERSIONS, _foreign_versions),
        EVERYBODY,
        " offers METADATA in versions 90-99, this request needs ",
    ),
    (
        "an API that is missing",
        changed_response(ApiKey.API_VERSIONS, _without_metadata),
        EVERYBODY,
        " does not offer METADATA",
    ),
    (
        "a listener that wants authentication",
        lambda faults: faults.disconnect(ApiKey.METADATA, times=ALWAYS),
        EVERYBODY,
        UNWELCOME,
    ),
    (
        "a broker that falls silent",
        lambda faults: faults.delay(ApiKey.METADATA, 3600),
        (produce,),
        "METADATA",
    ),
    (
        "a cluster without brokers",
        changed_response(ApiKey.METADATA, lambda response: response.brokers.clear()),
        (produce, look_up_offsets),
        " responded to METADATA without any broker",
    ),
    (
        "an advertised address without a listener",
        changed_response(ApiKey.METADATA, _refused_port),
        EVERYBODY,
        REFUSED,
    ),
    (
        "an unknown advertised name",
        changed_response(ApiKey.METADATA, _unknown_host),
        EVERYBODY,
        UNKNOWN,
    ),
    (
        "a topic that does not exist",
        changed_response(ApiKey.METADATA, _topic_code(3)),
        (produce,),
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    (
        "a topic that may not be seen",
        changed_response(ApiKey.METADATA, _topic_code(29)),
        (produce, join),
        "TOPIC_AUTHORIZATION_FAILED",
    ),
    (
        "a partition without leader",
        changed_response(ApiKey.METADATA, _no_leader),
        (produce, look_up_offsets),
        " has no leader",
    ),
    (
        "a cluster that may not be written to",
        failing(ApiKey.INIT_PRODUCER_ID, broker.ClusterAuthorizationError),
        (produce,),
        "CLUSTER_AUTHORIZATION_FAILED",
    ),
    (
        "no producer id to be had",
        failing(ApiKey.INIT_PRODUCER_ID, broker.CoordinatorLoadInProgressError),
        (produce,),
        "the last error was: COORDINATOR_LOAD_IN_PROGRESS",
    ),
    (
        "a topic that may not be written to",
        failing(ApiKey.PRODUCE, broker.TopicAuthorizationError),
        (produce,),
        "not authorized to write to topic 't'; an ACL has to allow WRITE",
    ),
    (
        "a partition that takes nothing at present",
        failing(ApiKey.PRODUCE, broker.NotEnoughReplicasError),
        (produce,),
        "the last error was: NOT_ENOUGH_REPLICAS",
    ),
    (
        "no coordinator",
        failing(ApiKey.FIND_COORDINATOR, broker.CoordinatorNotAvailableError),
        (commit, read_committed_offsets),
        NO_COORDINATOR,
    ),
    (
        "a group without authorization",
        failing(ApiKey.FIND_COORDINATOR, broker.GroupAuthorizationError),
        (commit, read_committed_offsets, join),
        "not authorized to access group 'g'",
    ),
    (
        "positions that are still being loaded",
        failing(ApiKey.OFFSET_FETCH, broker.CoordinatorLoadInProgressError),
        (read_committed_offsets,),
        "COORDINATOR_LOAD_IN_PROGRESS",
    ),
    (
        "offsets that a leader cannot return",
        failing(ApiKey.LIST_OFFSETS, broker.LeaderNotAvailableError),
        (look_up_offsets,),
        "LEADER_NOT_AVAILABLE",
    ),
    (
        "a group of another kind",
        failing(ApiKey.JOIN_GROUP, broker.InconsistentGroupProtocolError),
        (join,),
        "INCONSISTENT_GROUP_PROTOCOL: joining group 'g' with range",
    ),
    (
        "a session timeout out of bounds",
        failing(ApiKey.JOIN_GROUP, broker.InvalidSessionTimeoutError),
        (join,),
        "INVALID_SESSION_TIMEOUT: joining group 'g' with range",
    ),
    (
        "a group that is full",
        failing(ApiKey.JOIN_GROUP, broker.GroupMaxSizeReachedError),
        (join,),
        "GROUP_MAX_SIZE_REACHED: joining group 'g' with range",
    ),
]

CASES = [
    pytest.param(obstacle, act, text, id=f"{cause}: {act.__name__}")
    for cause, obstacle, acts, text in CAUSES
    for act in acts
]


@pytest.mark.parametrize(("obstacle", "act", "text"), CASES)
def test_start_error_names_its_cause(
    cluster: EmbeddedCluster, obstacle: Obstacle, act: Failing, text: str
) -> None:
    obstacle(cluster.faults)
    with pytest.raises(KafkaError) as caught:
        act(cluster.bootstrap_servers)
    assert text in str(caught.value)


def test_clients_start_without_an_obstacle(cluster: EmbeddedCluster) -> None:
    for act in (produce, commit, read_committed_offsets, look_up_offsets, join, ask):
        act(cluster.bootstrap_servers)
