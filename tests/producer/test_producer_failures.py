"""The producer's public methods during failures of the broker, the topic or the application."""

import gc
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.common.broker_errors import (
    KafkaStorageError,
    LeaderNotAvailableError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    ProducerFencedError,
    RequestTimedOutError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.common.errors import BufferExhaustedError, KafkaError
from kclient.producer import (
    DeliveryFuture,
    DeliveryTimeoutError,
    ProducerFatalError,
    UnknownPartitionError,
)
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"auto.create.topics.enable": False}) as running:
        yield running


@pytest.fixture
def cluster(shared: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    yield shared
    shared.faults.heal()


@pytest.fixture
def admin(cluster: EmbeddedCluster) -> Iterator[AdminClient]:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as made:
        yield made


@pytest.fixture
def topic(admin: AdminClient, request: pytest.FixtureRequest) -> str:
    name = "".join(each if each.isalnum() else "-" for each in request.node.name)
    admin.create_topics([NewTopic(name, 3)]).raise_for_errors()
    return name


class Sending:
    """A producer, and the outcomes it reported for each record."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, **options: Any) -> None:
        self.topic = topic
        self.seen: Counter[int] = Counter()
        self.futures: list[DeliveryFuture] = []
        self.producer = Producer(
            bootstrap_servers=cluster.bootstrap_servers,
            **{"linger_ms": 0, "request_timeout_ms": 1_000, **options},
        )
        self.producer.send(topic, b"first", partition=0).result(10)

    def send(self, count: int = 1, partition: int = 0) -> list[DeliveryFuture]:
        sent = []
        for number in range(len(self.futures), len(self.futures) + count):
            sent.append(
                self.producer.send(
                    self.topic, b"%d" % number, partition=partition,
                    on_delivery=partial(self._record_outcome, number),
                )
            )  # fmt: skip
            self.futures.append(sent[-1])
        return sent

    def _record_outcome(self, number: int, metadata: object, error: object) -> None:
        self.seen[number] += 1

    def each_ended_once(self) -> bool:
        done = [number for number, future in enumerate(self.futures) if future.done()]
        return self.seen == dict.fromkeys(done, 1) and len(done) == len(self.futures)


@pytest.fixture
def make(cluster: EmbeddedCluster, topic: str) -> Iterator[Callable[..., Sending]]:
    made: list[Sending] = []

    def sending(**options: Any) -> Sending:
        made.append(Sending(cluster, topic, **options))
        return made[-1]

    yield sending
    for each in made:
        each.producer.close(0)


# -- failures of brokers ---------------------------------------------------------------------------


@pytest.mark.fault("W1", "W13")
@pytest.mark.parametrize(
    "error",
    [
        NotLeaderOrFollowerError, LeaderNotAvailableError, KafkaStorageError,
        UnknownTopicOrPartitionError, NotEnoughReplicasError, NotEnoughReplicasAfterAppendError,
    ],
)  # fmt: skip
def test_retriable_errors_are_retried_in_order(
    cluster: EmbeddedCluster, make: Callable[..., Sending], error: type[KafkaError]
) -> None:
    sending = make(batch_size=100)
    appended = error is NotEnoughReplicasAfterAppendError
    cluster.faults.fail(ApiKey.PRODUCE, error, handled=appended, times=3)
    futures = sending.send(20)
    assert [future.result(20).offset for future in futures] == list(range(1, 21))
    assert sending.each_ended_once()


@pytest.mark.fault("W10", "W13")
@pytest.mark.parametrize(
    "error",
    [
        NotLeaderOrFollowerError, UnknownTopicOrPartitionError, KafkaStorageError,
        NotEnoughReplicasAfterAppendError, RequestTimedOutError, UnknownServerError,
    ],
)  # fmt: skip
def test_error_after_the_append_is_possibly_written(
    cluster: EmbeddedCluster, make: Callable[..., Sending], topic: str, error: type[KafkaError]
) -> None:
    sending = make(delivery_timeout_ms=1_000, request_timeout_ms=500, linger_ms=0)
    cluster.faults.fail(ApiKey.PRODUCE, error, handled=True, nth=1, times=1)
    cluster.faults.fail(ApiKey.PRODUCE, NotLeaderOrFollowerError, nth=2, times=None)
    (future,) = sending.send()
    failure = future.exception(10)
    assert failure is not None
    assert failure.possibly_written
    with Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        ends = consumer.end_offsets([TopicPartition(topic, each) for each in range(3)])
    assert sum(ends.values()) == 2


@pytest.mark.fault("W3", "W4")
def test_lost_or_late_responses_cause_no_duplicates(
    cluster: EmbeddedCluster, make: Callable[..., Sending]
) -> None:
    sending = make(batch_size=100, request_timeout_ms=300)
    cluster.faults.drop_response(ApiKey.PRODUCE, nth=1, times=2)
    late = cluster.faults.delay(ApiKey.PRODUCE, 0.6, response_only=True, nth=5, times=1)
    futures = sending.send(20)
    assert [future.result(20).offset for future in futures] == list(range(1, 21))
    wait_until(lambda: late.hits == 1, "a response was late")
    assert sending.each_ended_once()


@pytest.mark.fault("W7")
def test_fenced_producer_raises_at_every_call(
    cluster: EmbeddedCluster, make: Callable[..., Sending], topic: str
) -> None:
    sending = make()
    # Of each attempt: on a busy machine the first response may come after the request timeout.
    cluster.faults.fail(ApiKey.PRODUCE, ProducerFencedError, times=None)
    (future,) = sending.send()
    assert isinstance(future.exception(10), ProducerFencedError)
    producer = sending.producer
    wait_until(lambda: producer._core._sender.failure is not None, "the sender has given up")
    for call in (
        lambda: producer.send(topic, b"late"),
        lambda: producer.send_many(topic, [b"late"]),
        producer.flush,
    ):
        with pytest.raises(ProducerFencedError, match="PRODUCER_FENCED") as caught:
            call()
        assert isinstance(caught.value.__cause__, ProducerFencedError)


@pytest.mark.fault("W12")
def test_topic_recreated_with_fewer_partitions(
    admin: AdminClient, make: Callable[..., Sending], topic: str
) -> None:
    sending = make(
        metadata_max_age_ms=200, delivery_timeout_ms=1_200, request_timeout_ms=500,
        max_block_ms=1_000,
    )  # fmt: skip
    assert sending.send(3, partition=2)[-1].result(10).offset == 2
    admin.delete_topics([topic]).raise_for_errors()
    (lost,) = sending.send(partition=2)
    error = lost.exception(10)
    assert isinstance(error, DeliveryTimeoutError)
    assert not error.possibly_written
    admin.create_topics([NewTopic(topic, 1)]).raise_for_errors()
    producer = sending.producer
    wait_until(lambda: len(producer.partitions_for(topic)) == 1, "the new topic is known")
    with pytest.raises(UnknownPartitionError, match="has 1 partition"):
        producer.send(topic, b"x", partition=2)
    # Sequences restart: a broker without state of the producer accepts any first one.
    offsets = [producer.send(topic, b"x").result(10).offset for _ in range(3)]
    assert offsets == [0, 1, 2]
    assert sending.each_ended_once()


@pytest.mark.fault("W9")
def test_full_buffer_times_out_and_frees_everything(
    cluster: EmbeddedCluster, make: Callable[..., Sending], topic: str
) -> None:
    sending = make(buffer_memory=2_000, batch_size=1_000, max_block_ms=200)
    producer = sending.producer
    cluster.faults.mute()

    def fill() -> None:
        for _ in range(10):
            producer.send(topic, bytes(700), partition=0)

    with pytest.raises(BufferExhaustedError, match=r"buffer\.memory=2000"):
        fill()

    class Callback:
        def __call__(self, metadata: object, error: object) -> None: ...

    def fail() -> weakref.ref[Callback]:
        callback = Callback()
        started = time.monotonic()
        with pytest.raises(BufferExhaustedError):
            producer.send(topic, bytes(700), partition=0, on_delivery=callback)
        assert time.monotonic() - started >= 0.19
        return weakref.ref(callback)

    left = [fail() for _ in range(3)]
    gc.collect()
    # The last one is cached as checked.
    assert [reference() for reference in left[:2]] == [None] * 2
    cluster.faults.unmute()
    producer.flush(20)
    wait_until(lambda: producer.metrics()["buffer-available-bytes"] == 2_000, "all memory is free")
    assert producer.metrics()["buffer-exhausted-total"] == 4


# -- failures of applications ----------------------------------------------------------------------


@pytest.mark.fault("W15")
@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_callback_that_raises_does_not_affect_others(
    make: Callable[..., Sending], topic: str, raised: type[BaseException],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    sending = make(linger_ms=50)
    producer = sending.producer

    def fail(metadata: object, error: object) -> None:
        raise raised("mine")

    bad = producer.send(topic, b"bad", partition=0, on_delivery=fail)
    good = sending.send(3)
    producer.flush(10)
    assert [future.exception(10) for future in (bad, *good)] == [None] * 4
    assert sending.each_ended_once()
    assert "a delivery callback raised" in caplog.text
    assert producer.metrics()["callback-error-total"] == 1
    assert sending.send()[0].exception(10) is None


@pytest.mark.fault("W16")
@pytest.mark.parametrize("timeout", [0, 0.3, None])
def test_close_while_no_response_arrives(
    cluster: EmbeddedCluster, make: Callable[..., Sending], timeout: float | None
) -> None:
    sending = make(delivery_timeout_ms=1_000 if timeout is None else 600_000)
    cluster.faults.mute()
    sending.send(5)
    wait_until(lambda: sending.producer.metrics()["requests-in-flight"] > 0, "it was sent")
    sending.send(5, partition=1)
    closers = [
        threading.Thread(target=sending.producer.close, args=(timeout,), daemon=True)
        for _ in range(3)
    ]
    for closer in closers:
        closer.start()
    sending.producer.close(timeout)
    for closer in closers:
        closer.join(10)
        assert not closer.is_alive()
    sending.producer.close()
    assert sending.each_ended_once()
    errors = [future.exception(0) for future in sending.futures]
    assert all(isinstance(error, KafkaError) for error in errors)
    assert errors[0] is not None
    assert errors[0].possibly_written
    if timeout is None:
        assert isinstance(errors[0], DeliveryTimeoutError)


@pytest.mark.fault("W16")
def test_unreferenced_producer_while_no_response_arrives(
    cluster: EmbeddedCluster, topic: str
) -> None:
    sending = Sending(cluster, topic, delivery_timeout_ms=3_000)
    cluster.faults.mute()
    sending.send(5)
    task = sending.producer._core._task
    with pytest.warns(ResourceWarning, match="was never closed"):
        del sending.producer
    assert not sending.futures[-1].done()
    assert isinstance(sending.futures[-1].exception(10), DeliveryTimeoutError)
    assert sending.each_ended_once()
    assert task is not None
    assert task.join(10)


@pytest.mark.fault("W15", "W16")
def test_close_while_a_callback_does_not_return(
    make: Callable[..., Sending], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    sending = make()
    producer = sending.producer
    inside, resume = threading.Event(), threading.Event()

    def linger(metadata: object, error: object) -> None:
        inside.set()
        resume.wait(600)

    seen = producer.send(topic, b"x", partition=0, on_delivery=linger)
    assert inside.wait(10)
    sending.send(3)
    producer.close(0.2)
    assert "4 record(s) had no outcome and failed" in caplog.text
    assert seen.done()
    assert not any(future.done() for future in sending.futures)
    resume.set()
    task = producer._core._task
    assert task is not None
    assert task.join(10)
    assert seen.exception(0) is None
    assert sending.each_ended_once()


# -- unexpected errors -----------------------------------------------------------------------------


@pytest.mark.fault("W20")
@pytest.mark.parametrize("raised", [ZeroDivisionError, MemoryError, SystemExit])
@pytest.mark.parametrize("at_the_end", [False, True], ids=["", "closing fails, too"])
def test_error_in_the_sender_fails_every_waiting_call(
    cluster: EmbeddedCluster, make: Callable[..., Sending], topic: str,
    monkeypatch: pytest.MonkeyPatch, raised: type[BaseException], at_the_end: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    sending = make(buffer_memory=2_000, batch_size=1_000)
    producer, ended = sending.producer, []
    cluster.faults.mute()
    sending.send()

    def block(call: Callable[[], object]) -> None:
        try:
            call()
        except ProducerFatalError as error:
            ended.append(error)

    calls: list[Callable[[], object]] = [
        lambda: [producer.send(topic, bytes(700), partition=1) for _ in range(10)],
        lambda: producer.send("unknown", b"x"),
        sending.futures[0].result,
    ]
    threads = [threading.Thread(target=block, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    wait_until(lambda: producer._core._accumulator.pool.queued() == 1, "one waits for memory")

    def explode(*_: object) -> None:
        raise raised("surprise")

    close_client = producer._core._sender._client.close
    if at_the_end:
        monkeypatch.setattr(producer._core._sender._client, "close", explode)
    monkeypatch.setattr(producer._core._sender, "send_due", explode)
    producer._core._sender.wakeup()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(ended) == 3
    for error in ended:
        assert isinstance(error.__cause__, raised)
        assert "surprise" in str(error)
    for later in (lambda: producer.send(topic, b"x"), producer.flush):
        with pytest.raises(ProducerFatalError, match="surprise"):
            later()
    producer.close()
    assert sending.each_ended_once()
    assert "an unexpected error stopped" in caplog.text
    assert sys.exc_info() == (None, None, None)
    if at_the_end:
        close_client()  # its sockets are still open
