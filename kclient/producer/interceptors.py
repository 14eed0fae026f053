"""Objects that see every record on its way out and every outcome."""

from collections.abc import Sequence
from typing import Protocol

from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import RecordMetadata
from kclient.producer.produce_request_result import OnDelivery
from kclient.producer.producer_record import ProducerRecord


class ProducerInterceptor(Protocol):
    """What ``interceptor.classes`` takes (Kafka: ProducerInterceptor, KIP-42)."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send, before serialization; runs in the caller's thread."""
        ...

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """See an outcome; runs in the sender's thread, and in the caller's where `send` raised."""
        ...

    def close(self) -> None:
        """Let go of resources; the producer was closed."""
        ...


class ProducerInterceptors:
    """A chain of interceptors; what they raise is logged and goes no further."""

    def __init__(
        self,
        interceptors: Sequence[ProducerInterceptor],
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._interceptors = tuple(interceptors)

    def __len__(self) -> int:
        return len(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Pass a record through the chain; one that raises is left out of it."""
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:  # noqa: BLE001 (a user's object must not stop the sending)
                self._log.exception("%r: on_send raised", interceptor)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        """Show an outcome to each."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:  # noqa: BLE001 (as above)
                self._log.exception("%r: on_acknowledgement raised", interceptor)

    def before(self, on_delivery: OnDelivery | None) -> OnDelivery | None:
        """Return a callback that shows an outcome to each, and then to `on_delivery`."""
        if not self._interceptors or on_delivery is None:
            return self.on_acknowledgement if self._interceptors else on_delivery
        last = on_delivery

        def both(metadata: RecordMetadata | None, error: KafkaError | None) -> None:
            self.on_acknowledgement(metadata, error)
            last(metadata, error)

        return both

    def close(self) -> None:
        """Close each."""
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:  # noqa: BLE001 (as above)
                self._log.exception("%r: close raised", interceptor)
