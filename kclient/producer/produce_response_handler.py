"""Decides what becomes of batches that come back: done, once more, in pieces, or given up."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kclient.client.client_response import ClientResponse
from kclient.client.metadata import LeaderIdAndEpoch
from kclient.client.producer_metadata import ProducerMetadata
from kclient.common.broker_errors import (
    FencedLeaderEpochError,
    InvalidRecordError,
    LeaderNotAvailableError,
    NetworkError,
    NotLeaderOrFollowerError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    TopicAuthorizationError,
    UnknownServerError,
    error_for_code,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.types import Node, TopicPartition
from kclient.producer.append_outcome import AppendOutcome, append_outcome
from kclient.producer.errors import DeliveryTimeoutError, possibly_written
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.transaction_manager import TransactionManager
from kclient.protocol.messages.produce import PartitionProduceResponse, ProduceResponse


class Answer(NamedTuple):
    """What is known of one batch's fate.

    Attributes:
        error: What went wrong, None if the broker has the batch.
        partition: The broker's answer for the partition, if there was one.
        nodes: Brokers that the answer refers to.
    """

    error: KafkaError | None
    partition: PartitionProduceResponse = PartitionProduceResponse(base_offset=-1)
    nodes: Sequence[Node] = ()


class ProduceResponseHandler:
    """Handles the ends of Produce requests (Kafka: Sender.handleProduceResponse and after).

    Only the sender's thread calls it.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        metadata: ProducerMetadata,
        transactions: TransactionManager | None,
        metrics: ProducerMetrics,
        retries: int,
        *,
        acks: int,
        keep_order: bool,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._accumulator = accumulator
        self._metadata = metadata
        self._transactions = transactions
        self._metrics = metrics
        self._retries = retries
        self._acks = acks
        self._keep_order = keep_order

    def handle(self, builder: ProduceRequestBuilder, response: ClientResponse) -> None:
        """Deal with every batch of a request that ended."""
        now_ms = response.received_ms
        for batch in builder.batches:
            batch.on_wire = False
            if self._transactions is not None:
                self._transactions.returned(batch)
        for batch, answer in _answers(builder, response):
            self._settle(batch, answer, now_ms)
        body = response.response
        if isinstance(body, ProduceResponse):
            throttle_ms = max(body.throttle_time_ms, 0)
            self._metrics.request_answered(response.latency_ms, throttle_ms, now_ms)

    def _settle(self, batch: ProducerBatch, answer: Answer, now_ms: float) -> None:
        error = answer.error
        outcome = append_outcome(error, self._acks, idempotent=self._transactions is not None)
        _note_outcome(batch, outcome)
        if error is None or outcome is AppendOutcome.WRITTEN:
            self._succeed(batch, answer.partition)
        elif batch.result.settled():  # it expired while it was on the wire
            self._accumulator.deallocate(batch)
        elif isinstance(error, RecordTooLargeError) and batch.record_count > 1:
            self._split(batch, now_ms)
        elif self._may_retry(batch, error, answer.partition.log_start_offset, now_ms):
            self._log.warning("%s: sent again after: %s", batch.topic_partition, error)
            self._metrics.retried(batch, now_ms)
            batch.last_error = error
            self._accumulator.reenqueue(batch, now_ms)
        else:
            self._give_up(batch, error, answer.partition, now_ms)
        if error is not None and error.invalid_metadata:
            self._refresh_metadata(batch, error, answer, now_ms)
        if self._keep_order:
            self._accumulator.mute(batch.topic_partition, muted=False)

    def _succeed(self, batch: ProducerBatch, partition: PartitionProduceResponse) -> None:
        if self._transactions is not None:
            self._transactions.completed(batch, partition.base_offset)
        batch.result.complete(partition.base_offset, partition.log_append_time_ms)
        self._accumulator.finish(batch)

    def _split(self, batch: ProducerBatch, now_ms: float) -> None:
        parts = batch.split(self._accumulator.new_result)
        if self._transactions is not None:
            self._transactions.split(batch, parts)
        self._accumulator.requeue_parts(batch, parts)
        self._metrics.split(now_ms)

    def _part_with(
        self, batch: ProducerBatch, errors: dict[int, KafkaError], now_ms: float
    ) -> None:
        """Fail the records that the broker named, and send the others again without them."""
        parts, refused = batch.part_with(errors, self._accumulator.new_result)
        if self._transactions is not None:
            self._transactions.shrunk(batch, parts)
        self._accumulator.requeue_parts(batch, parts)
        self._metrics.records_failed(len(errors), now_ms)
        for result, own_errors in refused:
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
            self._part_with(batch, records, now_ms)
        elif error.retriable and self._is_overdue(batch, now_ms):
            batch.last_error = error
            self.expire([batch], None, now_ms)
        else:
            self.fail(batch, _explained(batch, error, records), now_ms, records)

    def _is_overdue(self, batch: ProducerBatch, now_ms: float) -> bool:
        return now_ms >= batch.created_ms + self._accumulator.settings.delivery_timeout_ms

    def _may_retry(
        self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, now_ms: float
    ) -> bool:
        if self._is_overdue(batch, now_ms) or batch.attempts >= self._retries:
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
        """Give a batch up."""
        in_the_dark = batch.possibly_written()
        if batch.is_in_doubt():
            error = possibly_written(error)
            record_errors = {
                index: possibly_written(each) for index, each in (record_errors or {}).items()
            }
        if self._transactions is not None:
            if in_the_dark and batch.has_sequence:
                self._transactions.mark_unresolved(batch)
            self._transactions.failed(batch, error, sequence_unused=not in_the_dark)
        self._metrics.records_failed(batch.record_count, now_ms)
        batch.result.fail(error, record_errors)
        self._accumulator.finish(batch)

    def fail_overtaken(self, now_ms: float) -> None:
        """Give up batches that could only be written out of order."""
        if self._transactions is not None:
            for batch in self._transactions.overtaken():
                self._accumulator.unqueue(batch)
                self.fail(batch, _explained(batch, OutOfOrderSequenceError(), {}), now_ms)

    def expire(
        self, batches: Iterable[ProducerBatch], hindrance: KafkaError | None, now_ms: float
    ) -> None:
        """Give up batches that have taken ``delivery.timeout.ms``.

        Args:
            batches: The batches.
            hindrance: What kept batches from being sent at all, if it is known.
            now_ms: The present.
        """
        limit_ms = self._accumulator.settings.delivery_timeout_ms
        for batch in batches:
            written = batch.is_in_doubt()
            fate = (
                "they were sent, and the broker may hold them although it did not confirm it"
                if written
                else "they were not written"
            )
            cause = batch.last_error or hindrance or self._without_leader(batch)
            last = "" if cause is None else f"; the last error was: {cause}"
            error = DeliveryTimeoutError(
                f"{batch.record_count} record(s) for {batch.topic_partition}: no acknowledgement "
                f"within delivery.timeout.ms={limit_ms:.0f}; {fate}{last}",
                possibly_written=written,
            )
            error.__cause__ = cause
            self.fail(batch, error, now_ms)

    def _without_leader(self, batch: ProducerBatch) -> KafkaError | None:
        if self._metadata.cluster().leader_for(batch.topic_partition) is not None:
            return None
        return LeaderNotAvailableError(f"{batch.topic_partition} has no leader")

    def _refresh_metadata(
        self, batch: ProducerBatch, error: KafkaError, answer: Answer, now_ms: float
    ) -> None:
        leader = answer.partition.current_leader
        moved = isinstance(error, FencedLeaderEpochError | NotLeaderOrFollowerError)
        if moved and leader.leader_id >= 0 and leader.leader_epoch >= 0:
            news = {batch.topic_partition: LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)}
            if self._metadata.update_partition_leadership(news, answer.nodes):
                batch.retry_at_ms = now_ms  # another broker: no reason to wait (KIP-951)
        self._metadata.request_update(cluster_changed=True)


def _note_outcome(batch: ProducerBatch, outcome: AppendOutcome) -> None:
    """Update whether the log may hold a batch by what a request's end proves."""
    if outcome is AppendOutcome.UNKNOWN:
        batch.outcome_unknown = True
    elif outcome is AppendOutcome.NEVER_WRITTEN and not batch.split_in_the_dark:
        batch.was_unknown |= batch.outcome_unknown
        batch.outcome_unknown = False


def _answers(
    builder: ProduceRequestBuilder, response: ClientResponse
) -> list[tuple[ProducerBatch, Answer]]:
    """Pair each batch with its answer; what a broker leaves out counts as no answer at all."""
    error = response.version_mismatch or response.error
    if error is not None:
        if response.was_disconnected and not isinstance(error, DisconnectedError):
            error = _disconnected(error)
        return [(batch, Answer(error)) for batch in builder.batches]
    body = response.response
    if not isinstance(body, ProduceResponse):  # acks=0: nobody answers
        return [(batch, Answer(None)) for batch in builder.batches]
    by_partition = _by_partition(builder, body)
    nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in body.node_endpoints]
    answers = []
    for batch in builder.batches:
        partition = by_partition.get(batch.topic_partition)
        if partition is None:
            missing = NetworkError(f"the broker's answer left out {batch.topic_partition}")
            answers.append((batch, Answer(missing)))
        else:
            failed = error_for_code(partition.error_code, partition.error_message)
            answers.append((batch, Answer(failed, partition, nodes)))
    return answers


def _disconnected(error: KafkaError) -> DisconnectedError:
    lost = DisconnectedError(str(error))
    lost.__cause__ = error
    return lost


def _by_partition(
    builder: ProduceRequestBuilder, body: ProduceResponse
) -> dict[TopicPartition, PartitionProduceResponse]:
    names = {topic_id: name for name, topic_id in builder.topic_ids.items()}
    found: dict[TopicPartition, PartitionProduceResponse] = {}
    for topic in body.responses:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            found.setdefault(TopicPartition(name, partition.index), partition)
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
    return {
        each.batch_index: (kind or UnknownServerError)(
            each.batch_index_error_message
            or partition.error_message
            or "the broker rejected this record"
        )
        for each in partition.record_errors
        if 0 <= each.batch_index < batch.record_count
    }


def _explained(
    batch: ProducerBatch, error: KafkaError, record_errors: dict[int, KafkaError]
) -> KafkaError:
    """Return the error with what the broker could not know."""
    if record_errors:
        return InvalidRecordError(
            f"{batch.topic_partition}: the record was in a batch with {len(record_errors)} that "
            f"the broker refused: {error}"
        )
    if isinstance(error, RecordTooLargeError):
        return RecordTooLargeError(
            f"{batch.topic_partition}: a record makes a batch of {batch.size_in_bytes} bytes, more "
            "than the topic's max.message.bytes or the broker's message.max.bytes"
        )
    if isinstance(error, TopicAuthorizationError):
        return TopicAuthorizationError(
            f"not allowed to write to topic {batch.topic_partition.topic!r}"
        )
    if isinstance(error, OutOfOrderSequenceError) and batch.split_in_the_dark:
        return RecordTooLargeError(
            f"{batch.topic_partition}: a batch was too large when it was sent again "
            "(was max.message.bytes lowered?), after its first answer was lost; its parts cannot "
            "be told from new records"
        )
    if isinstance(error, OutOfOrderSequenceError):
        return OutOfOrderSequenceError(
            f"{batch.topic_partition}: the broker lost track of this producer and took later "
            "records first; writing these behind them would break the order"
        )
    return error
