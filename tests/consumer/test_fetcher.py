"""Fetching in virtual time: requests, prefetching, batches at the limits of a response."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.common.broker_errors import (
    CorruptRecordError,
    RecordTooLargeError,
)
from kclient.common.errors import KafkaError
from kclient.consumer.errors import IncompleteBatchError
from kclient.protocol.api_keys import ApiKey
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld, offsets
from tests.support.virtual.virtual_log_broker import without_last_record

OFFSET_OUT_OF_RANGE = 1


def test_records_are_returned_in_order_with_all_fields(world: ConsumerWorld) -> None:
    world.fill(3, 2)
    records = world.read(world.assigned(), 5)
    assert offsets(records) == [0, 1, 2, 3, 4]
    first = records[0]
    assert (first.topic, first.partition, first.key, first.value) == ("orders", 0, b"k0", b"0")
    assert (first.timestamp_ms, first.leader_epoch) == (1000, 1)


def test_poll_returns_at_most_max_records(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned(max_poll_records=4)
    assert len(consumer.poll(1.0)) == 4
    assert len(consumer.poll(1.0, max_records=1)) == 1
    assert consumer.position(ORDERS_0) == 5
    assert offsets(world.read(consumer, 5)) == [5, 6, 7, 8, 9]


def test_records_are_grouped_by_partition(world: ConsumerWorld) -> None:
    world.fill(2)
    world.fill(3, number=1)
    consumer = world.assigned(0, 1)
    records = consumer.poll(1.0)
    while len(records) < 5:
        consumer.seek_to_beginning()
        records = consumer.poll(1.0)
    assert set(records.partitions()) == {ORDERS_0, ORDERS_1}
    assert offsets(records.records(ORDERS_1)) == [0, 1, 2]
    assert len(list(records)) == 5


def test_next_fetch_is_sent_before_the_buffer_is_empty(
    world: ConsumerWorld,
) -> None:
    world.fill(*[10] * 8)
    consumer = world.assigned()
    assert consumer.poll(1.0, max_records=10)
    assert len(world.broker.fetches) == 1
    assert consumer.poll(1.0, max_records=40)
    world.sleep(5)
    assert [request.topics[0].partitions[0].fetch_offset for request in world.broker.fetches] == [
        0,
        80,
    ]
    assert consumer.position(ORDERS_0) == 50


@pytest.mark.fault("R23")
def test_at_most_one_and_a_half_responses_are_buffered(world: ConsumerWorld) -> None:
    world.fill(*[10] * 100)
    consumer = world.assigned(max_partition_fetch_bytes=3000)
    assert consumer.poll(1.0, max_records=1)
    for _ in range(20):
        consumer.poll(0.0)
        world.sleep(10)
        consumer.poll(0.0, max_records=1)
        ahead = world.broker.fetches[-1].topics[0].partitions[0].fetch_offset
        # A batch of ten records has about 300 bytes: a response holds ten batches.
        assert ahead - consumer.position(ORDERS_0) <= 250


def test_poll_waits_for_new_records(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    assert len(consumer.poll(0.2)) == 0
    world.fill(1)
    world.broker.arrived()
    assert offsets(world.read(consumer, 1, within_s=0.3)) == [0]


def test_empty_poll_takes_exactly_its_timeout(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    consumer.poll(0.5)
    before_ms = world.clock.now_ms
    assert not consumer.poll(2.0)
    assert 2000 <= world.clock.now_ms - before_ms < 2010


@pytest.mark.fault("R19")
def test_gaps_from_compaction_are_skipped(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"a", b"b", offsets=[2, 7])
    log.append(b"c", offsets=[20])
    log.end_offset = 30
    log.append(b"d")
    assert offsets(world.read(world.assigned(), 4)) == [2, 7, 20, 30]


@pytest.mark.fault("R19")
def test_position_moves_past_batch_with_compacted_end(
    world: ConsumerWorld,
) -> None:
    world.fill(4)
    base, end, batch = world.log().batches.pop()
    # lastOffsetDelta stays 3 while one record is gone: the checksum must match that.
    world.log().append_bytes(base, end, without_last_record(batch))
    consumer = world.assigned()
    assert offsets(world.read(consumer, 3)) == [0, 1, 2]
    assert consumer.position(ORDERS_0) == 4


@pytest.mark.fault("R19")
def test_records_before_the_position_are_skipped(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    consumer.seek(ORDERS_0, 6)
    assert offsets(world.read(consumer, 4)) == [6, 7, 8, 9]


@pytest.mark.fault("R2")
def test_incomplete_batch_at_response_end_is_fetched_again(world: ConsumerWorld) -> None:
    world.fill(*[5] * 10)
    size = len(world.log().batches[0][2])
    consumer = world.assigned(max_partition_fetch_bytes=size * 2 + size // 2)
    assert offsets(world.read(consumer, 50)) == list(range(50))


@pytest.mark.fault("R4")
def test_batch_larger_than_fetch_limits_is_read(world: ConsumerWorld) -> None:
    world.log().append(bytes(5000))
    assert len(world.read(world.assigned(max_partition_fetch_bytes=100), 1)) == 1


def test_no_partition_is_starved_by_response_limit(world: ConsumerWorld) -> None:
    world.fill(*[10] * 50)
    world.fill(*[10] * 50, number=1)
    world.broker.response_limit = len(world.log().batches[0][2])
    consumer = world.assigned(0, 1)
    taken = [record.partition for record in world.read(consumer, 200)]
    assert 80 <= sum(taken[:200]) <= 120


@pytest.mark.fault("R4")
def test_incomplete_first_batch_raises(world: ConsumerWorld) -> None:
    world.fill(10)
    world.broker.cut_first_batches = True
    consumer = world.assigned()
    for _ in range(2):  # the error repeats
        with pytest.raises(IncompleteBatchError, match="raise max_partition_fetch_bytes") as caught:
            world.read(consumer, 1)
        assert isinstance(caught.value, CorruptRecordError | RecordTooLargeError)
    world.broker.cut_first_batches = False
    assert offsets(world.read(consumer, 10)) == list(range(10))


@pytest.mark.fault("R4")
def test_incomplete_batch_after_unassigned_partition_is_ignored(
    world: ConsumerWorld,
) -> None:
    consumer = world.assigned(0, 1)
    consumer.poll(0.1)  # the request waits at the broker for data of both partitions
    world.fill(10)
    world.fill(10, number=1)
    world.broker.response_limit = len(world.log().batches[0][2]) + 70
    consumer.assign([ORDERS_1])
    world.broker.arrived()
    assert offsets(world.read(consumer, 10)) == list(range(10))


@pytest.mark.fault("R4")
@pytest.mark.parametrize("limit", [1, 60, 61, 200])
def test_incomplete_batch_at_the_end_is_ignored(world: ConsumerWorld, limit: int) -> None:
    """After whole batches, or in the second partition; shorter than a header, or longer."""
    partitions = world.broker.add_topic("many", 4)
    for partition in partitions:
        log = world.broker.logs[partition]
        for _ in range(5):
            log.append(*[b"x" * 20] * 3)
    size = len(world.broker.logs[partitions[0]].batches[0][2])
    for whole in (1, 2):
        world.broker.response_limit = whole * size + min(limit, size - 1)
        consumer = world.consumer()
        consumer.assign(partitions)
        read = world.read(consumer, 4 * 15)
        for partition in partitions:
            mine = [record for record in read if record.topic_partition == partition]
            assert offsets(mine) == list(range(15))


def test_checksum_verification_can_be_disabled(world: ConsumerWorld) -> None:
    world.fill(1)
    base, end, batch = world.log().batches[0]
    world.log().batches[0] = (base, end, batch[:20] + b"\0" + batch[21:])
    assert len(world.read(world.assigned(check_crcs=False), 1)) == 1


@pytest.mark.fault("R1")
def test_corruption_in_transit_is_fetched_again(world: ConsumerWorld) -> None:
    world.fill(2)
    base, end, batch = world.log().batches[0]
    world.log().batches[0] = (base, end, batch[:-1] + bytes([batch[-1] ^ 1]))
    consumer = world.assigned()
    with pytest.raises(CorruptRecordError):
        world.read(consumer, 1)
    world.log().batches[0] = (base, end, batch)
    assert offsets(world.read(consumer, 2)) == [0, 1]


@pytest.mark.fault("R3")
@settings(max_examples=150)
@given(data=st.data())
def test_random_bytes_raise_only_kafka_errors(data: st.DataObject) -> None:
    world = ConsumerWorld()
    world.fill(3, 3)
    index = data.draw(st.integers(0, 1))
    base, end, batch = world.log().batches[index]
    changed = bytearray(batch)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    world.log().batches[index] = (base, end, bytes(changed))
    consumer = world.assigned(check_crcs=data.draw(st.booleans()))
    try:
        for _ in range(6):
            consumer.poll(0.2)
    except KafkaError:
        pass
    finally:
        consumer.close(timeout=0)


@pytest.mark.fault("R9")
def test_fetch_response_after_seek_is_dropped(world: ConsumerWorld) -> None:
    world.fill(*[5] * 4)
    consumer = world.assigned()
    consumer.position(ORDERS_0)
    consumer.poll(0.0)
    world.sleep(0.5)
    consumer.seek(ORDERS_0, 12)
    assert offsets(world.read(consumer, 8)) == list(range(12, 20))


@pytest.mark.fault("R9")
def test_seek_drops_buffered_records(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert consumer.poll(1.0, max_records=3)
    consumer.seek(ORDERS_0, 1)
    assert offsets(world.read(consumer, 9)) == list(range(1, 10))


def test_paused_partition_keeps_buffered_records(world: ConsumerWorld) -> None:
    world.fill(10)
    world.fill(10, number=1)
    consumer = world.assigned(0, 1)
    assert consumer.poll(1.0, max_records=1)
    consumer.pause(ORDERS_0)
    assert consumer.paused() == {ORDERS_0}
    taken = world.read(consumer, 10)
    assert {record.partition for record in taken} == {1}
    assert not consumer.poll(1.0)
    fetched = len(world.broker.fetches)
    consumer.resume(ORDERS_0)
    rest = consumer.poll(0.0)
    assert offsets(list(rest)) == list(range(1, 10))
    assert not any(
        part.partition == 0 and part.fetch_offset < 10
        for request in world.broker.fetches[fetched:]
        for topic in request.topics
        for part in topic.partitions
    )


def test_paused_partition_does_not_block_others(world: ConsumerWorld) -> None:
    world.fill(*[10] * 5)
    world.fill(*[10] * 20, number=1)
    consumer = world.assigned(0, 1, max_partition_fetch_bytes=1500)
    assert consumer.poll(1.0, max_records=1)
    consumer.pause(ORDERS_0)
    assert len(world.read(consumer, 199)) >= 199


def test_broken_connection_loses_and_repeats_no_record(world: ConsumerWorld) -> None:
    world.fill(*[5] * 20)
    consumer = world.assigned(max_partition_fetch_bytes=400)
    taken = []
    for _ in range(15):
        taken += list(consumer.poll(0.3, max_records=5))
        world.net.stop(("10.0.0.1", 9092))
        world.net.peers["10.0.0.1", 9092] = lambda: world.broker
    taken += world.read(consumer, 100 - len(taken))
    assert offsets(taken) == list(range(100))


def test_deserializers_decode_keys_and_values(world: ConsumerWorld) -> None:
    world.fill(1)
    consumer = world.assigned(
        key_deserializer=lambda topic, headers, data: (topic, data),
        value_deserializer=lambda topic, headers, data: int(data),
    )
    record = world.read(consumer, 1)[0]
    assert (record.key, record.value) == (("orders", b"k0"), 0)


@pytest.mark.parametrize(("highest", "named"), [(18, ""), (12, "orders"), (4, "orders")])
def test_fetch_uses_topic_ids_if_supported(world: ConsumerWorld, highest: int, named: str) -> None:
    world.broker.versions[ApiKey.FETCH] = (4, highest)
    world.fill(2)
    assert offsets(world.read(world.assigned(), 2)) == [0, 1]
    asked = world.broker.fetches[0].topics[0]
    assert asked.topic == named
    assert (asked.topic_id == b"orders----------") == (not named)


@pytest.mark.fault("R21")
def test_interrupt_loses_no_record(world: ConsumerWorld) -> None:
    world.fill(*[5] * 4)
    calls = 0

    def interrupted(topic: str, headers: object, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls in {3, 9, 16}:
            raise KeyboardInterrupt
        return int(data)

    consumer = world.assigned(value_deserializer=interrupted)
    taken: list[ConsumerRecord] = []
    while len(taken) < 20:
        try:
            taken += list(consumer.poll(1.0))
        except KeyboardInterrupt:
            continue
    assert [record.value for record in taken] == list(range(20))
