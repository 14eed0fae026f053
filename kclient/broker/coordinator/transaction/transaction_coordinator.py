"""Transaction coordinator: the entry point of the transaction requests."""

import logging
from collections.abc import Callable, Collection
from typing import NamedTuple, TypeVar

from kclient.broker.coordinator.runtime.coordinator_runtime import CoordinatorRuntime
from kclient.broker.coordinator.runtime.partition_log import PartitionLog, partition_for
from kclient.broker.coordinator.runtime.shard_context import ShardContext
from kclient.broker.coordinator.transaction.transaction_markers import (
    MarkerTask,
    TransactionMarkers,
)
from kclient.broker.coordinator.transaction.transaction_metadata import TransactionMetadata
from kclient.broker.coordinator.transaction.transaction_shard import Reply, TransactionShard
from kclient.common.broker_errors import InvalidRequestError, InvalidTxnTimeoutError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Runtime
from kclient.common.types import TopicPartition
from kclient.record import NO_PRODUCER_ID, ProducerIdAndEpoch

_log = logging.getLogger(__name__)

T = TypeVar("T")

_WRITE_TIMEOUT_MS = 30_000.0
"""Time after which a pending write is reported as failed, the default of request.timeout.ms."""


class TransactionConfig(NamedTuple):
    """Configuration of transactions; times are milliseconds.

    Attributes:
        max_timeout_ms: Longest timeout that a producer may request.
        abort_interval_ms: Time between two searches for transactions that have timed out.
        expiration_ms: Time after which an unused transactional id is forgotten.
        expiration_interval_ms: Time between two searches for such ids.
        max_ids: Maximum number of transactional ids of this broker.
    """

    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000
    expiration_ms: int = 604_800_000
    expiration_interval_ms: int = 3_600_000
    max_ids: int = 10_000


ProducerIds = Callable[[Callable[[int | KafkaError], None]], None]
"""Allocates a producer id; the callback receives it, or the error."""


class TransactionCoordinator:
    """Coordinator of the transactional ids of this broker (Kafka: TransactionCoordinator).

    It has no lock of its own; each shard has one (`ShardContext`).

    Args:
        config: Configuration.
        log: Partitions of ``__transaction_state``.
        runtime: Clock and locks.
        markers: Writes the markers.
        transaction_version: Returns the finalized level of transaction.version.

    Attributes:
        runtime: Shards, which follow the leaders of their partitions.
        producer_ids: Allocates producer ids; set before the first request.
    """

    def __init__(
        self,
        config: TransactionConfig,
        log: PartitionLog,
        runtime: Runtime,
        markers: TransactionMarkers,
        transaction_version: Callable[[], int],
    ) -> None:
        def make_shard(context: ShardContext) -> TransactionShard:
            return TransactionShard(
                context, runtime.clock, transaction_version, markers, self._has_space
            )

        self._config = config
        self._log = log
        self._markers = markers
        markers.on_written = self._on_written
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            runtime, log, make_shard, _WRITE_TIMEOUT_MS
        )
        self.producer_ids: ProducerIds = _no_producer_ids
        self._has_reported_limit = False
        now_ms = runtime.clock.monotonic_ms()
        self._next_abort_ms = now_ms + config.abort_interval_ms
        self._next_expiration_ms = now_ms + config.expiration_interval_ms

    def step(self, now_ms: float) -> float:
        """Run due timers, markers and a step of loading; return the time of the next call."""
        times = [self.runtime.step(now_ms), self._markers.step(now_ms)]
        if now_ms >= self._next_abort_ms:
            self._next_abort_ms = now_ms + self._config.abort_interval_ms
            self._abort_timed_out()
        if now_ms >= self._next_expiration_ms:
            self._next_expiration_ms = now_ms + self._config.expiration_interval_ms
            expiration_ms = self._config.expiration_ms
            self.runtime.run_active(lambda shard: shard.remove_expired(expiration_ms))
        times += [self._next_abort_ms, self._next_expiration_ms]
        return min(each for each in times if each is not None)

    # -- requests --------------------------------------------------------------------------

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        given: ProducerIdAndEpoch | None,
        reply: Reply,
    ) -> None:
        """Initialize a producer: fence its predecessor, and return its id and epoch.

        Args:
            transactional_id: The id.
            timeout_ms: Longest time of a transaction.
            given: Producer id and epoch of the request, None if it has none.
            reply: Receives the producer id and epoch, or the error.
        """
        maximum = self._config.max_timeout_ms
        if not 0 < timeout_ms <= maximum:
            reply(
                InvalidTxnTimeoutError(
                    f"transaction timeout: got {timeout_ms} ms, expected 1 to {maximum} ms"
                )
            )
            return
        self._decide(
            transactional_id,
            lambda shard, new_id: shard.init_producer_id(
                transactional_id, given, timeout_ms, new_id, reply
            ),
            reply,
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        client_version: int,
        reply: Reply,
    ) -> None:
        """Add partitions to a transaction, which opens it if none is open.

        Args:
            transactional_id: The id.
            producer: Producer id and epoch of the request.
            partitions: The partitions.
            client_version: Level of transaction.version that the producer follows.
            reply: Receives the producer when they are added, or the error.
        """
        try:
            self._run(
                transactional_id,
                lambda shard: shard.add_partitions(
                    transactional_id, producer, partitions, client_version, reply
                ),
            )
        except KafkaError as error:
            reply(error)

    def partitions_of(
        self, transactional_id: str, producer: ProducerIdAndEpoch
    ) -> frozenset[TopicPartition]:
        """Return the partitions of the open transaction of a producer.

        Raises:
            KafkaError: As `TransactionShard.partitions_of` and `CoordinatorRuntime.run`.
        """
        return self._run(
            transactional_id, lambda shard: shard.partitions_of(transactional_id, producer)
        )

    def end_txn(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        client_version: int,
        reply: Reply,
        *,
        commits: bool,
    ) -> None:
        """Commit or abort a transaction.

        Args:
            transactional_id: The id.
            producer: Producer id and epoch of the request.
            client_version: Level of transaction.version that the producer follows.
            reply: Receives the producer id and epoch of the next transaction, or the error.
            commits: Whether the producer commits.
        """
        self._decide(
            transactional_id,
            lambda shard, new_id: shard.end_txn(
                transactional_id, producer, client_version, new_id, reply, commits=commits
            ),
            reply,
        )

    # -- administration ----------------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the transaction of an id.

        Raises:
            TransactionalIdNotFoundError: The id is unknown.
            KafkaError: As `CoordinatorRuntime.run`, or the id is empty.
        """
        return self._run(transactional_id, lambda shard: shard.describe(transactional_id))

    def list_transactions(self) -> list[TransactionMetadata]:
        """Return the transactions of all ids of this broker.

        Raises:
            KafkaError: As `CoordinatorRuntime.run_all`.
        """
        found = self.runtime.run_all(TransactionShard.list_transactions)
        return [metadata for shard in found for metadata in shard]

    # -- internals ---------------------------------------------------------------------------

    def _has_space(self) -> bool:
        count = sum(shard.id_count for shard in self.runtime.shards())
        if count < self._config.max_ids:
            return True
        # A warning once: clients repeat the request.
        level = logging.DEBUG if self._has_reported_limit else logging.WARNING
        self._has_reported_limit = True
        _log.log(level, "an id is refused, there are %d (max.transactional.ids)", count)
        return False

    def _run(self, transactional_id: str, operation: Callable[[TransactionShard], T]) -> T:
        if not transactional_id:
            raise InvalidRequestError("the transactional id is empty")
        partition = partition_for(transactional_id, self._log.partition_count)
        return self.runtime.run(partition, operation)

    def _decide(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, int], bool],
        reply: Reply,
    ) -> None:
        """Run an operation; if it needs a new producer id, allocate one and run it again."""

        def run(producer_id: int) -> bool:
            try:
                return self._run(transactional_id, lambda shard: operation(shard, producer_id))
            except KafkaError as error:
                reply(error)
                return True

        def on_producer_id(result: int | KafkaError) -> None:
            if isinstance(result, KafkaError):
                reply(result)
            else:
                run(result)

        if not run(NO_PRODUCER_ID):
            self.producer_ids(on_producer_id)

    def _abort_timed_out(self) -> None:
        found: list[TransactionMetadata] = []
        self.runtime.run_active(lambda shard: found.extend(shard.timed_out()))
        for metadata in found:
            self._abort(metadata)

    def _abort(self, metadata: TransactionMetadata) -> None:
        transactional_id = metadata.transactional_id

        def on_aborted(result: ProducerIdAndEpoch | KafkaError) -> None:
            if isinstance(result, KafkaError):
                what = "transactional id %r has timed out; its abort is tried again: %s"
                _log.warning(what, transactional_id, result)
            else:
                _log.info("transactional id %r has timed out and is aborted", transactional_id)

        self._decide(
            transactional_id,
            lambda shard, new_id: shard.abort(metadata, new_id, on_aborted),
            on_aborted,
        )

    def _on_written(self, task: MarkerTask) -> None:
        try:
            self.runtime.run(task.partition, lambda shard: shard.complete(task.prepared))
        except KafkaError as error:  # the next coordinator writes the markers again
            _log.debug("transactional id %r: %s", task.prepared.transactional_id, error)


def _no_producer_ids(_on_done: Callable[[int | KafkaError], None]) -> None:
    raise IllegalStateError("the transaction coordinator has no producer ids yet")
