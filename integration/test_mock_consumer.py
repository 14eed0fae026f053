"""Our consumer on librdkafka's mock cluster: errors on demand, leaders, coordinators that move."""

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from integration.harness.mock_cluster import MockCluster
from kclient import Consumer, ConsumerRecord
from kclient.common.errors import CommitFailedError
from kclient.protocol.api_keys import ApiKey
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, poll_until, read, values
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.load import Load, check_intact

RECORDS = 300
SESSION_MS = (
    1_500  # a rebalance of the mock lasts this long less a second, whatever members have joined
)
FETCH = {
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "LEADER_NOT_AVAILABLE": 5,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "REPLICA_NOT_AVAILABLE": 9,
    "KAFKA_STORAGE_ERROR": 56,
    "FENCED_LEADER_EPOCH": 74,
    "UNKNOWN_LEADER_EPOCH": 75,
    "OFFSET_NOT_AVAILABLE": 78,
}
LOADING, UNAVAILABLE, MOVED = 14, 15, 16
GENERATION, MEMBER, REBALANCE = 22, 25, 27
MEMBER_ID, UNSTABLE = 79, 88
# Errors of JoinGroup, Heartbeat and OffsetFetch that the consumer retries without raising.
GROUP = [
    (ApiKey.FIND_COORDINATOR, LOADING),
    (ApiKey.FIND_COORDINATOR, UNAVAILABLE),
    (ApiKey.JOIN_GROUP, LOADING),
    (ApiKey.JOIN_GROUP, UNAVAILABLE),
    (ApiKey.JOIN_GROUP, MOVED),
    (ApiKey.JOIN_GROUP, MEMBER),
    (ApiKey.JOIN_GROUP, REBALANCE),
    (ApiKey.SYNC_GROUP, LOADING),
    (ApiKey.SYNC_GROUP, UNAVAILABLE),
    (ApiKey.SYNC_GROUP, MOVED),
    (ApiKey.SYNC_GROUP, MEMBER),
    (ApiKey.SYNC_GROUP, GENERATION),
    (ApiKey.SYNC_GROUP, REBALANCE),
    (ApiKey.OFFSET_FETCH, LOADING),
    (ApiKey.OFFSET_FETCH, MOVED),
    (ApiKey.OFFSET_FETCH, UNSTABLE),
]
COMMIT_RETRIED = [3, 7, LOADING, UNAVAILABLE, MOVED]
_numbers = count(1)


def gets_heartbeats(mock: MockCluster, broker: int) -> bool:
    return broker in mock.requests(ApiKey.HEARTBEAT)


def name_of(case: object) -> str:
    return case.name if isinstance(case, ApiKey) else str(case)


@pytest.fixture(scope="module")
def mock() -> Iterator[MockCluster]:
    with MockCluster() as made:
        yield made


@pytest.fixture
def clients(mock: MockCluster) -> Iterator[Clients]:
    with Clients(mock.bootstrap_servers) as made:
        yield made


@pytest.fixture
def topic(mock: MockCluster) -> str:
    name = f"t{next(_numbers)}"
    mock.create_topic(name, 2)
    mock.set_leader(name, 0, 1)
    mock.set_leader(name, 1, 2)
    return name


def fill(clients: Clients, topic: str, start: int = 0) -> None:
    """Write thirty batches of ten."""
    producer = clients.producer()
    for first in range(start, start + RECORDS, 10):
        batch = [b"%d" % number for number in range(first, first + 10)]
        producer.send_many(topic, batch, partition=0).result(20)


def member(clients: Clients, group: str, topic: str) -> Consumer:
    consumer = clients.consumer(
        group, session_timeout_ms=SESSION_MS, heartbeat_interval_ms=100, retry_backoff_ms=20
    )
    consumer.subscribe(topic)
    return consumer


def committed(clients: Clients, group: str, topic: str) -> int:
    found = clients.consumer(group).committed([place(topic)])[place(topic)]
    assert found is not None
    return found.offset


def as_foreign(one: ConsumerRecord) -> ForeignRecord:
    return ForeignRecord(one.value, one.key, partition=one.partition, offset=one.offset)


# -- without a group


@pytest.mark.parametrize("code", FETCH.values(), ids=FETCH.keys())
def test_failed_fetch_is_retried(
    mock: MockCluster, clients: Clients, topic: str, code: int
) -> None:
    fill(clients, topic)
    consumer = clients.consumer(retry_backoff_ms=20, max_partition_fetch_bytes=1_000)
    consumer.assign([place(topic)])
    found = read(consumer, 20)
    mock.fail(ApiKey.FETCH, code, code)
    found += read(consumer, RECORDS - 20)
    assert values(found) == list(range(RECORDS))


def test_records_are_read_once_while_the_leader_moves(
    mock: MockCluster, clients: Clients, topic: str
) -> None:
    consumer = clients.consumer(retry_backoff_ms=20, max_partition_fetch_bytes=1_000)
    consumer.assign([place(topic)])
    found: list[ConsumerRecord] = []
    for leader in (2, 3, 1, 3):
        fill(clients, topic, len(found))
        found += read(consumer, 100)  # some of what follows is fetched, some is not
        mock.set_leader(topic, 0, leader)
        found += read(consumer, RECORDS - len(found) % RECORDS)
    assert values(found) == list(range(4 * RECORDS))


@pytest.mark.fault("R10")
def test_preferred_read_replica_is_used_until_it_is_removed(
    mock: MockCluster, clients: Clients, topic: str
) -> None:
    mock.set_follower(topic, 0, 3)
    fill(clients, topic)
    consumer = clients.consumer(client_rack="near", retry_backoff_ms=20)
    consumer.assign([place(topic)])
    mock.track()
    found = read(consumer, RECORDS)
    assert mock.requests(ApiKey.FETCH)[-1] == 3
    mock.stop(3)
    mock.set_follower(topic, 0, -1)
    fill(clients, topic, RECORDS)
    found += read(consumer, RECORDS)
    mock.start(3)
    assert values(found) == list(range(2 * RECORDS))


@pytest.mark.campaign
def test_high_latency_only_delays_reads(mock: MockCluster, clients: Clients, topic: str) -> None:
    fill(clients, topic)
    for broker in (1, 2, 3):
        mock.set_round_trip(broker, 200)
    try:
        consumer = member(clients, f"group-of-{topic}", topic)
        assert values(read(consumer, RECORDS)) == list(range(RECORDS))
        consumer.commit()
        consumer.close()
    finally:
        for broker in (1, 2, 3):
            mock.set_round_trip(broker, 0)


# -- in a group


@pytest.mark.fault("R7", "R13")
@pytest.mark.parametrize(("key", "code"), GROUP, ids=name_of)
def test_retriable_errors_are_not_raised(
    mock: MockCluster, clients: Clients, topic: str, key: ApiKey, code: int
) -> None:
    """The committed offsets are found in spite of them; no error leads to a reset."""
    group = f"group-of-{topic}"
    fill(clients, topic)
    with member(clients, group, topic) as first:
        assert values(read(first, 40))[:40] == list(range(40))
        first.commit({place(topic): 40})
    mock.fail(key, code)
    consumer = member(clients, group, topic)
    assert values(read(consumer, RECORDS - 40)) == list(range(40, RECORDS))
    consumer.commit()
    assert committed(clients, group, topic) == RECORDS
    mock.clear_failures(key)


@pytest.mark.fault("R11")
@pytest.mark.parametrize("code", [GENERATION, MEMBER, REBALANCE, MOVED, UNAVAILABLE])
def test_member_rejoins_after_failed_heartbeat_without_skipping_records(
    mock: MockCluster, clients: Clients, topic: str, code: int
) -> None:
    returned: list[str] = []
    consumer = clients.consumer(
        f"group-of-{topic}", session_timeout_ms=SESSION_MS, heartbeat_interval_ms=50
    )
    consumer.subscribe(
        topic,
        on_assigned=lambda _: returned.append("assigned"),
        on_revoked=lambda _: returned.append("revoked"),
        on_lost=lambda _: returned.append("lost"),
    )
    fill(clients, topic)
    found = read(consumer, RECORDS)
    consumer.commit()
    mock.track()
    asked = len(mock.requests(ApiKey.HEARTBEAT))
    mock.fail(ApiKey.HEARTBEAT, code)
    fill(clients, topic, RECORDS)
    found += read(consumer, RECORDS)
    poll_until(
        consumer, lambda: len(mock.requests(ApiKey.HEARTBEAT)) > asked + 2, "heartbeats continue"
    )
    assert consumer.assignment() == {place(topic, 0), place(topic, 1)}
    assert values(found) == list(range(2 * RECORDS))
    rejoins = {
        GENERATION: ["lost", "assigned"],
        MEMBER: ["lost", "assigned"],
        REBALANCE: ["revoked", "assigned"],
    }
    assert returned == ["assigned", *rejoins.get(code, [])]


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", COMMIT_RETRIED)
def test_commit_retries_retriable_errors(
    mock: MockCluster, clients: Clients, topic: str, code: int
) -> None:
    group = f"group-of-{topic}"
    fill(clients, topic)
    consumer = member(clients, group, topic)
    read(consumer, RECORDS)
    mock.fail(ApiKey.OFFSET_COMMIT, code, code)
    consumer.commit()
    assert committed(clients, group, topic) == RECORDS


@pytest.mark.fault("R12")
@pytest.mark.parametrize("code", [GENERATION, MEMBER])
def test_commit_of_an_unknown_member_fails_and_the_next_succeeds(
    mock: MockCluster, clients: Clients, topic: str, code: int
) -> None:
    group = f"group-of-{topic}"
    fill(clients, topic)
    consumer = member(clients, group, topic)
    read(consumer, RECORDS)
    mock.fail(ApiKey.OFFSET_COMMIT, code)
    with pytest.raises(CommitFailedError):
        consumer.commit()
    again = read(consumer, RECORDS)  # it has rejoined, and nothing was committed
    assert values(again) == list(range(RECORDS))
    consumer.commit()
    assert committed(clients, group, topic) == RECORDS


@pytest.mark.fault("R13")
def test_moving_coordinator_causes_no_error(
    mock: MockCluster, clients: Clients, topic: str
) -> None:
    group = f"group-of-{topic}"
    mock.set_coordinator(group, 1)
    assigned: list[int] = []
    consumer = clients.consumer(group, session_timeout_ms=SESSION_MS, heartbeat_interval_ms=100)
    consumer.subscribe(topic, on_assigned=lambda given: assigned.append(len(given)))
    seen: list[ConsumerRecord] = []
    for coordinator in (2, 3, 1, 2):
        fill(clients, topic, len(seen))
        seen += read(consumer, RECORDS // 2)
        mock.set_coordinator(group, coordinator)
        consumer.commit()
        seen += read(consumer, RECORDS - len(seen) % RECORDS)
        mock.track()
        poll_until(
            consumer,
            partial(gets_heartbeats, mock, coordinator),
            "heartbeats go to the new coordinator",
        )
    consumer.commit()
    assert values(seen) == list(range(4 * RECORDS))
    assert assigned == [2]
    assert committed(clients, group, topic) == 4 * RECORDS


@pytest.mark.fault("R13")
def test_another_broker_becomes_coordinator_after_a_removal(
    mock: MockCluster, clients: Clients, topic: str
) -> None:
    group = f"group-of-{topic}"
    mock.set_coordinator(group, 3)
    fill(clients, topic)
    consumer = member(clients, group, topic)
    seen = read(consumer, RECORDS)
    mock.stop(3)
    mock.set_coordinator(group, 2)
    consumer.commit()
    fill(clients, topic, RECORDS)
    seen += read(consumer, RECORDS)
    consumer.commit()
    mock.start(3)
    assert values(seen) == list(range(2 * RECORDS))
    assert committed(clients, group, topic) == 2 * RECORDS


@pytest.mark.fault("R11")
def test_two_members_share_and_one_takes_over(
    mock: MockCluster, clients: Clients, topic: str
) -> None:
    group = f"group-of-{topic}"
    consumers = [member(clients, group, topic), member(clients, group, topic)]
    found: list[ConsumerRecord] = []

    def shared() -> bool:
        for consumer in consumers:
            found.extend(consumer.poll(0.05))
        return [len(consumer.assignment()) for consumer in consumers] == [1, 1]

    wait_until(shared, "two members share two partitions")
    with Load(clients.producer(linger_ms=5), topic, ahead=50) as load:
        while load.acknowledged < 300:
            for consumer in consumers:
                found += consumer.poll(0.05)
        for consumer in consumers:
            consumer.commit()
        consumers[0].close()
        rest = consumers[1]
        found += poll_until(rest, lambda: len(rest.assignment()) == 2, "the other one has both")
        load.await_more(300)
        sent = load.finish()
    found += read(rest, len(sent) - len(found))
    check_intact(sent, [as_foreign(one) for one in found])
