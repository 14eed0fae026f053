"""Handling of Produce responses: complete, retry, split or fail each batch."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse
from kclient.client.metadata import LeaderIdAndEpoch
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    InvalidRecordError,
    LeaderNotAvailableError,
    NetworkError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    PolicyViolationError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedCompressionTypeError,
    UnsupportedForMessageFormatError,
    error_of_code,
)
from kclient.common.denials import WRITE, topics_denied
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import Node
from kclient.producer.append_outcome import AppendOutcome, append_outcome
from kclient.producer.batch_state import BatchEvent, BatchState, EarlierAttempts
from kclient.producer.errors import DeliveryTimeoutError, possibly_written
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.record_tracer import RecordTracer
from kclient.producer.sequence_manager import SequenceManager
from kclient.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

_OFTEN_TOO_LARGE = 1_000_000
"""Bytes of a batch above which some services close the connection."""

_ACKNOWLEDGED = BatchEvent.ACKNOWLEDGED
_NO_RESPONSE = PartitionProduceResponse(base_offset=-1)


class PartitionError(NamedTuple):
    """Error of a batch that may not have been appended.

    Attributes:
        error: Error of the partition or of the request.
        partition: The partition's part of the response, if there is one.
        nodes: Brokers named in the response.
    """

    error: KafkaError
    partition: PartitionProduceResponse = _NO_RESPONSE
    nodes: Sequence[Node] = ()


Results = tuple[
    dict[ProducerBatch, PartitionProduceResponse], list[tuple[ProducerBatch, PartitionError]]
]
"""The batches of a request that were appended, and those with an error."""


class ProduceResponseHandler:
    """Completes the batches of Produce requests (Kafka: Sender.handleProduceResponse).

    Only the sender's thread calls it.

    Attributes:
        tracer: Receives each batch before its callbacks run, or None; set by any thread.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: ProducerMetadata,
        transactions: SequenceManager | None,
        metrics: ProducerMetrics,
        retries: int,
        *,
        acks: int,
        keep_order: bool,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._accumulator = accumulator
        self._incomplete = accumulator.incomplete
        self._metadata = metadata
        self._transactions = transactions
        self._metrics = metrics
        self._retries = retries
        self._acks = acks
        self._keep_order = keep_order
        self.tracer: RecordTracer | None = None

    def handle(self, builder: ProduceRequestBuilder, response: ClientResponse) -> None:
        """Handle every batch of a completed request."""
        now_ms = response.received_ms
        if self._transactions is not None:
            self._transactions.returned(builder.batches)
        body = response.response
        appended, failed = _results_by_batch(builder, response)
        self._accumulator.deallocate(*appended)  # before their callbacks, which may send
        self._succeed(appended, now_ms)
        self._incomplete.remove(appended)  # a flush that does not find them need not wait
        for batch, result in failed:
            self._complete(batch, result, now_ms)
        if self._keep_order:
            for batch in builder.batches:
                self._accumulator.mute(batch.topic_partition, muted=False)
        if isinstance(body, ProduceResponse):
            throttle_ms = max(body.throttle_time_ms, 0)
            self._metrics.request_completed(response.latency_ms, throttle_ms, now_ms)

    def _complete(self, batch: ProducerBatch, result: PartitionError, now_ms: float) -> None:
        """Handle an error."""
        error = result.error
        if self.tracer is not None:
            self.tracer.completing(batch, now_ms)
        outcome = append_outcome(error, self._acks, idempotent=self._transactions is not None)
        if outcome is AppendOutcome.WRITTEN:
            self._succeed({batch: result.partition}, now_ms)
        else:
            batch.request_failed(outcome)
        if batch.state is BatchState.DONE:  # written, or it expired while it was in flight
            self._accumulator.finish(batch)
        elif isinstance(error, RecordTooLargeError) and batch.record_count > 1:
            self._split(batch, now_ms)
        elif self._may_retry(batch, error, result.partition.log_start_offset, now_ms):
            self._log.warning("%s: retrying after: %s", batch.topic_partition, error)
            self._metrics.retried(batch, now_ms)
            batch.last_error = error
            self._accumulator.reenqueue(batch, now_ms)
        else:
            self._give_up(batch, error, result.partition, now_ms)
        if error.invalid_metadata:
            self._refresh_metadata(batch, error, result, now_ms)

    def _succeed(
        self, appended: Mapping[ProducerBatch, PartitionProduceResponse], now_ms: float
    ) -> None:
        tracer, transactions = self.tracer, self._transactions
        for batch, partition in appended.items():
            if tracer is not None:
                tracer.completing(batch, now_ms)
            if transactions is not None:
                transactions.completed(batch, partition.base_offset)
            batch.apply(_ACKNOWLEDGED)
            batch.result.complete(partition.base_offset, partition.log_append_time_ms)

    def _split(self, batch: ProducerBatch, now_ms: float) -> None:
        parts = batch.split(self._accumulator.new_result)
        if self._transactions is not None:
            self._transactions.split(batch, parts)
        self._accumulator.requeue_parts(batch, parts)
        self._metrics.split(now_ms)

    def _split_off_rejected(
        self, batch: ProducerBatch, errors: dict[int, KafkaError], now_ms: float
    ) -> None:
        """Fail the rejected records and retry the others without them."""
        parts, rejected = batch.split_off_rejected(errors, self._accumulator.new_result)
        if self._transactions is not None:
            self._transactions.split_off_rejected(batch, parts, next(iter(errors.values())))
        self._accumulator.requeue_parts(batch, parts)
        self._metrics.records_failed(len(errors), now_ms)
        for result, own_errors in rejected:
            result.fail(next(iter(own_errors.values())), own_errors)

    def _give_up(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        partition: PartitionProduceResponse,
        now_ms: float,
    ) -> None:
        records = _record_errors(batch, partition)
        if 0 < len(records) < batch.record_count and not batch.possibly_written():
            self._split_off_rejected(batch, records, now_ms)
        elif error.retriable and self._incomplete.is_expired(batch, now_ms):
            batch.last_error = error
            self.expire([batch], None, now_ms)
        else:
            self.fail(batch, _explained(batch, error, records), now_ms, records)

    def _may_retry(
        self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, now_ms: float
    ) -> bool:
        if self._incomplete.is_expired(batch, now_ms) or batch.attempts >= self._retries:
            return False
        if self._transactions is None:
            return error.retriable
        return self._transactions.may_retry(batch, error, log_start_offset)

    def fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        now_ms: float,
        record_errors: dict[int, KafkaError] | None = None,
    ) -> None:
        """Fail a batch."""
        outcome_unknown = batch.possibly_written()
        if batch.is_in_doubt():
            error = possibly_written(error)
            record_errors = {
                index: possibly_written(each) for index, each in (record_errors or {}).items()
            }
        if self._transactions is not None:
            if outcome_unknown and batch.has_sequence:
                self._transactions.mark_unresolved(batch)
            self._transactions.failed(batch, error, sequence_unused=not outcome_unknown)
        self._metrics.records_failed(batch.record_count, now_ms)
        batch.fail(error, record_errors)
        self._accumulator.finish(batch)

    def fail_overtaken(self, now_ms: float) -> None:
        """Fail batches that could only be written out of order."""
        if self._transactions is not None:
            for batch in self._transactions.overtaken():
                self._accumulator.unqueue([batch])
                self.fail(batch, _explained(batch, OutOfOrderSequenceError(), {}), now_ms)

    def expire(
        self, batches: Iterable[ProducerBatch], blocking_error: KafkaError | None, now_ms: float
    ) -> None:
        """Fail batches that are older than ``delivery.timeout.ms``.

        Args:
            batches: The batches.
            blocking_error: Error that kept all batches from being sent, if there is one.
            now_ms: Current time.
        """
        limit_ms = self._incomplete.delivery_timeout_ms
        for batch in batches:
            written = batch.is_in_doubt()
            log_state = (
                "they were sent, and the broker may hold them although it did not confirm it"
                if written
                else "they were not written"
            )
            cause = batch.last_error or blocking_error or self._without_leader(batch)
            last = "" if cause is None else f"; the last error was: {cause}"
            error = DeliveryTimeoutError(
                f"{batch.record_count} record(s) for {batch.topic_partition}: no acknowledgement "
                f"within delivery.timeout.ms={limit_ms:.0f}; {log_state}{last}"
                f"{_size_hint(batch, cause)}",
                possibly_written=written,
            )
            error.__cause__ = cause
            self.fail(batch, error, now_ms)

    def _without_leader(self, batch: ProducerBatch) -> KafkaError | None:
        if self._metadata.cluster().leader_for(batch.topic_partition) is not None:
            return None
        return LeaderNotAvailableError(f"{batch.topic_partition} has no leader")

    def _refresh_metadata(
        self, batch: ProducerBatch, error: KafkaError, result: PartitionError, now_ms: float
    ) -> None:
        leader = result.partition.current_leader
        moved = isinstance(error, FencedLeaderEpochError | NotLeaderOrFollowerError)
        if moved and leader.leader_id >= 0 and leader.leader_epoch >= 0:
            changed = {
                batch.topic_partition: LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
            }
            if self._metadata.update_partition_leadership(changed, result.nodes):
                batch.retry_at_ms = now_ms  # another broker: no backoff (KIP-951)
        self._metadata.request_update(cluster_changed=True)


def _results_by_batch(builder: ProduceRequestBuilder, response: ClientResponse) -> Results:
    """Return the results; a partition missing from the response is a NetworkError."""
    error = response.version_mismatch or response.error
    if error is not None:
        if response.was_disconnected and not isinstance(error, DisconnectedError):
            error = _disconnected(error)
        return {}, [(batch, PartitionError(error)) for batch in builder.batches]
    body = response.response
    if not isinstance(body, ProduceResponse):  # acks=0: there is no response
        return dict.fromkeys(builder.batches, _NO_RESPONSE), []
    if len(builder.batches) == 1 and (own := _of_single(builder, body)) is not None:
        return {builder.batches[0]: own}, []
    by_partition = _by_partition(builder, body)
    appended: dict[ProducerBatch, PartitionProduceResponse] = {}
    failed: list[tuple[ProducerBatch, PartitionError]] = []
    for batch in builder.batches:
        partition = by_partition.get(batch.topic_partition)
        if partition is None:
            missing = NetworkError(f"the broker's response left out {batch.topic_partition}")
            failed.append((batch, PartitionError(missing)))
        elif partition.error_code:
            failed.append((batch, _partition_error(partition, body)))
        else:
            appended[batch] = partition
    return appended, failed


def _partition_error(partition: PartitionProduceResponse, body: ProduceResponse) -> PartitionError:
    nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in body.node_endpoints]
    error = error_of_code(partition.error_code, partition.error_message)
    return PartitionError(error, partition, nodes)


def _disconnected(error: KafkaError) -> DisconnectedError:
    lost = DisconnectedError(str(error))
    lost.__cause__ = error
    return lost


def _of_single(
    builder: ProduceRequestBuilder, body: ProduceResponse
) -> PartitionProduceResponse | None:
    """Return the partition of a response that acknowledges a single batch, by topic id.

    It returns None for any other response; most requests of a busy producer have several batches.
    """
    topics = body.responses
    if len(topics) != 1 or len(topics[0].partition_responses) != 1:
        return None
    topic, partition = builder.batches[0].topic_partition
    found = topics[0].partition_responses[0]
    if topics[0].topic_id != builder.topic_ids[topic] or topics[0].name:
        return None
    return found if found.index == partition and not found.error_code else None


def _by_partition(
    builder: ProduceRequestBuilder, body: ProduceResponse
) -> dict[tuple[str, int], PartitionProduceResponse]:
    names = dict(zip(builder.topic_ids.values(), builder.topic_ids, strict=True))
    found: dict[tuple[str, int], PartitionProduceResponse] = {}
    for topic in body.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            found.setdefault((name, partition.index), partition)  # equals a TopicPartition
    return found


def _record_errors(
    batch: ProducerBatch, partition: PartitionProduceResponse
) -> dict[int, KafkaError]:
    """Return the errors of the records that the broker rejected, by their index in the batch.

    The response has one error code for the whole batch. Where it names a single record, the code is
    that record's; where it names several, they may differ, and each is an InvalidRecordError with
    its own message (Kafka: Sender.failBatch).
    """
    kind: type[KafkaError] | None = InvalidRecordError
    if len(partition.record_errors) == 1:
        kind = KafkaError.by_code(partition.error_code)
    errors = {}
    for each in partition.record_errors:
        if 0 <= each.batch_index < batch.record_count:
            error = (kind or UnknownServerError)(
                each.batch_index_error_message
                or partition.error_message
                or "the broker rejected this record"
            )
            error.batch_index = each.batch_index
            errors[each.batch_index] = error
    return errors


def _size_hint(batch: ProducerBatch, cause: KafkaError | None) -> str:
    size = batch.size_in_bytes
    if not isinstance(cause, DisconnectedError) or size < _OFTEN_TOO_LARGE:
        return ""
    return (
        f"; the batch has {size} bytes, and some services close the connection if a request is "
        "larger than about 1 MB: reduce max.request.size, which limits records and requests"
    )


_CODEC_REFUSED = (
    "the broker refuses the configured compression.type; some services accept gzip alone, or no "
    "compression"
)
_EXPLANATIONS: dict[type[KafkaError], str] = {
    PolicyViolationError: "a policy of the cluster refuses the records; some services return this "
    "error if a producer exceeds its quota for too long",
    UnsupportedCompressionTypeError: _CODEC_REFUSED,
    UnsupportedForMessageFormatError: _CODEC_REFUSED,
}


def _explained(
    batch: ProducerBatch, error: KafkaError, record_errors: dict[int, KafkaError]
) -> KafkaError:
    """Return the error with context that the broker does not have."""
    if record_errors:
        return InvalidRecordError(
            f"{batch.topic_partition}: the record was in a batch with {len(record_errors)} that "
            f"the broker rejected: {error}"
        )
    if isinstance(error, RecordTooLargeError):
        return RecordTooLargeError(
            f"{batch.topic_partition}: a record makes a batch of {batch.size_in_bytes} bytes, more "
            "than the topic's max.message.bytes or the broker's message.max.bytes"
        )
    if isinstance(error, TopicAuthorizationError):
        return topics_denied((batch.topic_partition.topic,), WRITE)
    explanation = _EXPLANATIONS.get(type(error))
    if explanation is not None:
        return type(error)(f"{batch.topic_partition}: {error}: {explanation}")
    return _out_of_order(batch) if isinstance(error, OutOfOrderSequenceError) else error


def _out_of_order(batch: ProducerBatch) -> KafkaError:
    if batch.earlier_attempts is EarlierAttempts.UNKNOWN_WHOLE:
        return RecordTooLargeError(
            f"{batch.topic_partition}: a batch was too large when it was retried "
            "(was max.message.bytes lowered?), after its first response was lost; the broker "
            "cannot deduplicate its parts"
        )
    return OutOfOrderSequenceError(
        f"{batch.topic_partition}: the broker lost the state of this producer and appended "
        "later records first; writing these after them would break the order"
    )
