"""A producer that settles what it is told to, when it is told to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kclient.common.errors import KafkaError, KafkaTimeoutError


class FakeOutcome:
    """The outcome of one call; unknown until `settle`."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.known = False

    def settle(self, error: KafkaError | None = None) -> None:
        self.error, self.known = error, True

    def done(self) -> bool:
        return self.known

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        assert self.known, f"nobody would have waited {timeout} s for an outcome not known"
        return self.error


class FakeProducer:
    """Keeps what it is given.

    Attributes:
        sent: Every call: its name and arguments.
        outcomes: Their outcomes.
        on_send: Called before a call is taken; it may raise.
        broken: What `flush` raises.
        fails: The error that `flush` settles each outcome with which is not known.
        at_once: Whether outcomes are known at once.
        closes: The timeouts that `close` was called with.
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

    def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
    ) -> FakeOutcome:
        return self._take(
            "send", topic=topic, value=value, key=key, headers=headers, partition=partition
        )

    def send_many(
        self, topic: str, values: list[bytes | None], keys: list[bytes | None] | None = None
    ) -> FakeOutcome:
        return self._take("send_many", topic=topic, values=values, keys=keys)

    def send_arrow(self, topic: str | None, batch: pa.RecordBatch) -> FakeOutcome:
        return self._take("send_arrow", topic=topic, batch=batch)

    def _take(self, call: str, **arguments: Any) -> FakeOutcome:
        self.on_send()
        self.sent.append((call, arguments))
        self.outcomes.append(FakeOutcome())
        if self.at_once:
            self.outcomes[-1].settle()
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
                outcome.settle(self.fails)

    def close(self, timeout: float | None = None) -> None:
        self.closes.append(timeout)

    @property
    def closed(self) -> bool:
        return bool(self.closes)
