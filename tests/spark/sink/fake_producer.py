"""Fake producer whose outcomes are completed by the test."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.producer.producer import Producer


class FakeOutcome:
    """The outcome of one call; unknown until `complete`."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.known = False

    def complete(self, error: KafkaError | None = None) -> None:
        self.error, self.known = error, True

    def done(self) -> bool:
        return self.known

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        assert self.known, f"the outcome is not known yet; timeout {timeout} s"
        return self.error


class FakeProducer:
    """Records the calls.

    Attributes:
        sent: Name and arguments of each call.
        outcomes: Outcome of each call.
        on_send: Called first by each call; may raise.
        broken: Error that `flush` raises.
        fails: Error with which `flush` completes unknown outcomes.
        at_once: Whether outcomes are known at once.
        closes: Timeouts of the calls of `close`.
    """

    def __init__(self, config: Mapping[str, object] | None = None) -> None:
        self.config = dict(config or {})
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.outcomes: list[FakeOutcome] = []
        self.on_send: Callable[[], None] = lambda: None
        self.broken: KafkaError | None = None
        self.fails: KafkaError | None = None
        self.at_once = False
        self.flushes: list[float | None] = []
        self.closes: list[float | None] = []

    @property
    def as_producer(self) -> Producer[bytes, bytes]:
        """This object, with the type that the sink expects."""
        return cast("Producer[bytes, bytes]", self)

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
    ) -> FakeOutcome:
        return self._record(
            "send", topic=topic, value=value, key=key, headers=headers, partition=partition
        )

    def send_many(
        self, topic: str, values: list[bytes | None], keys: list[bytes | None] | None = None
    ) -> FakeOutcome:
        return self._record("send_many", topic=topic, values=values, keys=keys)

    def send_arrow(self, topic: str | None, batch: pa.RecordBatch) -> FakeOutcome:
        return self._record("send_arrow", topic=topic, batch=batch)

    def _record(self, call: str, **arguments: Any) -> FakeOutcome:
        self.on_send()
        self.sent.append((call, arguments))
        self.outcomes.append(FakeOutcome())
        if self.at_once:
            self.outcomes[-1].complete()
        return self.outcomes[-1]

    def flush(self, timeout: float | None = None) -> None:
        self.flushes.append(timeout)
        if self.broken is not None:
            raise self.broken
        if timeout == 0:
            if not all(outcome.known for outcome in self.outcomes):
                raise KafkaTimeoutError("some have no outcome")
            return
        for outcome in self.outcomes:
            if not outcome.known:
                outcome.complete(self.fails)

    def close(self, timeout: float | None = None) -> None:
        self.closes.append(timeout)

    @property
    def closed(self) -> bool:
        return bool(self.closes)
