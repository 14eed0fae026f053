"""Loop that commits the records that it produces together with the offsets of those it consumed."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import K_co, V_co
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.network.system_runtime import system_runtime
from kclient.producer.producer import Producer
from kclient.transactions.loop_core import (
    TASK_TIMEOUT_S,
    CallSteps,
    LoopCore,
    check_consumer,
    check_functions,
)

T = TypeVar("T")


class TransactionalLoop(ProcessBound, Generic[K_co, V_co]):
    """Consumes records, processes them and produces the results, exactly once (KIP-98, KIP-447).

    The records of each poll are one transaction: what `process` sends, and the offsets of the
    records, become visible together or not at all. Readers of the results need
    ``isolation.level=read_committed``.

    - If the transaction fails, or `process` raises, it is aborted, and the consumer returns to the
      committed offsets. An exception of `process` then leaves `run`, which may be called again.
    - Temporary errors, also those of `process`, are retried. If a call, or the records of a
      partition, still fail `task_timeout` after their first failure, `run` raises
      KafkaTimeoutError.
    - A member whose partitions were reassigned cannot commit their offsets: its transaction is
      aborted, and the new owner processes the records.
    - A transaction that was open for longer than ``transaction.timeout.ms`` is repeated, with a new
      producer where the old one is fenced. If another process uses the same transactional id, `run`
      raises ProducerFencedError.
    - If the process dies, the next one with its transactional id fences it, and continues at the
      committed offsets.

    `process` is called in the thread of `run`, must not begin or end transactions, and should take
    less than ``max.poll.interval.ms`` and ``transaction.timeout.ms``. Its other effects, as in a
    database, are repeated with the records of an aborted transaction.
    """

    def __init__(
        self,
        consumer: Consumer[K_co, V_co],
        new_producer: Callable[[], Producer[Any, Any]],
        process: Callable[[ConsumerRecords[K_co, V_co], Producer[Any, Any]], object],
        runtime: Runtime | None = None,
        *,
        task_timeout: float = TASK_TIMEOUT_S,
    ) -> None:
        """Check the consumer; `run` does the rest.

        Args:
            consumer: A subscribed consumer with a ``group.id``, ``enable.auto.commit=false`` and,
                if its topics are written in transactions, ``isolation.level=read_committed``. The
                caller closes it.
            new_producer: Returns a producer with the ``transactional.id`` of this instance, which
                is another one for each instance and stays the same over restarts. Called by `run`,
                which closes the producer; again if a producer can no longer be used.
            process: Called as ``process(records, producer)`` with the records of one poll.
            runtime: Clock, for tests and simulations; the system's by default.
            task_timeout: Seconds for which temporary errors may repeat (Kafka Streams:
                ``task.timeout.ms``, KIP-572); 0 ends `run` with the first one, ``math.inf`` sets no
                limit. It is checked when an attempt has failed, and an attempt may last
                ``max.block.ms``.

        Raises:
            ConfigError: The consumer commits automatically.
            InvalidTypeError: A function is not callable, or is a coroutine function.
            InvalidArgumentError: The timeout is negative or longer than 600 s.
        """
        check_functions(new_producer, process)
        check_consumer(consumer, Consumer, "kclient.Consumer")
        self._new_producer = new_producer
        clock = (runtime or system_runtime()).clock
        self._core: LoopCore[Producer[Any, Any]] = LoopCore(consumer, process, task_timeout, clock)

    def run(self) -> None:
        """Consume, process and produce until `stop`.

        Raises:
            ProducerFencedError: Another producer was started with the transactional id.
            KafkaTimeoutError: Temporary errors repeated for longer than `task_timeout`;
                ``__cause__`` is the last one. Or brokers did not respond when `stop` was called.
            KafkaError: A permanent error, such as a missing ACL.
            Exception: Of `process`; its transaction was aborted. If the abort failed, a note of
                the exception has the reason, and closing the producer has tried it again.
        """
        with self._core.running():
            while not self._core.is_stopping():
                with self._new_producer() as producer:
                    _make_calls(self._core.run_with(producer))

    def stop(self) -> None:
        """End `run` after the present poll or transaction. For any thread and signal handlers.

        If `run` is not in progress, the next one ends at once.
        """
        self._core.stop()


def _make_calls(steps: CallSteps[T]) -> T:
    """Make the calls of steps in the calling thread; return their result."""
    try:
        call = next(steps)
        while True:
            try:
                outcome = call()
            except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                call = steps.throw(error)
            else:
                call = steps.send(outcome)
    except StopIteration as returned:
        result: T = returned.value
        return result
