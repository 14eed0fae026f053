"""Transactional records under both isolation levels, in virtual time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.consumer import Consumer
from kclient.record import ControlRecordType
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets
from tests.consumer.transactions import TransactionWriter, abort, end


def reader(world: ConsumerWorld, isolation: str = "read_committed") -> Consumer:
    return world.assigned(isolation_level=isolation)


@pytest.mark.fault("R18")
def test_aborted_records_are_not_returned(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"kept")
    log.append(b"gone", b"gone", producer_id=5)
    log.append(b"kept")
    abort(log, 5, 1)
    log.append(b"kept", producer_id=5)
    end(log, 5, ControlRecordType.COMMIT)
    consumer = reader(world)
    records = world.read(consumer, 3)
    assert [(record.offset, record.value) for record in records] == [
        (0, b"kept"),
        (3, b"kept"),
        (5, b"kept"),
    ]
    consumer.poll(0.1)
    assert consumer.position(ORDERS_0) == 7


@pytest.mark.fault("R18")
def test_read_uncommitted_returns_all_but_control_records(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"a", producer_id=5)
    abort(log, 5, 0)
    log.append(b"b")
    assert offsets(world.read(reader(world, "read_uncommitted"), 2)) == [0, 2]


@pytest.mark.fault("R18")
def test_unordered_aborted_list_of_several_producers(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"x5", producer_id=5)
    log.append(b"x6", producer_id=6)
    abort(log, 6, 1)
    log.append(b"k6", producer_id=6)
    abort(log, 5, 0)
    end(log, 6, ControlRecordType.COMMIT)
    log.aborted.reverse()
    assert [record.value for record in world.read(reader(world), 1)] == [b"k6"]


@pytest.mark.fault("R18")
def test_single_abort_marker_hides_no_record(world: ConsumerWorld) -> None:
    log = world.log()
    end(log, 5, ControlRecordType.ABORT)
    log.append(b"kept", producer_id=5)
    end(log, 5, ControlRecordType.COMMIT)
    end(log, 5, ControlRecordType.ABORT)
    log.append(b"kept")
    assert offsets(world.read(reader(world), 2)) == [1, 4]


@pytest.mark.fault("R18")
def test_long_aborted_transaction_is_skipped(
    world: ConsumerWorld,
) -> None:
    log = world.log()
    for _ in range(50):
        log.append(bytes(100), producer_id=5)
    abort(log, 5, 0)
    consumer = world.assigned(isolation_level="read_committed", max_partition_fetch_bytes=400)
    for _ in range(100):
        assert not consumer.poll(0.2)
    assert consumer.position(ORDERS_0) == 51
    assert len(world.broker.fetches) < 120


@pytest.mark.fault("R18")
def test_records_after_last_stable_offset_are_not_read(world: ConsumerWorld) -> None:
    log = world.log()
    log.append(b"a")
    log.append(b"open", producer_id=5)
    log.last_stable_offset = 1
    consumer = reader(world)
    assert offsets(world.read(consumer, 1)) == [0]
    assert not consumer.poll(1.0)
    assert consumer.end_offsets([ORDERS_0]) == {ORDERS_0: 1}
    assert consumer.lag(ORDERS_0) == 0
    assert consumer.metrics()["records-lag-max"] == 0
    log.last_stable_offset = None
    end(log, 5, ControlRecordType.COMMIT)
    assert offsets(world.read(consumer, 1)) == [1]


@pytest.mark.fault("R18")
@pytest.mark.parametrize("columns", [False, True])
def test_columns_omit_aborted_records(world: ConsumerWorld, columns: bool) -> None:
    log = world.log()
    log.append(b"a")
    log.append(b"b", b"c", producer_id=5)
    abort(log, 5, 1)
    log.append(b"d")
    consumer = reader(world)
    if columns:
        assert consumer.poll_columns(1.0).column("value").to_pylist() == [b"a", b"d"]
    else:
        assert [record.value for record in world.read(consumer, 2)] == [b"a", b"d"]
    assert consumer.position(ORDERS_0) == 5


@pytest.mark.fault("R18")
@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from(["write", "commit", "abort", "plain"])),
        max_size=30,
    ),
    limit=st.integers(100, 2000),
)
def test_only_committed_records_are_read(steps: list[tuple[int, str]], limit: int) -> None:
    world = ConsumerWorld()
    writer = TransactionWriter(world.log())
    for producer, action in [*steps, (1, "abort"), (2, "commit"), (3, "abort")]:
        if action == "plain":
            writer.write(1)
        elif action == "write":
            writer.write(1, producer)
        else:
            writer.end(producer, ControlRecordType[action.upper()])
    expected = writer.visible(committed_only=True)
    consumer = world.assigned(isolation_level="read_committed", max_partition_fetch_bytes=limit)
    try:
        assert offsets(world.read(consumer, len(expected))) == expected
    finally:
        consumer.close(timeout=0)


@pytest.mark.fault("R18")
def test_batch_put_back_keeps_its_transaction_state(
    world: ConsumerWorld,
) -> None:
    writer = TransactionWriter(world.log())
    writer.write(5, 7)
    writer.end(7, ControlRecordType.COMMIT)
    writer.write(1, 7)
    writer.write(20)
    writer.end(7, ControlRecordType.ABORT)
    consumer = world.assigned(isolation_level="read_committed", max_poll_records=10)
    assert next(consumer).offset == 0
    read = consumer.poll_columns(1.0).column("offset").to_pylist()
    assert [0, *read] == writer.visible(committed_only=True)


def test_lag_ends_at_last_stable_offset(world: ConsumerWorld) -> None:
    writer = TransactionWriter(world.log())
    writer.write(4)
    writer.write(3, 5)
    for isolation, lag in (("read_committed", 3), ("read_uncommitted", 6)):
        consumer = reader(world, isolation)
        assert len(consumer.poll(1.0, max_records=1)) == 1
        assert consumer.lag(ORDERS_0) == consumer.metrics()["records-lag-max"] == lag
