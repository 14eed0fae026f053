"""What all calls of a consumer have in common: who may call, and how long it may take."""

from collections.abc import Iterator
from contextlib import contextmanager

from kclient.common.errors import ClosedError, IllegalStateError
from kclient.consumer.arguments import check_timeout
from kclient.consumer.consumer_parts import ConsumerParts
from kclient.consumer.coordinator.consumer_coordinator import ConsumerCoordinator
from kclient.record import ConsumerRecord


class ConsumerBase:
    """Holds the parts; every public call goes through `_call`."""

    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._closed = False
        self._may_commit_last = True
        # Records taken for the iteration; those from _next_in_hand on were not handed out yet.
        self._in_hand: list[ConsumerRecord] = []
        self._next_in_hand = 0

    @contextmanager
    def _call(self) -> Iterator[ConsumerParts]:
        """Keep other threads and the heartbeat loop out while the call lasts."""
        self._enter()
        try:
            yield self._parts
        finally:
            self._parts.seat.give_up()

    def _enter(self) -> None:
        """Begin a call; `seat.give_up` must follow."""
        self._parts.seat.take()
        if self._closed:
            self._parts.seat.give_up()
            raise ClosedError("this consumer was closed")
        if self._in_hand:
            self._put_back()

    def _put_back(self) -> None:
        """Give back what the iteration took and has not handed out."""
        records, index = self._in_hand, self._next_in_hand
        self._in_hand, self._next_in_hand = [], 0
        if index < len(records):
            self._parts.collector.unread(records[index:])

    def _deadline_ms(self, timeout: float | None) -> float:
        """Return the time by which a call must be over, ``default.api.timeout.ms`` for None."""
        default_ms = self._parts.config.values["default_api_timeout_ms"]
        timeout_ms = check_timeout(timeout, default_ms=default_ms)
        return self._parts.runtime.clock.monotonic_ms() + timeout_ms

    def _coordinator(self, what: str) -> ConsumerCoordinator:
        coordinator = self._parts.coordinator
        if coordinator is None:
            raise IllegalStateError(f"{what}: there is no group; create the consumer with group_id")
        return coordinator
