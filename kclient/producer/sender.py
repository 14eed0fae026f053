"""Sender: the loop that sends batches from the accumulator to the brokers."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse, ResponseCallback, SimpleBuilder
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import Clock, EndOfTaskError
from kclient.producer.errors import ProducerFatalError
from kclient.producer.kafka_client import KafkaClient
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.produce_response_handler import ProduceResponseHandler
from kclient.producer.producer_batch import ProducerBatch, ProducerIdAndEpoch
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.slow_nodes import SlowNodes
from kclient.producer.transaction_manager import TransactionManager
from kclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kclient.record import CompressionType

_NO_TRANSACTION_TIMEOUT = 2**31 - 1
_TOPIC_USE_INTERVAL_MS = 1_000.0
_BLOCKED_POLL_MS = 100.0


class SenderSettings(NamedTuple):
    """Settings of Produce requests.

    Attributes:
        acks: 0, 1, or -1 for all.
        max_request_size: ``max.request.size``.
        request_timeout_ms: ``request.timeout.ms``.
        keep_order: Whether a partition has at most one batch in flight.
        compression: Codec.
        compression_level: Its level, None for its default.
    """

    acks: int
    max_request_size: int
    request_timeout_ms: int
    keep_order: bool
    compression: CompressionType
    compression_level: int | None


class SenderParts(NamedTuple):
    """Components used by the sender, which owns the client."""

    client: KafkaClient
    metadata: ProducerMetadata
    accumulator: RecordAccumulator
    transactions: TransactionManager | None
    metrics: ProducerMetrics
    handler: ProduceResponseHandler
    slow_nodes: SlowNodes


class Sender:
    """Sends due batches, as a step function (Kafka: Sender).

    One thread calls `step`; others may use `initiate_close`, `force_close`, `wakeup` and `failure`.

    Attributes:
        failure: Error that stopped the sender permanently, None while it runs.
        blocking_error: Error that kept records from being sent when the loop ended, if known.
    """

    def __init__(
        self,
        settings: SenderSettings,
        parts: SenderParts,
        retry_backoff: ExponentialBackoff,
        clock: Clock,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._settings = settings
        self._client, self._metadata, self._accumulator, self._transactions = parts[:4]
        self._metrics, self._handler, self._slow_nodes = parts[4:]
        self._retry_backoff = retry_backoff
        self._clock = clock
        self._next_topic_use_ms = 0.0
        self._init_failures = 0
        self._init_error: KafkaError | None = None
        self._init_retry_at_ms = 0.0
        self._closing = False  # set by the closing thread; the sender may see it one step late
        self._forced = False
        self._lost: int | None = None
        self._unexpected: Exception | None = None
        self.failure: KafkaError | None = None
        self.blocking_error: KafkaError | None = None

    # -- the loop ---------------------------------------------------------------------------------

    def step(self) -> bool:
        """Run once; return False when the sender has ended."""
        try:
            if self._forced or (self._closing and not len(self._accumulator.incomplete)):
                self._finish(KafkaError("the producer was closed before the acknowledgement"))
                return False
            self.run_once(self._clock.monotonic_ms())
        except EndOfTaskError:
            raise
        except BaseException as error:  # noqa: BLE001 (no caller could report it; see below)
            self._crash(error)
            return False
        return True

    def run_once(self, now_ms: float) -> None:
        """Send due batches, then poll the network until the next is due."""
        self._renew_topic_use(now_ms)
        timeout_ms = self._init_producer_id(now_ms)
        if self._transactions is not None and self._transactions.fatal_error is not None:
            self._give_up(self._transactions.fatal_error, now_ms)
        timeout_ms = min(timeout_ms, self._send_producer_data(now_ms))
        self._client.poll(max(timeout_ms, 0.0), now_ms)
        if self._unexpected is not None:
            raise self._unexpected

    def _guarded(self, handle: ResponseCallback) -> ResponseCallback:
        """Wrap a callback so that `run_once` raises its errors: the client would only log them."""

        def callback(response: ClientResponse) -> None:
            try:
                handle(response)
            except Exception as error:  # noqa: BLE001 (raised again by run_once)
                self._unexpected = error

        return callback

    def wakeup(self) -> None:
        """Wake a waiting `run_once`."""
        self._client.wakeup()

    def initiate_close(self) -> None:
        """Reject new records, send queued ones, then end the loop."""
        self._accumulator.close()
        self._closing = True
        self.wakeup()

    def force_close(self) -> None:
        """End the loop now; records without an outcome fail."""
        self._accumulator.close()
        self._closing = self._forced = True
        self.wakeup()

    def lost_records(self) -> int:
        """Return the number of records without an outcome, at the end of the loop or so far."""
        return self._accumulator.incomplete.record_count() if self._lost is None else self._lost

    def _finish(self, error: KafkaError) -> None:
        self.blocking_error = self._find_blocking_error()
        try:
            self._client.close()  # before memory is freed: sockets read from it
        finally:
            self._metadata.close()
            self._lost = self._accumulator.abort_incomplete(error)

    def _find_blocking_error(self) -> KafkaError | None:
        """Return the error that keeps records from being sent, if it is known."""
        known = self._init_error or self._client.bootstrap_error()
        for batch in self._accumulator.incomplete.all() if known is None else ():
            known = known or batch.last_error
        return known

    def _crash(self, error: BaseException) -> None:
        """Fail all records and end: after an unexpected error no state can be trusted."""
        self._log.critical("an unexpected error stopped the producer's sender", exc_info=error)
        failure = ProducerFatalError(f"the sender was stopped by {type(error).__name__}: {error}")
        failure.__cause__ = error
        self.failure = failure
        self._accumulator.close()
        self._metadata.fatal_error(failure)
        try:
            self._finish(failure)
        except EndOfTaskError:
            raise
        except BaseException:  # noqa: BLE001 (as above; the futures have failed)
            self._log.exception("closing the stopped sender failed")

    def _give_up(self, error: KafkaError, now_ms: float) -> None:
        """Fail queued batches; those in flight are completed by their responses."""
        if self.failure is None:
            failure = ProducerFatalError(f"the producer stopped: {error}")
            failure.__cause__ = error
            self.failure = failure
        self._accumulator.close()
        for batch in self._accumulator.take_queued():
            self._handler.fail(batch, error, now_ms)

    # -- producing --------------------------------------------------------------------------------

    def _send_producer_data(self, now_ms: float) -> float:
        # Before draining: a batch that expires between drain and send would never be completed.
        expired = self._accumulator.take_expired(now_ms)
        if expired:
            self._handler.expire(
                expired, self._init_error or self._client.bootstrap_error(), now_ms
            )
        cluster = self._metadata.cluster()
        found = self._accumulator.drainer.ready(cluster, now_ms)
        for topic in sorted(found.unknown_leader_topics):
            self._metadata.add_topic(topic, now_ms)
            self._metadata.request_update()
        timeout_ms = found.next_check_delay_ms
        nodes = []
        for node_id in sorted(found.ready_nodes):
            node = cluster.node(node_id)
            can_send = node is not None and self._client.ready(node, now_ms)
            self._slow_nodes.record(node_id, now_ms, drained=can_send)
            if can_send:
                nodes.append(node_id)
            elif node is not None:
                timeout_ms = min(timeout_ms, self._client.poll_delay_ms(node, now_ms))
        drained = self._drain(nodes, now_ms)
        for node_id, batches in drained.items():
            self._send_produce_request(node_id, batches, now_ms)
        if drained:
            return 0.0  # there may be more batches for the same nodes
        if nodes:
            # Sequences hold back the batches until a response, or until a wait not counted here.
            timeout_ms = min(timeout_ms, _BLOCKED_POLL_MS)
        return min(timeout_ms, self._accumulator.next_expiry_ms() - now_ms)

    def _drain(self, nodes: Iterable[int], now_ms: float) -> dict[int, list[ProducerBatch]]:
        drained = self._accumulator.drainer.drain(
            nodes, self._settings.max_request_size, now_ms, self._next_batch
        )
        settings = self._settings
        for batches in drained.values():
            for batch in batches:
                if self._transactions is not None:
                    topic = batch.topic_partition.topic
                    topic_id = self._metadata.cluster().topic_id(topic)
                    self._transactions.assign_sequence(batch, topic_id)
                batch.seal(settings.compression, settings.compression_level)
                if settings.keep_order:
                    self._accumulator.mute(batch.topic_partition, muted=True)
        return drained

    def _next_batch(self, queued: Sequence[ProducerBatch]) -> ProducerBatch | None:
        return queued[0] if self._transactions is None else self._transactions.next_batch(queued)

    def _send_produce_request(
        self, node_id: int, batches: list[ProducerBatch], now_ms: float
    ) -> None:
        settings = self._settings
        builder = ProduceRequestBuilder(
            settings.acks, settings.request_timeout_ms, batches, self._metadata.cluster()
        )
        for batch in batches:
            batch.on_wire = True
            if self._transactions is not None:
                self._transactions.sent(batch)
        request = self._client.new_client_request(
            str(node_id),
            builder,
            now_ms,
            expect_response=settings.acks != 0,
            request_timeout_ms=settings.request_timeout_ms,
            callback=self._guarded(partial(self._handler.handle, builder)),
        )
        self._client.send(request, now_ms)
        self._metrics.request_sent(batches, now_ms)

    def _renew_topic_use(self, now_ms: float) -> None:
        """Keep the topics in use in the metadata."""
        if now_ms >= self._next_topic_use_ms:
            self._next_topic_use_ms = now_ms + _TOPIC_USE_INTERVAL_MS
            for info in self._accumulator.topics():
                if info.used:
                    info.used = False
                    self._metadata.add_topic(info.topic, now_ms)

    # -- producer id ------------------------------------------------------------------------------

    def _init_producer_id(self, now_ms: float) -> float:
        """Send InitProducerId if needed; return the time until the next check."""
        transactions = self._transactions
        if transactions is None:
            return float("inf")
        transactions.resolve_sequences()
        self._handler.fail_overtaken(now_ms)
        transactions.bump_epoch_if_needed()
        if not transactions.needs_producer_id():
            return float("inf")
        if now_ms < self._init_retry_at_ms:
            return self._init_retry_at_ms - now_ms
        node = self._client.least_loaded_node(now_ms)
        if node is None:
            self._metadata.request_update()
            return _BLOCKED_POLL_MS
        if not self._client.ready(node, now_ms):
            return self._client.poll_delay_ms(node, now_ms)
        transactions.begin_initializing()
        request = self._client.new_client_request(
            str(node.id),
            SimpleBuilder(
                InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT
                )
            ),
            now_ms,
            request_timeout_ms=self._settings.request_timeout_ms,
            callback=self._guarded(self._handle_init_producer_id),
        )
        self._client.send(request, now_ms)
        return float("inf")

    def _handle_init_producer_id(self, response: ClientResponse) -> None:
        transactions = self._transactions
        if transactions is None:
            return
        body = response.response
        error = response.version_mismatch or response.error
        if isinstance(body, InitProducerIdResponse):
            error = error_for_code(body.error_code)
            if error is None:
                self._init_failures = 0
                self._init_error = None
                transactions.initialized(ProducerIdAndEpoch(body.producer_id, body.producer_epoch))
                return
        error = error or KafkaError("no response to InitProducerId")
        self._init_error = error
        wait_ms = self._retry_backoff.backoff(self._init_failures)
        self._init_failures += 1
        self._init_retry_at_ms = response.received_ms + wait_ms
        transactions.initializing_failed(error, passing=response.was_disconnected)
