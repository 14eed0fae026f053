"""Arguments of calls: invalid ones are rejected before the call has an effect."""

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.errors import (
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
)
from kclient.common.types import OffsetAndMetadata
from tests.consumer.conftest import ORDERS_0, ConsumerWorld

NO_TEXT: Any = None


def test_commit_without_group_raises(world: ConsumerWorld) -> None:
    consumer = world.assigned()
    for call in (
        consumer.commit,
        consumer.commit_async,
        consumer.group_metadata,
        lambda: consumer.committed([ORDERS_0]),
    ):
        with pytest.raises(IllegalStateError, match="group_id"):
            call()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({ORDERS_0: -1}, InvalidArgumentError, "offset of orders-0: got -1"),
        ({ORDERS_0: "1"}, InvalidTypeError, "offset of orders-0"),
        ({"orders": 1}, InvalidTypeError, "expected TopicPartition"),
        ({("orders", -1): 1}, InvalidArgumentError, "partition"),
        ({("a/b", 1): 1}, InvalidArgumentError, "topic"),
        ([1], InvalidTypeError, "offsets: got"),
        ({ORDERS_0: OffsetAndMetadata(1, NO_TEXT)}, InvalidTypeError, "metadata"),
    ],
)
def test_invalid_offsets_are_rejected_before_a_request(
    world: ConsumerWorld, given: Any, error: type[Exception], text: str
) -> None:
    consumer = world.assigned(group_id="g")
    with pytest.raises(error, match=text):
        consumer.commit(given)
    assert world.broker.asked == []


@pytest.mark.parametrize("value", [-0.5, float("nan")])
def test_invalid_timeouts_are_rejected(world: ConsumerWorld, value: float) -> None:
    consumer = world.assigned(group_id="g")
    for call in (
        lambda: consumer.poll(value),
        lambda: consumer.poll_columns(value),
        lambda: consumer.commit(timeout=value),
        lambda: consumer.position(ORDERS_0, timeout=value),
        lambda: consumer.close(value),
    ):
        with pytest.raises(InvalidArgumentError, match="timeout"):
            call()


def test_invalid_arguments_are_rejected(world: ConsumerWorld) -> None:
    consumer: Any = world.assigned(group_id="g")  # its types refuse most of these calls
    wrong: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: consumer.poll("1"), InvalidTypeError),
        (lambda: consumer.poll(1.0, max_records=0), InvalidArgumentError),
        (lambda: consumer.poll(1.0, max_records=2.5), InvalidTypeError),
        (lambda: consumer.assign("orders"), InvalidTypeError),
        (lambda: consumer.assign([("orders", "0")]), InvalidTypeError),
        (lambda: consumer.subscribe([None]), InvalidTypeError),
        (lambda: consumer.subscribe(["a b"]), InvalidArgumentError),
        (lambda: consumer.subscribe(pattern="("), InvalidArgumentError),
        (consumer.subscribe, InvalidArgumentError),
        (lambda: consumer.subscribe("a", pattern="b"), InvalidArgumentError),
        (lambda: consumer.subscribe("a", on_assigned=3), InvalidTypeError),
        (lambda: consumer.offsets_for_times({ORDERS_0: -1}), InvalidArgumentError),
        (lambda: consumer.offsets_for_times([1]), InvalidTypeError),
    ]
    for call, error in wrong:
        with pytest.raises(error):
            call()
    assert world.net.connects == []
