"""Id and epoch of a producer, by which brokers recognize its batches."""

from typing import NamedTuple

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


class ProducerIdAndEpoch(NamedTuple):
    """Id and epoch of a producer (Kafka: ProducerIdAndEpoch).

    Attributes:
        producer_id: Producer id, int64; `NO_PRODUCER_ID` if no broker assigned one.
        epoch: Producer epoch, int16; `NO_PRODUCER_EPOCH` without a producer id.
    """

    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        """Whether a broker assigned this id."""
        return self.producer_id != NO_PRODUCER_ID


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
