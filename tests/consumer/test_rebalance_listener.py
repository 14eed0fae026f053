"""Callbacks of `subscribe`: which of them runs, and which values are accepted."""

import pytest

from kclient.common.errors import InvalidTypeError
from kclient.consumer.rebalance_listener import RebalanceListener
from tests.consumer.conftest import ORDERS_0, ORDERS_1


def test_each_event_calls_its_callback() -> None:
    calls: list[tuple[str, object]] = []
    listener = RebalanceListener(
        on_assigned=lambda given: calls.append(("assigned", given)),
        on_revoked=lambda given: calls.append(("revoked", given)),
        on_lost=lambda given: calls.append(("lost", given)),
    )
    listener.assigned([ORDERS_0])
    listener.revoked([ORDERS_1])
    listener.lost([ORDERS_0, ORDERS_1])
    assert calls == [
        ("assigned", [ORDERS_0]),
        ("revoked", [ORDERS_1]),
        ("lost", [ORDERS_0, ORDERS_1]),
    ]


def test_lost_partitions_are_reported_as_revoked_without_on_lost() -> None:
    calls: list[object] = []
    RebalanceListener(on_revoked=calls.append).lost([ORDERS_0])
    assert calls == [[ORDERS_0]]


def test_missing_callbacks_are_skipped() -> None:
    calls: list[object] = []
    listener = RebalanceListener(on_assigned=calls.append)
    listener.revoked([ORDERS_0])
    listener.lost([ORDERS_0])
    RebalanceListener(on_lost=calls.append).revoked([ORDERS_0])
    assert calls == []


async def coroutine(partitions: object) -> None: ...


@pytest.mark.parametrize("name", ["on_assigned", "on_revoked", "on_lost"])
def test_values_that_cannot_be_called_are_refused(name: str) -> None:
    with pytest.raises(InvalidTypeError, match=f"{name}: got 5 .int., expected a callable"):
        RebalanceListener(**{name: 5})  # type: ignore[arg-type]  # what is refused
    with pytest.raises(InvalidTypeError, match=f"{name}: got the coroutine function"):
        RebalanceListener(**{name: coroutine})  # type: ignore[arg-type]  # one of three names
    listener = RebalanceListener(are_awaited=True, **{name: coroutine})
    assert listener.must_be_awaited() == (name != "on_assigned")
