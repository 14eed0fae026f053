"""The range reader, in virtual time."""

import logging
from collections import deque
from dataclasses import replace

import pytest

from kclient.common.errors import BootstrapError, KafkaTimeoutError
from kclient.common.types import TopicPartition
from kclient.common.uuids import uuid_to_text
from kclient.consumer.errors import UndecompressableBatchError
from kclient.protocol.api_keys import ApiKey
from kclient.record import (
    CompressionType,
    ControlRecordType,
    EndTxnMarker,
    RecordBatchBuilder,
    build_end_txn_batch,
)
from kclient.spark.common.errors import DataLossError
from kclient.spark.common.offsets import Span
from kclient.spark.options.source_options import ReadSettings, SourceOptions
from kclient.spark.source import range_reader
from kclient.spark.source.range_reader import RangeReader
from kclient.spark.source.schema import arrow_schema
from tests.consumer.conftest import ORDERS_0, ORDERS_1, ConsumerWorld
from tests.consumer.conftest import world as world  # noqa: PLC0414 (a fixture)
from tests.support.virtual.virtual_log_broker import VirtualLog

UNKNOWN_TOPIC = 3


def settings(**given: str) -> ReadSettings:
    return SourceOptions.parse(
        {"kafka.bootstrap.servers": "10.0.0.1:9092", "subscribe": "orders", **given}
    ).reading


class Reading:
    """A range reader and its consumer."""

    def __init__(self, world: ConsumerWorld, found: ReadSettings) -> None:
        options = {key.replace(".", "_"): value for key, value in found.consumer.items()}
        self.world = world
        self.consumer = world.consumer(**options)
        self.reader = RangeReader(self.consumer, found, world.runtime)

    def offsets(
        self, start: int, end: int, partition: TopicPartition = ORDERS_0, topic_id: str = ""
    ) -> list[object]:
        return [
            offset
            for batch in self.reader.read(Span(partition, start, end), topic_id)
            for offset in batch.column("offset").to_pylist()
        ]


def reading(world: ConsumerWorld, **given: str) -> Reading:
    return Reading(world, settings(**given))


def marker(log: VirtualLog, producer_id: int, kind: ControlRecordType) -> None:
    base = log.end_offset
    batch = build_end_txn_batch(
        EndTxnMarker(kind, 0), producer_id, 0, 1000, base_offset=base, partition_leader_epoch=1
    )
    log.append_bytes(base, base + 1, bytes(batch))


def test_batch_of_any_decompressed_size_is_read_in_pieces(world: ConsumerWorld) -> None:
    builder = RecordBatchBuilder(bytearray(80_000_000))
    value = b"v" * 1000
    for _ in range(75_000):
        builder.append(1000, None, value)
    batch = bytes(builder.seal(compression=CompressionType.ZSTD))
    world.log().append_bytes(0, 75_000, batch)
    reader = reading(world).reader
    pieces = list(reader.read(Span(ORDERS_0, 10, 75_000)))
    assert [offset for piece in pieces for offset in piece.column("offset").to_pylist()] == list(
        range(10, 75_000)
    )
    assert len(pieces) > 1
    assert all(piece.nbytes < 70 << 20 for piece in pieces)


def test_record_limit_is_an_option_of_the_consumer(world: ConsumerWorld) -> None:
    builder = RecordBatchBuilder(bytearray(10_000))
    builder.append(1000, None, bytes(5000))
    world.log().append_bytes(0, 1, bytes(builder.seal(compression=CompressionType.GZIP)))
    limited = reading(world, **{"kafka.max.decompressed.record.bytes": "1000"})
    with pytest.raises(UndecompressableBatchError, match="expected at most 1000"):
        limited.offsets(0, 1)


def test_rows_have_the_columns_of_the_source(world: ConsumerWorld) -> None:
    world.fill(3)
    reader = reading(world, includeHeaders="true").reader
    (batch,) = reader.read(Span(ORDERS_0, 1, 3))
    assert batch.schema.equals(arrow_schema(include_headers=True))
    row = batch.to_pylist()[0]
    assert row["timestamp"].timestamp() == 1.001
    row.pop("timestamp")
    assert row == {
        "key": b"k1",
        "value": b"1",
        "topic": "orders",
        "partition": 0,
        "offset": 1,
        "timestampType": 0,
        "headers": [],
    }


def test_range_can_end_inside_a_batch(world: ConsumerWorld) -> None:
    world.fill(10, 10)
    one = reading(world)
    assert one.offsets(3, 14) == list(range(3, 14))
    assert one.offsets(14, 20) == list(range(14, 20))


def test_one_consumer_reads_ranges_of_different_partitions(world: ConsumerWorld) -> None:
    world.fill(5)
    world.fill(7, number=1)
    one = reading(world)
    assert one.offsets(0, 5) == [0, 1, 2, 3, 4]
    assert one.offsets(2, 7, ORDERS_1) == [2, 3, 4, 5, 6]
    assert one.offsets(1, 4) == [1, 2, 3]


def test_arrow_batches_have_at_most_the_configured_rows(world: ConsumerWorld) -> None:
    world.fill(25)
    reader = reading(world, arrowBatchRows="10").reader
    assert [batch.num_rows for batch in reader.read(Span(ORDERS_0, 0, 25))] == [8, 8, 9]


def test_compaction_gaps_are_skipped(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"a", b"b", offsets=[0, 4])
    log.append(b"c", offsets=[20])
    one = reading(world)
    assert one.offsets(0, 10) == [0, 4]
    assert one.offsets(5, 20) == []
    assert one.offsets(5, 21) == [20]


def test_range_of_aborted_records_and_markers_is_empty(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"x", b"y", producer_id=5)
    marker(log, 5, ControlRecordType.ABORT)
    log.aborted.append((5, 0, 2))
    log.append(b"kept", producer_id=6)
    marker(log, 6, ControlRecordType.COMMIT)
    one = reading(world)
    assert one.offsets(0, 3) == []
    assert one.offsets(0, 5) == [3]
    assert reading(world, isolationLevel="read_uncommitted").offsets(0, 5) == [0, 1, 3]
    assert world.clock.now_ms < 2_000


def test_deleted_records_fail_with_their_count(world: ConsumerWorld) -> None:
    world.fill(10, 10)
    world.log().start_offset = 12
    with pytest.raises(DataLossError) as caught:
        reading(world).offsets(5, 18)
    assert caught.value.lost == {ORDERS_0: 7}
    assert "orders-0: the log now starts at 12, 7 offsets lost" in str(caught.value)


def test_without_fail_on_data_loss_the_loss_is_logged(
    world: ConsumerWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.fill(10, 10)
    world.log().start_offset = 12
    with caplog.at_level(logging.WARNING):
        assert reading(world, failOnDataLoss="false").offsets(5, 18) == list(range(12, 18))
        assert reading(world, failOnDataLoss="false").offsets(5, 10) == []
    assert "7 offsets lost" in caplog.text
    assert "5 offsets lost" in caplog.text


def test_truncated_log_is_a_loss(world: ConsumerWorld) -> None:
    world.fill(8)
    with pytest.raises(DataLossError) as caught:
        reading(world).offsets(5, 12)
    assert caught.value.lost == {ORDERS_0: 4}
    assert reading(world, failOnDataLoss="false").offsets(5, 12) == [5, 6, 7]


def test_position_after_the_log_end_is_a_loss(world: ConsumerWorld) -> None:
    world.fill(3)
    with pytest.raises(DataLossError) as caught:
        reading(world).offsets(10, 12)
    assert caught.value.lost == {ORDERS_0: 2}
    assert reading(world, failOnDataLoss="false").offsets(10, 12) == []


def test_records_of_a_new_leader_epoch_are_read(
    world: ConsumerWorld,
) -> None:
    world.fill(4, 4)
    one = reading(world, arrowBatchRows="4")
    batches = one.reader.read(Span(ORDERS_0, 0, 12))
    assert next(batches).num_rows == 4
    log = world.log()
    log.batches.pop()
    log.end_offset = 4
    log.append(b"4", b"5", b"6", b"7", b"8", b"9", b"10", b"11", epoch=2)
    log.epoch_ends = {1: 4}
    world.broker.epoch = 2
    found = [offset for batch in batches for offset in batch.column("offset").to_pylist()]
    assert found == list(range(4, 12))


def test_range_fails_after_the_poll_timeout(world: ConsumerWorld) -> None:
    world.fill(3)
    one = reading(world, **{"kafkaConsumer.pollTimeoutMs": "7000"})
    assert one.offsets(0, 2) == [0, 1]
    before_ms = world.clock.now_ms
    world.log().batches.clear()
    with pytest.raises(KafkaTimeoutError, match="no records at offset 1 for 7000 ms"):
        one.offsets(1, 3)
    assert 7_000 <= world.clock.now_ms - before_ms < 9_000


@pytest.mark.parametrize("is_first", [True, False], ids=["before", "meanwhile"])
@pytest.mark.parametrize("left", [[], [1]], ids=["topic", "partition"])
def test_deleted_partition_is_reported_as_loss_in_time(
    world: ConsumerWorld, left: list[int], is_first: bool
) -> None:
    world.fill(5)
    world.fill(5, number=1)

    def delete() -> None:
        if left:
            world.broker.topics["orders"] = left
        else:
            world.broker.topics.pop("orders")
        world.broker.failures = {
            api: deque([UNKNOWN_TOPIC] * 10_000) for api in (ApiKey.FETCH, ApiKey.LIST_OFFSETS)
        }

    partition = ORDERS_1 if left else ORDERS_0
    strict, lenient = reading(world), reading(world, failOnDataLoss="false")
    if not is_first:
        assert strict.offsets(0, 2, partition) == lenient.offsets(0, 2, partition) == [0, 1]
    delete()
    before_ms = world.clock.now_ms
    with pytest.raises(DataLossError, match="no longer exists, 3 offsets lost") as caught:
        strict.offsets(2, 5, partition)
    assert caught.value.lost == {partition: 3}
    assert lenient.offsets(2, 5, partition) == []
    assert world.clock.now_ms - before_ms < 20_000


OLD, NEW = b"planned topic id", b"another topic id"


def recreate_topic(world: ConsumerWorld, records: int) -> None:
    """Replace the topic by another one of the same name."""
    world.broker.add_topic("orders", 2)
    world.broker.topic_ids["orders"] = NEW
    world.fill(records)


def test_records_of_a_recreated_topic_are_not_read(
    world: ConsumerWorld,
) -> None:
    world.broker.topic_ids["orders"] = OLD
    world.fill(5)
    strict, lenient = reading(world), reading(world, failOnDataLoss="false")
    for one in (strict, lenient):
        assert one.offsets(0, 2, topic_id=uuid_to_text(OLD)) == [0, 1]
    recreate_topic(world, 9)
    with pytest.raises(DataLossError, match="deleted and recreated, 3 offsets lost"):
        strict.offsets(2, 5, topic_id=uuid_to_text(OLD))
    assert lenient.offsets(2, 5, topic_id=uuid_to_text(OLD)) == []
    assert reading(world).offsets(2, 5, topic_id=uuid_to_text(NEW)) == [2, 3, 4]


def test_reused_consumer_reads_the_recreated_topic_when_planned(
    world: ConsumerWorld,
) -> None:
    world.broker.topic_ids["orders"] = OLD
    world.fill(9)
    one = reading(world)
    assert one.offsets(0, 2, topic_id=uuid_to_text(OLD)) == [0, 1]
    recreate_topic(world, 4)
    world.log().append(b"new", b"newer")
    batches = list(one.reader.read(Span(ORDERS_0, 2, 6), uuid_to_text(NEW)))
    values = [value for batch in batches for value in batch.column("value").to_pylist()]
    assert values == [b"2", b"3", b"new", b"newer"]


def test_new_topic_unknown_to_some_brokers_is_retried(world: ConsumerWorld) -> None:
    world.fill(5)
    leaders = world.broker.topics.pop("orders")
    world.clock.after(2_000.0, lambda: world.broker.topics.update(orders=leaders))
    assert reading(world).offsets(0, 5) == [0, 1, 2, 3, 4]


def test_new_partition_unknown_to_some_brokers_is_retried(world: ConsumerWorld) -> None:
    world.fill(5, number=1)
    leaders = world.broker.topics["orders"]
    world.broker.topics["orders"] = leaders[:1]
    world.clock.after(700.0, lambda: world.broker.topics.update(orders=leaders))
    assert reading(world).offsets(0, 5, ORDERS_1) == [0, 1, 2, 3, 4]


def test_partition_with_conflicting_metadata_times_out(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "current_topic_id", lambda *_: "")
    world.broker.topics["orders"] = world.broker.topics["orders"][:1]
    before_ms = world.clock.now_ms
    with pytest.raises(KafkaTimeoutError, match="topic orders has 1 partition"):
        reading(world, **{"kafkaConsumer.pollTimeoutMs": "7000"}).offsets(0, 5, ORDERS_1)
    assert 7_000 <= world.clock.now_ms - before_ms < 9_000


def test_range_is_read_over_a_slow_connection(world: ConsumerWorld) -> None:
    world.fill(5)
    world.net.latency_ms = (1_500.0, 1_500.0)  # each way
    assert reading(world).offsets(0, 5) == [0, 1, 2, 3, 4]
    world.fill(3)
    assert reading(world).offsets(2, 8) == [2, 3, 4, 5, 6, 7]


def test_leader_change_over_a_slow_connection(
    world: ConsumerWorld,
) -> None:
    world.fill(4, 4)
    world.broker.response_limit = 1
    batches = reading(world).reader.read(Span(ORDERS_0, 0, 8))
    assert next(batches).num_rows == 4
    world.net.latency_ms = (300.0, 300.0)
    world.broker.epoch = 2
    world.log().epoch_ends = {1: 8}
    assert sum(batch.num_rows for batch in batches) == 4


def test_unreachable_broker_is_named(world: ConsumerWorld) -> None:
    found = settings(**{"kafkaConsumer.pollTimeoutMs": "5000"})
    elsewhere = {**found.consumer, "bootstrap.servers": "10.0.0.77:9092"}
    one = Reading(world, replace(found, consumer=elsewhere))
    with pytest.raises(BootstrapError, match=r"10\.0\.0\.77:9092"):
        one.offsets(0, 2)


def test_poll_timeout_excludes_time_spent_in_spark(world: ConsumerWorld) -> None:
    world.fill(10)
    found = replace(settings(), poll_timeout_ms=500)
    batches = Reading(world, found).reader.read(Span(ORDERS_0, 0, 20))
    assert next(batches).num_rows == 10

    def arrive() -> None:
        world.fill(10)
        world.broker.arrived()

    world.clock.after(2_200.0, arrive)
    world.sleep(2_000.0)  # Spark processes the rows; there are no more when it continues
    assert next(batches).num_rows == 10


def test_fetch_size_follows_the_size_of_the_range(world: ConsumerWorld) -> None:
    found = settings()
    small, large = found.consumer_for(100), found.consumer_for(1_000_000)
    key = "max.partition.fetch.bytes"
    assert int(small[key]) < int(large[key])
    chosen = settings(**{"kafka.max.partition.fetch.bytes": "77777"})
    assert chosen.consumer_for(100)[key] == chosen.consumer_for(10**6)[key] == "77777"
