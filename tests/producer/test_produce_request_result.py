"""`wait` returns after every callback has run."""

import threading

from kclient.common.errors import KafkaError
from kclient.common.metrics import Metrics
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.common.types import RecordMetadata, TopicPartition
from kclient.common.waiting import run_steps
from kclient.producer.callback_runner import CallbackRunner
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.produce_request_result import ProduceRequestResult


def result_of_a_batch() -> ProduceRequestResult:
    tasks, clock = SystemTasks(), SystemClock()
    errors = Metrics(clock, tasks).sensor(total="errors")
    runner = CallbackRunner(tasks, errors)
    return ProduceRequestResult(TopicPartition("t", 0), tasks, tasks.lock(), runner, clock)


def wait(result: ProduceRequestResult, timeout_ms: float) -> bool:
    clock = SystemClock()
    return run_steps(result.wait(clock.monotonic_ms() + timeout_ms), clock)


def test_wait_ends_after_the_last_callback() -> None:
    result = result_of_a_batch()
    future = DeliveryFuture(result, 0, 0, -1, -1)
    entered, released = threading.Event(), threading.Event()
    seen: list[RecordMetadata | None] = []

    def slow(metadata: RecordMetadata | None, _: KafkaError | None) -> None:
        seen.append(future.result(0))  # inside a callback, wait returns at once
        entered.set()
        released.wait(10)

    result.deliveries.append((0, future, slow))
    sender = threading.Thread(target=result.complete, args=(7, -1))
    sender.start()
    assert entered.wait(10)
    assert future.done()
    assert not wait(result, 10)
    released.set()
    assert wait(result, 10_000)
    assert future.result(10) == seen[0]
    assert future.result(10).offset == 7
    sender.join(10)
