"""Threads that share one producer, and the thread that runs its sender while it waits."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kclient import Producer
from kclient.common.errors import ClosedError, ForkedClientError, IllegalStateError, KafkaError
from kclient.producer import DeliveryFuture
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign import ForeignRecord


@pytest.mark.fault("W23")
@pytest.mark.parametrize("environment", [{}, {"KCLIENT_PURE_PYTHON": "1"}], ids=["", "reference"])
def test_threads_with_a_minimal_switch_interval(environment: dict[str, str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.support.checks.thread_stress"],
        cwd=Path(__file__).parents[2], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""


def test_topics_that_are_dropped_at_once_lose_no_record(
    make: Callable[..., Producer], stored: Callable[[str], list[ForeignRecord]],
    topic: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("kclient.producer.sender._TOPIC_USE_INTERVAL_MS", 0.0)
    monkeypatch.setattr("kclient.client.client_metadata.ProducerMetadata.uses", lambda *_: False)
    monkeypatch.setattr("kclient.producer.sequence_manager.MAX_IDLE_SEQUENCES", 1)
    producer = make(batch_size=200, linger_ms=0)
    topics = [f"{topic}-{number}" for number in range(3)]

    def send(thread: int) -> None:
        for number in range(200):
            producer.send(topics[number % 3], b"%d %d" % (thread, number), partition=thread % 3)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(send, range(4)))
    producer.flush(30)
    for number, each in enumerate(topics):
        by_thread: dict[bytes, list[int]] = {}
        for record in stored(each):
            thread, sent = (record.value or b"").split()
            by_thread.setdefault(thread, []).append(int(sent))
        assert by_thread == {b"%d" % thread: list(range(number, 200, 3)) for thread in range(4)}


# -- the sender's steps in a thread that waits -----------------------------------------------------


def run_sender(producer: Producer, topic: str) -> None:
    """Wait for records until the calling thread runs the sender while it waits."""
    caller = threading.get_ident()
    ran_by: list[int] = []

    def sends() -> bool:
        sent = producer.send(
            topic, b"first", on_delivery=lambda *_: ran_by.append(threading.get_ident())
        )
        sent.result(10)
        return ran_by[-1] == caller

    wait_until(sends, "the sender runs in this thread")


@pytest.mark.parametrize("count", [1, 2, 10])
def test_threads_that_wait_for_each_record_get_their_own_outcomes(
    make: Callable[..., Producer],
    stored: Callable[[str], list[ForeignRecord]],
    topic: str,
    count: int,
) -> None:
    producer = make(linger_ms=0)
    run_sender(producer, topic)

    def work(thread: int) -> list[tuple[int, int, bytes]]:
        values = [b"%d-%d" % (thread, number) for number in range(100)]
        found = [producer.send(topic, value).result(20) for value in values]
        return [
            (each.partition, each.offset, value) for each, value in zip(found, values, strict=True)
        ]

    with ThreadPoolExecutor(count) as threads:
        found = sorted(each for part in threads.map(work, range(count)) for each in part)
    records = [each for each in stored(topic) if each.value != b"first"]
    assert sorted((each.partition, each.offset, each.value) for each in records) == found


def test_thread_without_a_wait_is_served_after_waits_of_it(
    make: Callable[..., Producer], topic: str
) -> None:
    producer = make(linger_ms=0)
    for _ in range(5):
        run_sender(producer, topic)
        future = producer.send(topic, b"not waited for")
        wait_until(future.done, "the record is acknowledged")


def test_callback_in_a_waiting_thread_cannot_wait_for_another_record(
    make: Callable[..., Producer], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer = make(linger_ms=0)
    run_sender(producer, topic)
    later: list[DeliveryFuture] = []
    refused: list[str] = []

    def on_delivery(metadata: object, error: object) -> None:
        later.append(producer.send(topic, b"from the callback"))
        for call in (later[-1].result, producer.flush, producer.close):
            try:
                call()
            except IllegalStateError as illegal:
                refused.append(str(illegal).partition(":")[0])
        raise ValueError("by the application")

    for _ in range(3):  # one of them runs in this thread
        assert producer.send(topic, b"x", on_delivery=on_delivery).result(10).offset >= 0
    assert refused == ["result()", "flush()", "close()"] * 3
    assert caplog.text.count("ValueError: by the application") == 3
    assert all(each.result(10).offset >= 0 for each in later)


def test_close_ends_the_wait_of_a_thread_that_runs_the_sender(
    make: Callable[..., Producer], topic: str, cluster: EmbeddedCluster
) -> None:
    producer = make(linger_ms=0)
    ended: list[KafkaError | None] = []
    waiting = threading.Event()

    def work() -> None:
        run_sender(producer, topic)
        cluster.faults.mute()
        future = producer.send(topic, b"never acknowledged")
        waiting.set()
        ended.append(future.exception(30))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert waiting.wait(20)
        wait_until(
            lambda: producer._core._sender._client.in_flight_request_count() > 0, "it is in flight"
        )
        producer.close(0.1)
    finally:
        cluster.faults.unmute()
    worker.join(10)
    assert not worker.is_alive()
    assert isinstance(ended[0], KafkaError)
    with pytest.raises(ClosedError):
        producer.send(topic, b"late")


def test_callback_that_forks_in_a_waiting_thread_has_no_sender_in_the_child(
    make: Callable[..., Producer], topic: str
) -> None:
    producer = make(linger_ms=0, batch_size=200)
    run_sender(producer, topic)
    parent = os.getpid()
    children: list[int] = []

    def on_delivery(metadata: object, error: object) -> None:
        child = os.fork()
        if child:
            children.append(child)

    for _ in range(3):
        outcome = "returned"
        try:
            producer.send(topic, bytes(150), partition=0, on_delivery=on_delivery)
            producer.send(topic, bytes(150), partition=0).result(10)  # in the next batch
        except ForkedClientError:
            outcome = "refused"
        if os.getpid() != parent:
            os._exit(0 if outcome == "refused" else 1)
        assert outcome == "returned"
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert statuses == [0, 0, 0]
