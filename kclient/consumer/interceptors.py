"""Objects that see every record handed out and every commit."""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.consumer.drive_lock import RunUserCode

_log = logging.getLogger(__name__)


class ConsumerInterceptor(Protocol):
    """What ``interceptor.classes`` takes (Kafka: ConsumerInterceptor, KIP-42)."""

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        """Return the records to hand out; runs inside `poll`."""
        ...

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """See what was committed."""
        ...

    def close(self) -> None:
        """Let go of resources; the consumer was closed."""
        ...


class ConsumerInterceptors:
    """A chain of interceptors; what they raise is logged and goes no further."""

    def __init__(
        self, interceptors: Sequence[ConsumerInterceptor], run_user_code: RunUserCode
    ) -> None:
        self._interceptors = tuple(interceptors)
        self._run_user_code = run_user_code

    def __len__(self) -> int:
        return len(self._interceptors)

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        """Pass records through the chain; one that raises is left out of it."""
        return self._run_user_code(lambda: self._on_consume(records))

    def _on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        for interceptor in self._interceptors:
            try:
                records = interceptor.on_consume(records)
            except Exception:  # noqa: BLE001 (a user's object must not stop the consuming)
                _log.exception("%r: on_consume raised", interceptor)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Show a commit to each."""
        if self._interceptors:
            self._run_user_code(lambda: self._on_commit(offsets))

    def _on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:  # noqa: BLE001 (as above)
                _log.exception("%r: on_commit raised", interceptor)

    def close(self) -> None:
        """Close each."""
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:  # noqa: BLE001 (as above)
                _log.exception("%r: close raised", interceptor)
