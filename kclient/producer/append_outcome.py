"""Table of every error code of a Produce response: may the log hold the batch after it?

Sources are Apache Kafka 4.x: ``ReplicaManager.appendRecords`` validates a batch, appends it to the
leader's log and, for acks=all, waits for the followers (``DelayedProduce``). A code that is only
raised before the append proves that this request wrote nothing. A code that can also be raised
during the append or while the followers are awaited proves nothing: the next leader may have
fetched the batch.
"""

from enum import Enum
from typing import NamedTuple

from kclient.common.broker_errors import (
    ClusterAuthorizationError,
    ConcurrentTransactionsError,
    CorruptRecordError,
    DuplicateSequenceError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTxnStateError,
    KafkaStorageError,
    NetworkError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RequestTimedOutError,
    TopicAuthorizationError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    UnsupportedVersionError,
)
from kclient.common.errors import KafkaError

ALL_REPLICAS = -1
"""The value of acks=all in a Produce request."""


class AppendOutcome(Enum):
    """Conclusion about a batch from the end of its Produce request.

    Attributes:
        WRITTEN: The leader has the batch in its log.
        NOT_WRITTEN: This request wrote nothing; an earlier one with the same batch may have.
        NEVER_WRITTEN: Neither this request nor an earlier one wrote the batch, unless the broker
            has accepted a later batch of the producer.
        UNKNOWN: The log may hold the batch.
    """

    WRITTEN = "yes"
    NOT_WRITTEN = "no"
    NEVER_WRITTEN = "no, nor by an earlier attempt unless a later batch was accepted"
    UNKNOWN = "possibly"


class AppendRow(NamedTuple):
    """The outcomes of one error.

    Attributes:
        leader_only: With acks=1, where the response is sent right after the append. With acks=0 no
            response is sent; connection errors have the same outcome.
        all_replicas: With acks=all, where the response waits for the followers.
        reason: When Apache Kafka returns the code.
        idempotent: With idempotence, if it differs.
    """

    leader_only: AppendOutcome
    all_replicas: AppendOutcome
    reason: str
    idempotent: AppendOutcome | None = None


def _before_append(reason: str) -> AppendRow:
    return AppendRow(AppendOutcome.NOT_WRITTEN, AppendOutcome.NOT_WRITTEN, reason)


def _either_side(reason: str) -> AppendRow:
    return AppendRow(AppendOutcome.NOT_WRITTEN, AppendOutcome.UNKNOWN, reason)


def _unknown(reason: str) -> AppendRow:
    return AppendRow(AppendOutcome.UNKNOWN, AppendOutcome.UNKNOWN, reason)


_VALIDATION = "the batch failed validation before the append (LogValidator, UnifiedLog.append)"
_REQUEST_CHECK = "the request was rejected before the append (KafkaApis.handleProduceRequest)"
_PRODUCER_STATE = "the producer's state was checked before the append (ProducerAppendInfo)"
_TRANSACTION_CHECK = "the transaction was verified before the append (AddPartitionsToTxnManager)"

APPEND_TABLE: dict[type[KafkaError], AppendRow] = {
    UnknownServerError: _unknown("an unexpected exception, before, during or after the append"),
    CorruptRecordError: _before_append(_VALIDATION),
    UnknownTopicOrPartitionError: _either_side(
        "the partition is not on this broker: found before the append, or while the followers were "
        "awaited (DelayedProduce, case A: the topic was deleted)"
    ),
    NotLeaderOrFollowerError: _either_side(
        "this broker does not lead the partition: found before the append, or while the followers "
        "were awaited (DelayedProduce, cases A and B); the new leader may have the batch"
    ),
    RequestTimedOutError: _unknown(
        "the followers did not fetch the batch in time (DelayedProduce expired); the leader has it"
    ),
    RecordTooLargeError: _before_append(_VALIDATION),
    NetworkError: _unknown("the connection failed; the broker may have handled the request"),
    InvalidTopicError: _before_append("records for an internal topic (ReplicaManager)"),
    RecordBatchTooLargeError: _before_append(_VALIDATION),
    NotEnoughReplicasError: _before_append(
        "fewer in-sync replicas than min.insync.replicas before the append "
        "(Partition.appendRecordsToLeader)"
    ),
    NotEnoughReplicasAfterAppendError: _unknown(
        "fewer in-sync replicas than min.insync.replicas after the append "
        "(Partition.checkEnoughReplicasReachOffset); the leader has the batch"
    ),
    InvalidRequiredAcksError: _before_append(_REQUEST_CHECK),
    TopicAuthorizationError: _before_append(_REQUEST_CHECK),
    ClusterAuthorizationError: _before_append(_REQUEST_CHECK),
    InvalidTimestampError: _before_append(_VALIDATION),
    UnsupportedVersionError: _before_append("no version of the request can be sent or handled"),
    UnsupportedForMessageFormatError: _before_append(_VALIDATION),
    OutOfOrderSequenceError: AppendRow(
        AppendOutcome.NOT_WRITTEN,
        AppendOutcome.NOT_WRITTEN,
        "the batch does not follow the last one of the producer (ProducerAppendInfo); a broker "
        "that has the batch recognizes it as a duplicate, unless it was shut down since: then it "
        "knows only the last batch (ProducerStateManager.takeSnapshot)",
        idempotent=AppendOutcome.NEVER_WRITTEN,
    ),
    DuplicateSequenceError: AppendRow(
        AppendOutcome.WRITTEN, AppendOutcome.WRITTEN, "the log already holds the batch"
    ),
    InvalidProducerEpochError: _before_append(_PRODUCER_STATE),
    InvalidTxnStateError: _before_append(_TRANSACTION_CHECK),
    InvalidPidMappingError: _before_append(_TRANSACTION_CHECK),
    ConcurrentTransactionsError: _before_append(_TRANSACTION_CHECK),
    TransactionalIdAuthorizationError: _before_append(_REQUEST_CHECK),
    KafkaStorageError: _unknown(
        "an I/O error during the append, or the log directory went offline while the followers "
        "were awaited (DelayedProduce, case A); the file or a follower may hold the batch"
    ),
    UnknownProducerIdError: _before_append(_PRODUCER_STATE),
    UnsupportedCompressionTypeError: _before_append(_VALIDATION),
    InvalidRecordError: _before_append(_VALIDATION),
    ProducerFencedError: _before_append(_PRODUCER_STATE),
    UnknownTopicIdError: _before_append("no topic has this id (KafkaApis.handleProduceRequest)"),
    TransactionAbortableError: _before_append(_TRANSACTION_CHECK),
}  # fmt: skip

_NOT_A_PRODUCE_ERROR = _unknown("no code of a Produce response")


def append_outcome(error: KafkaError | None, acks: int, *, idempotent: bool) -> AppendOutcome:
    """Return what the end of a Produce request proves about its batch.

    An error that is not in the table, such as a lost connection or an unknown code, proves nothing.

    Args:
        error: The partition's error or that of the whole request; None for success.
        acks: 0, 1, or -1 for all.
        idempotent: Whether the batch had a producer id and a sequence.
    """
    if error is None:
        return AppendOutcome.WRITTEN
    row = APPEND_TABLE.get(type(error), _NOT_A_PRODUCE_ERROR)
    if idempotent and row.idempotent is not None:
        return row.idempotent
    return row.all_replicas if acks == ALL_REPLICAS else row.leader_only
