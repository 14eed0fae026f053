"""Outcome of a request for a transactional id: what is logged, and what is responded."""

from typing import NamedTuple

from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.common.errors import KafkaError
from kclient.record import ProducerIdAndEpoch


class Decision(NamedTuple):
    """Outcome of a request.

    Attributes:
        producer: Producer id and epoch of the response.
        transition: Metadata to log before the response; None where nothing changes.
        error: Error to respond with once the transition is logged, or None.
    """

    producer: ProducerIdAndEpoch
    transition: TransactionMetadata | None = None
    error: KafkaError | None = None
