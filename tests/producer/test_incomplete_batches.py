"""Registry of the batches without an outcome."""

import pytest

from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.common.errors import ClosedError, KafkaTimeoutError
from kclient.common.waiting import run_steps
from kclient.producer.append_outcome import AppendOutcome
from kclient.producer.batch_state import BatchEvent, BatchState
from kclient.producer.incomplete_batches import IncompleteBatches
from tests.support.virtual.producer_parts import ProducerParts

DELIVERY_TIMEOUT_MS = 1_000.0


class Registry:
    """A registry with batches that were created 100 ms apart."""

    def __init__(self, count: int) -> None:
        self.parts = ProducerParts()
        self.incomplete = IncompleteBatches(self.parts.runtime.tasks, DELIVERY_TIMEOUT_MS)
        self.started_ms = self.parts.clock.now_ms
        self.batches = []
        for _ in range(count):
            batch = self.parts.batch(b"x", b"y")
            self.incomplete.add(batch)
            self.batches.append(batch)
            self.parts.clock.now_ms += 100


def test_batches_are_listed_the_oldest_first_until_removed() -> None:
    registry = Registry(3)
    first, second, third = registry.batches
    assert registry.incomplete.all() == [first, second, third]
    assert first.state is BatchState.QUEUED
    assert registry.incomplete.record_count() == 6
    registry.incomplete.remove([second])
    registry.incomplete.remove([second])
    assert registry.incomplete.all() == [first, third]
    assert len(registry.incomplete) == 2


def test_batches_expire_in_the_order_of_their_creation() -> None:
    registry = Registry(3)
    incomplete, started_ms = registry.incomplete, registry.started_ms
    first_ms = started_ms + DELIVERY_TIMEOUT_MS
    last_ms = registry.batches[2].created_ms + DELIVERY_TIMEOUT_MS
    assert incomplete.expired(first_ms - 1) == ([], first_ms)
    assert incomplete.expired(first_ms + 100) == (registry.batches[:2], last_ms)
    assert incomplete.expired(last_ms) == (registry.batches, float("inf"))
    for batch in registry.batches:
        incomplete.remove([batch])
    assert incomplete.expired(first_ms) == ([], float("inf"))


def test_parts_take_the_place_of_their_batch() -> None:
    registry = Registry(3)
    first, second, third = registry.batches
    parts = [registry.parts.batch(b"x"), registry.parts.batch(b"y")]
    second.apply(BatchEvent.SENT)
    second.request_failed(AppendOutcome.NOT_WRITTEN)
    registry.incomplete.replace(second, parts)
    assert registry.incomplete.all() == [first, *parts, third]
    assert [second.state, *(part.state for part in parts)] == [
        BatchState.SPLIT, BatchState.QUEUED, BatchState.QUEUED
    ]  # fmt: skip


def test_last_error_is_that_of_the_oldest_batch_with_one() -> None:
    registry = Registry(3)
    assert registry.incomplete.last_error() is None
    registry.batches[2].last_error = NotLeaderOrFollowerError("third")
    registry.batches[1].last_error = NotLeaderOrFollowerError("second")
    assert str(registry.incomplete.last_error()) == "second"


def test_wait_ends_with_the_last_of_the_present_batches() -> None:
    registry = Registry(2)
    clock = registry.parts.clock
    registry.parts.complete_after(10, registry.batches[1].result, 0)
    registry.parts.complete_after(30, registry.batches[0].result, 0)
    started_ms = clock.now_ms
    run_steps(registry.incomplete.wait(started_ms + 1_000), clock)
    assert clock.now_ms == started_ms + 30
    assert list(registry.incomplete.wait(started_ms + 1_000)) == []


def test_wait_ignores_batches_that_are_added_later() -> None:
    registry = Registry(1)
    clock = registry.parts.clock

    def complete() -> None:
        registry.incomplete.add(registry.parts.batch(b"later"))
        registry.batches[0].result.complete(0, -1)

    clock.after(10, complete)
    run_steps(registry.incomplete.wait(clock.now_ms + 1_000), clock)
    assert len(registry.incomplete) == 2


def test_wait_times_out_with_the_number_of_records() -> None:
    registry = Registry(2)
    clock = registry.parts.clock
    with pytest.raises(KafkaTimeoutError, match="flush: 4 records have no outcome yet"):
        run_steps(registry.incomplete.wait(clock.now_ms + 50), clock)


def test_closed_registry_refuses_new_batches() -> None:
    registry = Registry(1)
    registry.incomplete.close()
    refused = registry.parts.batch(b"x")
    with pytest.raises(ClosedError):
        registry.incomplete.add(refused)
    assert refused.state is BatchState.NEW
    assert registry.incomplete.all() == registry.batches
