"""Well-formed but wrong responses: unknown error codes, wrong partitions, long throttling."""

import copy
from collections.abc import Callable
from functools import partial

import pytest

from kclient import NewTopic
from kclient.common.broker_errors import UnknownServerError
from kclient.common.errors import KafkaTimeoutError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.protocol.messages.committed_offsets import OffsetCommitResponse, OffsetFetchResponse
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse
from kclient.protocol.messages.log_offsets import ListOffsetsResponse
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.protocol.messages.produce import ProduceResponse
from kclient.protocol.messages.topics import CreateTopicsResponse
from kclient.record import read_batches
from kclient.testing import ApiKey, EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients, place, read, values
from tests.support.clients.wire import Wire
from tests.support.virtual.virtual_cluster import VirtualCluster

UNKNOWN_CODE = 9999


# --- unknown error codes


@pytest.mark.fault("P4", "W14")
def test_unknown_produce_error_fails_only_records_of_its_partition(
    cluster: EmbeddedCluster, straight: Clients
) -> None:
    topic = straight.topic(2)

    def set_error(response: ProduceResponse) -> None:
        for one in response.responses:
            for partition in one.partition_responses:
                if partition.index == 0:
                    partition.error_code, partition.base_offset = UNKNOWN_CODE, -1

    producer = straight.producer(linger_ms=100)
    producer.partitions_for(topic)
    cluster.faults.edit(ApiKey.PRODUCE, set_error, times=1)
    bad, good = (producer.send(topic, b"v", partition=number) for number in (0, 1))
    with pytest.raises(UnknownServerError, match=str(UNKNOWN_CODE)):
        bad.result(10)
    assert good.result(10).offset == 0
    assert producer.send(topic, b"w", partition=0).result(10).offset >= 0


@pytest.mark.fault("P4")
def test_unknown_error_of_one_topic_does_not_affect_others(
    cluster: EmbeddedCluster, straight: Clients
) -> None:
    def set_error(response: CreateTopicsResponse) -> None:
        for topic in response.topics:
            if topic.name == "failing":
                topic.error_code, topic.error_message = UNKNOWN_CODE, "of a later version"

    cluster.faults.edit(ApiKey.CREATE_TOPICS, set_error)
    with pytest.raises(UnknownServerError, match=rf"{UNKNOWN_CODE}.*of a later version"):
        straight.admin().create_topics([NewTopic("failing"), NewTopic("other")]).raise_for_errors()
    assert straight.producer().send("other", b"v").result(10).offset == 0


@pytest.mark.fault("P4")
def test_unknown_fetch_error_is_reported_and_backed_off(
    cluster: EmbeddedCluster, straight: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    topic = straight.topic(2)
    for partition in range(2):
        straight.fill(topic, 5, partition)

    def set_error(response: FetchResponse) -> None:
        for one in response.responses:
            for partition in one.partitions:
                if partition.partition_index == 0:
                    partition.error_code, partition.records = UNKNOWN_CODE, None

    consumer = straight.consumer(fetch_max_wait_ms=50)
    consumer.assign([place(topic, 0), place(topic, 1)])
    cluster.faults.edit(ApiKey.FETCH, set_error, times=5)
    found = read(consumer, 5)
    assert [record.partition for record in found] == [1] * 5
    found = read(consumer, 5)
    assert values(found) == list(range(5))
    assert [record.partition for record in found] == [0] * 5
    reported = [
        one for one in caplog.records if f"unknown error code {UNKNOWN_CODE}" in one.message
    ]
    assert {one.levelname for one in reported} == {"WARNING"}


# --- partitions that are repeated, missing or unknown


def twice(response: FetchResponse) -> None:
    for topic in response.responses:
        topic.partitions += [copy.copy(partition) for partition in topic.partitions]
    response.responses += [copy.copy(topic) for topic in response.responses]


def unknown_partition(response: FetchResponse) -> None:
    for topic in list(response.responses):
        for partition in list(topic.partitions):
            other = copy.copy(partition)
            other.partition_index = 77
            topic.partitions.append(other)
        unknown = FetchableTopicResponse(
            topic="unknown", topic_id=b"\x05" * 16, partitions=topic.partitions
        )
        response.responses.append(unknown)


def missing(response: FetchResponse) -> None:
    response.responses = []


@pytest.mark.fault("P10")
@pytest.mark.parametrize("change", [twice, unknown_partition, missing])
def test_fetch_response_with_wrong_partitions_delivers_each_record_once(
    simulation: VirtualCluster, change: Callable[[FetchResponse], None]
) -> None:
    straight = simulation.straight
    topic = straight.topic(2)
    for partition in range(2):
        straight.fill(topic, 20, partition)
    fault = simulation.faults.edit(ApiKey.FETCH, change, times=4)
    consumer = straight.consumer(fetch_max_wait_ms=50)
    consumer.assign([place(topic, 0), place(topic, 1)])
    found = read(consumer, 40)
    while fault.hits < 4:
        assert list(consumer.poll(0.05)) == []
    for partition in range(2):
        mine = [record for record in found if record.partition == partition]
        assert values(mine) == list(range(20))
    straight.fill(topic, 5, 1, start=20)
    assert values(read(consumer, 5)) == list(range(20, 25))


def without_partitions(response: ListOffsetsResponse) -> None:
    for topic in response.topics:
        topic.partitions = []


@pytest.mark.fault("P10")
def test_offsets_missing_in_response_are_requested_again(
    cluster: EmbeddedCluster, straight: Clients
) -> None:
    topic = straight.topic()
    straight.fill(topic, 3)
    where = place(topic)
    fault = cluster.faults.edit(ApiKey.LIST_OFFSETS, without_partitions, times=2)

    def add(response: ListOffsetsResponse) -> None:
        other = copy.copy(response.topics[0].partitions[0])
        other.partition_index, other.offset = 55, 12345
        response.topics[0].partitions += [other, copy.copy(response.topics[0].partitions[0])]

    assert straight.consumer().end_offsets([where]) == {where: 3}
    assert fault.hits == 2
    cluster.faults.edit(ApiKey.LIST_OFFSETS, add)
    assert straight.consumer().end_offsets([where]) == {where: 3}


@pytest.mark.fault("P10", "R7")
def test_commit_missing_in_response_fails(cluster: EmbeddedCluster, straight: Clients) -> None:
    topic = straight.topic()
    straight.fill(topic, 3)
    consumer = straight.consumer(straight.group(), default_api_timeout_ms=2000)
    consumer.subscribe([topic])
    read(consumer, 3)

    def omit(response: OffsetCommitResponse) -> None:
        response.topics = []

    fault = cluster.faults.edit(ApiKey.OFFSET_COMMIT, omit, times=1)
    cluster.faults.requests.clear()
    consumer.commit()
    assert fault.hits == 1
    asked = [request.api for request in cluster.faults.requests]
    assert asked.count(ApiKey.OFFSET_COMMIT) == 2
    committed = consumer.committed([place(topic)])[place(topic)]
    assert committed is not None
    assert committed.offset == 3


@pytest.mark.fault("P10", "R7")
def test_position_missing_in_response_is_fetched_again(
    cluster: EmbeddedCluster, straight: Clients
) -> None:
    topic = straight.topic()
    straight.fill(topic, 5)
    group = straight.group()
    with Clients(cluster.bootstrap_servers) as first:
        before = first.consumer(group)
        before.assign([place(topic)])
        before.seek(place(topic), 3)
        before.commit()

    def omit(response: OffsetFetchResponse) -> None:
        for one in response.groups:
            one.topics = []

    fault = cluster.faults.edit(ApiKey.OFFSET_FETCH, omit, times=2)
    consumer = straight.consumer(group)
    consumer.assign([place(topic)])
    assert values(read(consumer, 2)) == [3, 4]
    assert fault.hits == 2


@pytest.mark.fault("P10", "W3", "W14")
@pytest.mark.parametrize("wrong", ["missing", "twice", "unknown_partition"])
def test_produce_response_with_wrong_partitions_completes_each_record_once(
    cluster: EmbeddedCluster, straight: Clients, wrong: str
) -> None:
    topic = straight.topic(2)
    producer = straight.producer(linger_ms=50, request_timeout_ms=1000)
    producer.partitions_for(topic)

    def change(response: ProduceResponse) -> None:
        (responded,) = response.responses
        if wrong == "missing":
            responded.partition_responses = [
                one for one in responded.partition_responses if one.index
            ]
            return
        for one in list(responded.partition_responses):
            other = copy.copy(one)
            if wrong == "unknown_partition":
                other.index, other.base_offset = 66, 99
            responded.partition_responses.append(other)

    reported: list[tuple[int, object]] = []

    def report(number: int, metadata: object, error: object) -> None:
        reported.append((number, error))

    fault = cluster.faults.edit(ApiKey.PRODUCE, change, times=1)
    futures = [
        producer.send(
            topic,
            b"%d" % number,
            partition=number,
            on_delivery=partial(report, number),
        )
        for number in range(2)
    ]
    assert [future.result(10).offset for future in futures] == [0, 0]
    assert fault.hits == 1
    producer.flush(10)
    assert sorted(reported, key=lambda one: one[0]) == [(0, None), (1, None)]
    assert producer.send(topic, b"2", partition=0).result(10).offset == 1


# --- throttling


@pytest.mark.fault("P9")
def test_throttling_delays_no_call_beyond_its_timeout(simulation: VirtualCluster) -> None:
    def throttle(response: MetadataResponse) -> None:
        response.throttle_time_ms = 3_600_000

    straight = simulation.straight
    where = place(straight.topic())
    producer = straight.producer(max_block_ms=300)
    consumer = straight.consumer(default_api_timeout_ms=300)
    admin = straight.admin()
    for api in (ApiKey.METADATA, ApiKey.LIST_OFFSETS):
        simulation.faults.edit(api, throttle)
    calls: list[Callable[[int], object]] = [
        lambda _: admin.list_topics(timeout=0.3),
        lambda _: consumer.end_offsets([where]),
        lambda number: producer.send(f"unknown-{number}", b"v"),
    ]
    for call in calls:
        before = len(simulation.faults.requests)
        took = [seconds_until_timeout(simulation, partial(call, number)) for number in range(4)]
        # The bootstrap connection and the broker's own are distinct, as in Kafka's client.
        assert took.count(0) <= 2
        for seconds in took[-2:]:
            assert seconds == pytest.approx(0.3, abs=0.01)
        assert len(simulation.faults.requests) - before <= 8


def seconds_until_timeout(simulation: VirtualCluster, call: Callable[[], object]) -> float:
    """Return the time until a call timed out; 0 if it succeeded."""
    started = simulation.now
    try:
        call()
    except KafkaTimeoutError:
        return simulation.now - started
    return 0


@pytest.mark.fault("P9")
def test_negative_throttle_time_is_ignored(simulation: VirtualCluster) -> None:
    def throttle(response: MetadataResponse) -> None:
        response.throttle_time_ms = -3_600_000

    simulation.faults.edit(ApiKey.METADATA, throttle)
    simulation.faults.edit(ApiKey.PRODUCE, throttle)
    producer = simulation.straight.producer()
    started = simulation.now
    for number in range(5):
        assert producer.send(f"negative-{number}", b"v").result(10).offset == 0
    assert simulation.now - started < 1.0


# --- metadata without brokers, topics, partitions or leaders


def no_brokers(response: MetadataResponse) -> None:
    response.brokers = []


def no_topic(response: MetadataResponse) -> None:
    for topic in response.topics:
        topic.error_code, topic.partitions = 3, []


def no_partitions(response: MetadataResponse) -> None:
    for topic in response.topics:
        topic.partitions = []


def no_leader(response: MetadataResponse) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.error_code, partition.leader_id = 5, -1


@pytest.mark.fault("P12")
@pytest.mark.parametrize("change", [no_brokers, no_topic, no_partitions, no_leader])
def test_incomplete_metadata_loses_no_sequence_number(
    cluster: EmbeddedCluster, straight: Clients, change: Callable[[MetadataResponse], None]
) -> None:
    topic = straight.topic()
    producer = straight.producer(metadata_max_age_ms=50, retry_backoff_ms=20, linger_ms=0)
    for number in range(5):
        producer.send(topic, b"%d" % number, partition=0).result(10)
    fault = cluster.faults.edit(ApiKey.METADATA, change, times=4)
    futures: list[DeliveryFuture] = []

    def all_faults_applied() -> bool:
        futures.append(producer.send(topic, b"%d" % (5 + len(futures)), partition=0))
        return fault.hits == 4

    wait_until(all_faults_applied, "the metadata was incomplete several times")
    assert [future.result(10).offset for future in futures] == list(range(5, 5 + len(futures)))
    consumer = straight.consumer()
    consumer.assign([place(topic)])
    count = 5 + len(futures)
    assert values(read(consumer, count)) == list(range(count))
    assert has_one_sequence(cluster, topic)


def has_one_sequence(cluster: EmbeddedCluster, topic: str) -> bool:
    """Return whether the batches of a topic are one sequence of one producer."""
    expected: dict[tuple[int, int], int] = {}
    with Wire(cluster.bootstrap_servers) as wire:
        records = wire.fetch(topic, 0).records
    assert isinstance(records, bytes | memoryview)
    for batch in read_batches(records):
        identity = batch.producer_id, batch.producer_epoch
        assert expected.setdefault(identity, 0) == batch.base_sequence
        expected[identity] += batch.count
    return len(expected) == 1
