"""Application with a producer: sends numbered values and records their outcomes."""

from kclient import RecordMetadata
from kclient.common.errors import KafkaError
from kclient.common.waiting import Steps
from kclient.producer.delivery_future import DeliveryFuture
from tests.simulation.accounts import client_of, open_accounts
from tests.simulation.application import CLOSE_S, SERVERS, Application, Stage
from tests.simulation.clients import AsyncProducer, BlockingProducer
from tests.simulation.history import Acked, CalledBack, Crashed, Failed, Refused, Sent
from tests.simulation.scenario import (
    LONGEST_DELIVERY_MS,
    MAX_BLOCK_MS,
    MISSING_TOPIC,
    PADDING,
    REQUEST_TIMEOUT_MS,
    TOPIC,
    WORK_MS,
)

AnyProducer = BlockingProducer | AsyncProducer
_REST_MS = REQUEST_TIMEOUT_MS + 1_000.0
_FLUSH_S = LONGEST_DELIVERY_MS / 1000.0 + 3.0


class ProducerApplication(Application):
    """Producer of values ``<name>-<number>``, padded after PADDING.

    Attributes:
        producer: The client, once it is created.
    """

    def __init__(self, stage: Stage, machine: str, name: str) -> None:
        self.producer: AnyProducer | None = None
        self._outcomes: dict[str, str] = {}
        self._gave_up_on_wire = False
        self._rested = False
        super().__init__(stage, machine, name)

    def run(self) -> Steps[None]:
        """Send everything, wait, and close."""
        scenario = self.stage.scenario
        self.producer = producer = self.stage.clients.producer(
            self.driver.runtime, bootstrap_servers=SERVERS, **scenario.producer
        )
        pace_s = WORK_MS / 1000.0 / scenario.records
        futures: dict[str, DeliveryFuture] = {}
        missing_at = self.lot.randrange(scenario.records) if scenario.names_missing else -1
        for number in range(scenario.records):
            if number == missing_at:
                yield from self._name_missing(producer)
            yield from self._send(producer, number, futures)
            if self.lot.random() < 0.5:
                yield from self.driver.sleep(self.lot.uniform(0.0, 3.0 * pace_s))
            if self.lot.random() < 0.02:
                timeout_s = self.lot.uniform(0.0, 2.0)
                yield from self._flush(producer, timeout_s, timeout_s)
        if not (
            yield from self._flush(producer, _FLUSH_S, self.stage.scenario.delivery_ms / 1000.0)
        ):
            self.note(Crashed, f"flush: records without an outcome after {_FLUSH_S:.0f} s")
        if self.lot.random() < 0.7:
            yield from self._come_to_rest(producer)
        yield from self.timed("close", CLOSE_S, producer.close(CLOSE_S))
        for value, future in futures.items():
            self._compare(value, future)
        left = open_accounts(producer)
        if self._gave_up_on_wire and not self._rested:  # closing does not wait for their responses
            left.pop("bytes of memory", None)
            left.pop("batches in flight", None)
        if any(left.values()):
            self.note(Crashed, f"left after close: {left}")

    def watch(self) -> None:
        """Check the invariants that hold after each step.

        Raises:
            AssertionError: An invariant is violated.
        """
        producer = self.producer
        if producer is None:
            return
        pool = producer._core._accumulator.pool
        out = pool.total - pool._unpooled - pool._kept
        if not 0 <= out <= pool.total:
            raise AssertionError(f"{self.name}: {out} of {pool.total} bytes are allocated")
        for node, waiting in client_of(producer)._in_flight._queues.items():
            count = sum(not each.request.internal for each in waiting)
            if count > self.stage.scenario.in_flight:
                raise AssertionError(f"{self.name}: {count} requests in flight to {node}")

    def _send(
        self, producer: AnyProducer, number: int, futures: dict[str, DeliveryFuture]
    ) -> Steps[None]:
        value = f"{self.name}-{number}"
        padded = value.encode() + self._padding()
        partition = None
        if self.lot.random() < 0.7:
            partition = self.lot.randrange(self.stage.scenario.partitions)
        self.note(Sent, value, number)

        def delivered(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self.note(CalledBack, value)
            self._end(value, metadata, error)

        try:
            futures[value] = yield from self.timed(
                "send",
                MAX_BLOCK_MS / 1000.0,
                producer.send(TOPIC, padded, partition=partition, on_delivery=delivered),
            )
        except KafkaError as error:
            self.note(Refused, value, repr(error))

    def _padding(self) -> bytes:
        if self.stage.scenario.has_large_values:
            # Random, so that compression does not remove it.
            return PADDING + self.lot.randbytes(self.lot.randrange(1_500))
        return PADDING * int(self.lot.paretovariate(1.0) * 10.0 % 400.0)

    def _name_missing(self, producer: AnyProducer) -> Steps[None]:
        try:
            yield from self.timed("send", MAX_BLOCK_MS / 1000.0, producer.send(MISSING_TOPIC, b""))
        except KafkaError:
            return
        self.note(Crashed, "a record for a topic that does not exist was accepted")

    def _end(self, value: str, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if metadata is not None:
            self.note(Acked, value, metadata.partition, metadata.offset)
            self._outcomes[value] = f"{metadata.partition}@{metadata.offset}"
        else:
            written = error is None or error.possibly_written
            self._gave_up_on_wire |= written
            self.note(Failed, value, f"{type(error).__name__}", written)
            self._outcomes[value] = type(error).__name__

    def _flush(self, producer: AnyProducer, timeout_s: float, limit_s: float) -> Steps[bool]:
        """Return whether all records have an outcome within `limit_s` seconds."""
        try:
            yield from self.timed("flush", limit_s, producer.flush(timeout_s))
        except KafkaError as error:
            if not error.retriable:
                self.note(Crashed, f"flush: {type(error).__name__}: {error}")
            return False
        return True

    def _compare(self, value: str, future: DeliveryFuture) -> None:
        """Check that future and callback have the same outcome."""
        if not future.done():
            self.note(Crashed, f"{value} has no outcome after close")
            return
        error = future.exception(0)
        if error is None:
            metadata = future.result(0)
            outcome = f"{metadata.partition}@{metadata.offset}"
        else:
            outcome = type(error).__name__
        if self._outcomes.get(value) != outcome:
            self.note(Crashed, f"{value}: future {outcome}, callback {self._outcomes.get(value)}")

    def _come_to_rest(self, producer: AnyProducer) -> Steps[None]:
        """Check that no work is left after the last response, if all records have an outcome."""
        began_ms = self._own_ms()
        while any(open_accounts(producer).values()):
            if self._own_ms() - began_ms > _REST_MS:
                self.note(Crashed, f"not idle after {_REST_MS} ms: {open_accounts(producer)}")
                return
            yield from self.driver.sleep(0.05)
        self._rested = True
