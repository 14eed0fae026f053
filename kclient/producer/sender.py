"""Sender: the loop that sends batches from the accumulator to the brokers."""

from collections.abc import Callable, Mapping
from functools import partial

from kclient.client.client_metadata import ProducerMetadata
from kclient.client.client_request import ClientResponse, ResponseCallback
from kclient.client.cluster import Cluster
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.network_client import NetworkClient
from kclient.common.errors import KafkaError
from kclient.common.log_context import NO_LOG_CONTEXT, LogContext
from kclient.common.runtime import EndOfTaskError, Runtime
from kclient.common.waiting import NetworkWait, Steps
from kclient.producer.batch_drainer import ReadyCheckResult
from kclient.producer.batch_state import BatchEvent, BatchState
from kclient.producer.errors import ProducerFatalError, stopped_producer
from kclient.producer.produce_request_builder import ProduceRequestBuilder
from kclient.producer.produce_response_handler import ProduceResponseHandler
from kclient.producer.producer_batch import ProducerBatch
from kclient.producer.producer_config import ProducerConfig
from kclient.producer.producer_metrics import ProducerMetrics
from kclient.producer.record_accumulator import RecordAccumulator
from kclient.producer.record_tracer import RecordTracer
from kclient.producer.sequence_manager import SequenceManager
from kclient.producer.transaction_manager import TransactionManager
from kclient.producer.transactional_requests import TransactionalRequests

_TOPIC_USE_INTERVAL_MS = 1_000.0
_BLOCKED_POLL_MS = 100.0
_SENT = BatchEvent.SENT


class Sender:
    """Sends due batches, as a loop in steps (Kafka: Sender).

    One task runs `steps`; other threads may use `initiate_close`, `force_close`, `wakeup` and
    `failure`.

    Attributes:
        failure: Error that stopped the sender permanently, None while it runs.
        blocking_error: Error that kept records from being sent when the loop ended, if known.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: NetworkClient,
        metadata: ProducerMetadata,
        accumulator: RecordAccumulator,
        transactions: SequenceManager | None,
        metrics: ProducerMetrics,
        runtime: Runtime,
        log_context: LogContext = NO_LOG_CONTEXT,
    ) -> None:
        """Create a sender, which owns the client.

        Args:
            config: Options.
            client: Network client.
            metadata: Metadata of the client.
            accumulator: Source of the batches.
            transactions: Assigns sequences; None without idempotence.
            metrics: Metrics of the producer.
            runtime: Clock and locks.
            log_context: Prefix of log lines.
        """
        self._log = log_context.logger(__name__)
        self._config = config
        self._compression = config.compression_type, config.compression_level
        self._keeps_order = config.max_in_flight_requests_per_connection == 1
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._incomplete, self._drainer = accumulator.incomplete, accumulator.drainer
        self._slow_nodes = accumulator.slow_nodes
        self._transactions = transactions
        self._manager = transactions if isinstance(transactions, TransactionManager) else None
        self._metrics = metrics
        self._clock, self._tasks = runtime.clock, runtime.tasks
        self._process_id = runtime.tasks.process_id()
        self._handler = ProduceResponseHandler(
            accumulator,
            metadata,
            transactions,
            metrics,
            config.retries,
            acks=config.acks,
            keep_order=self._keeps_order,
            log_context=log_context,
        )
        self._requests: TransactionalRequests | None = None
        if transactions is not None:
            self._requests = TransactionalRequests(
                config,
                client,
                metadata,
                transactions,
                self._incomplete,
                ExponentialBackoff(
                    config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.random.random
                ),
                self._guarded,
            )
        self._next_topic_use_ms = 0.0
        self._closing = False  # set by the closing thread; the sender may see it one step late
        self._forced = False
        self._give_up_ending_ms = float("inf")  # while it closes
        self._lost: int | None = None
        self._unexpected: Exception | None = None
        self.failure: KafkaError | None = None
        self.blocking_error: KafkaError | None = None

    # -- the loop ---------------------------------------------------------------------------------

    def steps(self, on_end: Callable[[], None] = lambda: None) -> Steps[None]:
        """Send until the producer is closed, then call `on_end`."""
        try:
            while not (self._forced or (self._closing and self._may_close())):
                if self._tasks.process_id() != self._process_id:
                    return  # a callback forked: the connections are the parent's
                until_ms = self.send_due(self._clock.monotonic_ms())
                yield NetworkWait(self._client, min(until_ms, self._give_up_ending_ms))
                if self._unexpected is not None:
                    raise self._unexpected
            self._finish(KafkaError("the producer was closed before the acknowledgement"))
        except (EndOfTaskError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 (no caller could report it; see below)
            self._crash(error)
        on_end()

    def send_due(self, now_ms: float) -> float:
        """Send due batches; return until when to poll the network before the next call."""
        if now_ms >= self._next_topic_use_ms:
            self._renew_topic_use(now_ms)
        next_expiry_ms = self._expire(now_ms)
        self._prepare_sequences(now_ms)
        wait_ms = self._send_producer_data(now_ms)
        if self._requests is not None:
            # After the batches: their partitions may have to be added to the transaction.
            wait_ms = min(wait_ms, self._requests.step(now_ms))
        return min(now_ms + wait_ms, next_expiry_ms)

    def _handle(self, builder: ProduceRequestBuilder, response: ClientResponse) -> None:
        """Handle the response to a Produce request, guarded as the other callbacks."""
        try:
            self._handler.handle(builder, response)
        except Exception as error:  # noqa: BLE001 (raised again by steps)
            self._unexpected = error

    def _guarded(self, handle: ResponseCallback) -> ResponseCallback:
        """Wrap a callback so that `steps` raises its errors: the client would only log them."""
        return partial(self._call, handle)

    def _call(self, handle: ResponseCallback, response: ClientResponse) -> None:
        try:
            handle(response)
        except Exception as error:  # noqa: BLE001 (raised again by steps)
            self._unexpected = error

    def set_tracer(self, tracer: RecordTracer | None) -> None:
        """Report requests and their batches to a tracer, or to none any more. For any thread."""
        self._handler.tracer = tracer

    def wakeup(self) -> None:
        """End the present wait of `steps`."""
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

    def has_work(self) -> bool:
        """Return whether there is something to do: to send, to receive, or to end the loop."""
        if self._closing or self._has_unfinished_work():
            return True
        return self._metadata.time_to_next_update(self._clock.monotonic_ms()) <= 0

    def _has_unfinished_work(self) -> bool:
        """Return whether a batch has no outcome, or a transaction is not ended."""
        manager = self._manager
        return len(self._incomplete) > 0 or (manager is not None and manager.has_work())

    def _may_close(self) -> bool:
        """Return whether to close: all batches have outcomes, and no transaction is to be ended.

        The end of a transaction is awaited for ``max.block.ms``. After that its coordinator aborts
        it at its timeout, or has it ended already.
        """
        if len(self._incomplete):
            return False
        if self._manager is None or not self._manager.has_work():
            return True
        now_ms = self._clock.monotonic_ms()
        if self._give_up_ending_ms == float("inf"):
            self._give_up_ending_ms = now_ms + self._config.max_block_ms
        if now_ms < self._give_up_ending_ms:
            return False
        self._log.warning(
            "close: the end of the transaction was not confirmed within max.block.ms=%d",
            self._config.max_block_ms,
        )
        return True

    def lost_records(self) -> int:
        """Return the number of records without an outcome, at the end of the loop or so far."""
        return self._incomplete.record_count() if self._lost is None else self._lost

    def _finish(self, error: KafkaError) -> None:
        self.blocking_error = self._find_blocking_error() or self._incomplete.last_error()
        try:
            self._client.close()  # before memory is freed: sockets read from it
        finally:
            self._metadata.close()
            self._lost = self._accumulator.abort_incomplete(error)
            if self._manager is not None:
                self._manager.end_calls(error)

    def _find_blocking_error(self) -> KafkaError | None:
        """Return the error that keeps all records from being sent, if there is one."""
        if self._requests is not None and self._requests.last_error is not None:
            return self._requests.last_error
        return self._client.bootstrap_error()

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
            self.failure = stopped_producer(error)
        self._accumulator.close()
        self._fail_queued(error, now_ms)

    def _fail_queued(self, error: KafkaError, now_ms: float) -> None:
        """Fail the batches that are not in flight."""
        queued = [
            batch for batch in self._incomplete.all() if batch.state is not BatchState.IN_FLIGHT
        ]
        self._accumulator.unqueue(queued)
        for batch in queued:
            self._handler.fail(batch, error, now_ms)

    # -- producing --------------------------------------------------------------------------------

    def _expire(self, now_ms: float) -> float:
        """Fail batches that have expired; return when the next one expires.

        Before the sequences are prepared: an expired batch may leave a gap. Before draining: a
        batch that expires between drain and send would never be completed.
        """
        expired, next_expiry_ms = self._incomplete.expired(now_ms)
        if expired:
            self._accumulator.unqueue(expired)
            self._handler.expire(expired, self._find_blocking_error(), now_ms)
        return next_expiry_ms

    def _prepare_sequences(self, now_ms: float) -> None:
        """Close gaps in sequences, and fail batches that may not be sent any more."""
        transactions = self._transactions
        if transactions is None:
            return
        if transactions.has_gaps():
            transactions.resolve_sequences()
            self._handler.fail_overtaken(now_ms)
            transactions.bump_epoch_if_needed()
        error = None if self._manager is None else self._manager.queued_error()
        if error is not None:
            self._fail_queued(error, now_ms)
        if transactions.fatal_error is not None:
            self._give_up(transactions.fatal_error, now_ms)

    def _send_producer_data(self, now_ms: float) -> float:
        """Send what is due; return the time until more may be due."""
        cluster = self._metadata.cluster()
        is_ending = self._manager is not None and self._manager.is_ending
        skip_linger = is_ending or self._accumulator.skips_linger()
        found = self._drainer.ready(cluster, now_ms, skip_linger=skip_linger)
        for topic in sorted(found.unknown_leader_topics):
            self._metadata.add_topic(topic, now_ms)
            self._metadata.request_update()
        nodes: list[int] = []
        drained: dict[int, list[ProducerBatch]] = {}
        timeout_ms = found.next_check_delay_ms
        if found.ready_nodes:
            nodes, timeout_ms = self._sendable_nodes(found, cluster, now_ms)
            drained = self._drainer.drain(nodes, now_ms) if nodes else {}
        for node_id, batches in drained.items():
            self._send_produce_request(node_id, batches, cluster, now_ms)
        if drained:
            count = sum(map(len, drained.values()))
            self._drainer.sent(count, now_ms, self._clock.monotonic_ms())
        if drained and self._drainer.has_due():
            return 0.0  # some may be for the same nodes
        if nodes and not drained:
            # Sequences hold back the batches until a response, or until a wait not counted here.
            timeout_ms = min(timeout_ms, _BLOCKED_POLL_MS)
        return min(timeout_ms, self._drainer.linger_end_ms - now_ms)

    def _sendable_nodes(
        self, found: ReadyCheckResult, cluster: Cluster, now_ms: float
    ) -> tuple[list[int], float]:
        """Return the nodes that a request can be sent to, and the time until the next check."""
        nodes: list[int] = []
        timeout_ms = found.next_check_delay_ms
        for node_id in sorted(found.ready_nodes):
            node = cluster.node(node_id)
            can_send = node is not None and self._client.ready(node, now_ms)
            self._slow_nodes.record(node_id, now_ms, drained=can_send)
            if can_send:
                nodes.append(node_id)
            elif node is not None:
                timeout_ms = min(timeout_ms, self._client.poll_delay_ms(node, now_ms))
        return nodes, timeout_ms

    def _seal(self, batches: list[ProducerBatch], topic_ids: Mapping[str, bytes]) -> None:
        """Assign sequences to drained batches and compress them."""
        transactions = self._transactions
        is_transactional = self._config.transactional_id is not None
        for batch in batches:
            if transactions is not None:
                transactions.assign_sequence(batch, topic_ids.get(batch.topic_partition.topic))
            batch.seal(*self._compression, transactional=is_transactional)
            if self._keeps_order:
                self._accumulator.mute(batch.topic_partition, muted=True)

    def _send_produce_request(
        self, node_id: int, batches: list[ProducerBatch], cluster: Cluster, now_ms: float
    ) -> None:
        tracer = self._handler.tracer
        started_ns = 0 if tracer is None else self._clock.monotonic_ns()
        config = self._config
        self._seal(batches, cluster.topic_ids)
        transactions = self._transactions
        builder = ProduceRequestBuilder(
            config.acks,
            config.request_timeout_ms,
            batches,
            cluster.topic_ids,
            config.transactional_id,
            is_version_2=transactions is not None and transactions.uses_version_2,
        )
        request = self._client.new_client_request(
            str(node_id),
            builder,
            now_ms,
            expect_response=config.acks != 0,
            request_timeout_ms=config.request_timeout_ms,
            callback=partial(self._handle, builder),
        )
        self._client.send(request, now_ms)
        if tracer is not None:
            sent_ns = self._clock.monotonic_ns()
            tracer.request_sent(batches, request.correlation_id, started_ns, sent_ns)
        # The broker works from here on, while the states follow.
        self._client.write_ahead(now_ms)
        for batch in batches:
            batch.apply(_SENT)
        if transactions is not None:
            transactions.sent(batches, node_id)
        self._metrics.request_sent(batches, now_ms)

    def _renew_topic_use(self, now_ms: float) -> None:
        """Keep the topics in use in the metadata, and drop those that are idle."""
        self._next_topic_use_ms = now_ms + _TOPIC_USE_INTERVAL_MS
        idle: list[str] = []
        for info in self._accumulator.topics():
            if info.used:
                info.used = False
                self._metadata.add_topic(info.topic, now_ms)
            elif not self._metadata.uses(info.topic, now_ms):
                idle.append(info.topic)
        if idle:
            self._accumulator.drop_topics(idle)
        if self._transactions is not None:
            self._transactions.forget_idle({info.topic for info in self._accumulator.topics()})
