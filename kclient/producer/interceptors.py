"""Interceptors of records before they are sent and of their outcomes."""

from collections.abc import Sequence
from typing import Protocol

from kclient.common.errors import KafkaError
from kclient.common.interceptors import notify
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import RecordMetadata
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.send_arguments import ProducerRecord


class ProducerInterceptor(Protocol):
    """An entry of ``interceptor.classes`` (Kafka: ProducerInterceptor, KIP-42).

    A class that derives from it may define only the methods that it needs.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send, before serialization; runs in the caller's thread."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Receive an outcome; runs in the sender's thread, or in the caller's if `send` raised."""
        return

    def close(self) -> None:
        """Release resources; the producer was closed."""
        return


class ProducerInterceptors:
    """A chain of interceptors; their exceptions are logged and do not propagate."""

    def __init__(
        self,
        interceptors: Sequence[ProducerInterceptor],
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._interceptors = tuple(interceptors)
        self._wrong: set[int] = set()  # positions of those that did not return a record

    def __len__(self) -> int:
        return len(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Pass a record through the chain; one that raises, or returns no record, is skipped."""
        for position, interceptor in enumerate(self._interceptors):
            try:
                returned: object = interceptor.on_send(record)
            except Exception:  # noqa: BLE001 (an interceptor must not stop the send)
                self._log.exception("%r: on_send raised", interceptor)
                continue
            if isinstance(returned, ProducerRecord):
                record = returned
            elif position not in self._wrong:
                self._wrong.add(position)
                self._log.error(
                    "%r: on_send returned %s, expected a ProducerRecord; records are sent as "
                    "they were before it (logged once)",
                    interceptor,
                    type(returned).__name__,
                )
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Call `on_acknowledgement` of each."""
        notify(self._log, (each.on_acknowledgement for each in self._interceptors), metadata, error)

    def before(self, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """Return a callback that calls each `on_acknowledgement`, then `on_delivery`."""
        if not self._interceptors or on_delivery is None:
            return self.on_acknowledgement if self._interceptors else on_delivery
        last = on_delivery

        def both(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self.on_acknowledgement(metadata, error)
            last(metadata, error)

        return both

    def close(self) -> None:
        """Close each."""
        notify(self._log, (each.close for each in self._interceptors))
