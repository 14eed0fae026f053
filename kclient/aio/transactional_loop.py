"""Loop for asyncio that commits the records it produces with the offsets of those it consumed."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from kclient.aio.consumer import Consumer
from kclient.aio.producer import Producer
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.types import K_co, V_co
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.network.system_runtime import system_runtime
from kclient.transactions.loop_core import (
    TASK_TIMEOUT_S,
    CallSteps,
    LoopCore,
    check_consumer,
    check_functions,
)

T = TypeVar("T")


class TransactionalLoop(ProcessBound, Generic[K_co, V_co]):
    """Consumes records, processes them and produces the results, exactly once, in an event loop.

    Guarantees and errors are those of `kclient.transactions.TransactionalLoop`, with clients of
    `kclient.aio`. `process` may be a coroutine function, which is awaited in the task of `run`.

    Cancelling `run` aborts the open transaction and closes the producer before it raises
    `CancelledError`; a commit in progress is completed. The consumer is at the committed offsets,
    and `run` may be called again. If brokers do not respond, each of these calls waits up to
    ``max.block.ms``; a second cancellation ends the wait.
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

        Arguments and errors are those of `kclient.transactions.TransactionalLoop`. `process` is a
        coroutine function or a plain one, `new_producer` a plain one.
        """
        check_functions(new_producer, process, may_be_coroutine=True)
        check_consumer(consumer, Consumer, "kclient.aio.Consumer")
        self._new_producer = new_producer
        clock = (runtime or system_runtime()).clock
        self._core: LoopCore[Producer[Any, Any]] = LoopCore(consumer, process, task_timeout, clock)

    async def run(self) -> None:
        """Consume, process and produce until `stop`.

        Raises:
            KafkaError: As `kclient.transactions.TransactionalLoop.run`.
            Exception: Of `process`; its transaction was aborted.
        """
        with self._core.running():
            while not self._core.is_stopping():
                async with self._new_producer() as producer:
                    await _make_calls(self._core.run_with(producer))

    def stop(self) -> None:
        """End `run` after the present poll or transaction. For any thread and signal handlers.

        If `run` is not in progress, the next one ends at once.
        """
        self._core.stop()


async def _make_calls(steps: CallSteps[T]) -> T:
    """Make the calls of steps in the calling task, and await them; return their result.

    Its cancellation is raised in the steps.
    """
    try:
        call = next(steps)
        while True:
            try:
                outcome = call()
                if isinstance(outcome, Awaitable):
                    outcome = await outcome
            except BaseException as error:  # noqa: BLE001 (raised again by the steps)
                call = steps.throw(error)
            else:
                call = steps.send(outcome)
    except StopIteration as returned:
        result: T = returned.value
        return result
