"""A poll that raises loses and repeats no record, and no poll waits before it sends a request."""

import pytest

from kclient.common.broker_errors import GroupAuthorizationError
from kclient.common.errors import WakeupError
from kclient.consumer import Consumer
from kclient.protocol.api_keys import ApiKey
from kclient.record import ConsumerRecord, ControlRecordType
from kclient.testing.virtual.virtual_socket import VirtualSocket
from tests.consumer.conftest import ORDERS_0, ConsumerWorld, offsets
from tests.consumer.transactions import abort, end

LONG_AFTER_MS = 10_000.0
GROUP_AUTHORIZATION_FAILED = 30
ROUND_TRIP_MS = 2.0
# Longer than every time that the tests expect.
BACKOFF = {"retry_backoff_ms": 700, "retry_backoff_max_ms": 700}


def test_woken_poll_keeps_records_of_the_previous_poll(
    world: ConsumerWorld,
) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert offsets(world.read(consumer, 10)) == list(range(10))
    world.sleep(LONG_AFTER_MS)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.poll(1.0)
    assert consumer.position(ORDERS_0) == 10
    world.fill(1)
    assert offsets(world.read(consumer, 1)) == [10]


def test_woken_iteration_continues_after_its_last_record(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.assigned()
    assert [next(consumer).offset for _ in range(4)] == [0, 1, 2, 3]
    world.sleep(LONG_AFTER_MS)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        next(consumer)
    assert consumer.position(ORDERS_0) == 4
    assert [next(consumer).offset for _ in range(6)] == [4, 5, 6, 7, 8, 9]


def test_group_error_does_not_repeat_records(world: ConsumerWorld) -> None:
    world.fill(10)
    consumer = world.subscribed()
    assert offsets(world.read(consumer, 10)) == list(range(10))
    world.broker.fail(ApiKey.HEARTBEAT, GROUP_AUTHORIZATION_FAILED)
    with pytest.raises(GroupAuthorizationError):
        world.poll_until(consumer, lambda: False)
    assert consumer.position(ORDERS_0) == 10


def time_of_next(world: ConsumerWorld, consumer: Consumer) -> tuple[ConsumerRecord, float]:
    """Return the next record, and the time until it came, in ms."""
    began_ms = world.clock.now_ms
    record = world.read(consumer, 1)[0]
    return record, world.clock.now_ms - began_ms


def test_aborted_records_are_read_in_one_round_trip_per_fetch(world: ConsumerWorld) -> None:
    world.fill(1)
    log = world.log()
    for _ in range(10):
        log.append(bytes(1000), producer_id=5)
    abort(log, 5, 1)
    log.append(b"last")
    consumer = world.assigned(
        isolation_level="read_committed", max_partition_fetch_bytes=1200, **BACKOFF
    )
    assert offsets(world.read(consumer, 1)) == [0]
    before = len(world.broker.fetches)
    record, took_ms = time_of_next(world, consumer)
    assert record.value == b"last"
    assert took_ms <= (len(world.broker.fetches) - before + 1) * ROUND_TRIP_MS


def test_marker_fetched_alone_does_not_delay_the_next_record(world: ConsumerWorld) -> None:
    log = world.log()
    world.fill(1)
    consumer = world.assigned(**BACKOFF)
    world.read(consumer, 1)

    def commit() -> None:
        end(log, 5, ControlRecordType.COMMIT)
        world.broker.arrived()

    def append() -> None:
        log.append(b"next")
        world.broker.arrived()

    world.clock.after(50.0, commit)
    world.clock.after(60.0, append)
    record, took_ms = time_of_next(world, consumer)
    assert record.value == b"next"
    assert took_ms <= 60.0 + ROUND_TRIP_MS


def test_position_out_of_range_is_reset_without_a_backoff(world: ConsumerWorld) -> None:
    world.fill(2)
    consumer = world.assigned(**BACKOFF)
    world.read(consumer, 2)
    world.sleep(LONG_AFTER_MS)  # the fetch in flight is complete
    consumer.seek(ORDERS_0, 9)
    record, took_ms = time_of_next(world, consumer)
    assert record.offset == 0
    # The fetch that was in flight, one of offset 9, the lookup, and the fetch of offset 0.
    assert took_ms <= 4 * ROUND_TRIP_MS


REQUEST_TIMEOUT_MS = 5_000


def test_application_that_works_for_long_keeps_its_connection(
    world: ConsumerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets: list[VirtualSocket] = []
    monkeypatch.setattr(world.broker, "connected", sockets.append)
    world.fill(10)
    consumer = world.assigned(request_timeout_ms=REQUEST_TIMEOUT_MS, max_poll_records=1)
    world.read(consumer, 1)
    bootstrap, _broker = sockets
    refreshes = world.broker.asked_for(ApiKey.METADATA)
    world.sleep(2 * REQUEST_TIMEOUT_MS)
    bootstrap.close()  # for being idle: metadata is due at the end of the poll that sees it
    for number in range(1, 10):
        world.sleep(2 * REQUEST_TIMEOUT_MS)
        assert [record.offset for record in consumer.poll(0.0)] == [number]
    assert len(sockets) == 2
    assert world.broker.asked_for(ApiKey.METADATA) == refreshes + 1


def test_deserializer_that_works_for_long_keeps_its_connection(world: ConsumerWorld) -> None:
    def deserialize(data: bytes | memoryview) -> bytes:
        world.sleep(2 * REQUEST_TIMEOUT_MS)
        return bytes(data)

    world.fill(1, 1, 1, 1)
    consumer = world.assigned(
        value_deserializer=deserialize, max_poll_records=1, request_timeout_ms=REQUEST_TIMEOUT_MS
    )
    world.read(consumer, 1)
    connections = world.broker.connections
    for number in range(1, 7):
        assert offsets(world.read(consumer, 1)) == [number]
        world.fill(1)
    assert world.broker.connections == connections
