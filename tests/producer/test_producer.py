"""The producer's public methods with the companion broker, over real sockets and threads."""

import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kclient import AdminClient, NewTopic, Producer, RecordMetadata
from kclient.common.errors import (
    BootstrapError,
    BufferExhaustedError,
    ForkedClientError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    SerializationError,
)
from kclient.producer import (
    DeliveryFuture,
    ProducerFatalError,
    ProducerInterceptor,
    ProducerRecord,
    UnknownPartitionError,
    murmur2_partition,
)
from kclient.producer.partitioner import partition_of_key
from kclient.protocol.api_keys import ApiKey
from kclient.serialization import json_serializer, string_serializer
from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import await_topic
from tests.support.clients.foreign import FOREIGN_CLIENTS, ForeignRecord

Stored = Callable[[str], list[ForeignRecord]]


# -- sending ---------------------------------------------------------------------------------------


def test_send_waiting_for_memory_skips_linger(make: Callable[..., Producer], topic: str) -> None:
    producer = make(
        linger_ms=60_000, batch_size=4_096, buffer_memory=2 * 4_096, max_block_ms=20_000
    )
    lingering = [producer.send(topic, b"x", partition=partition) for partition in range(2)]
    waiting = producer.send(topic, b"y", partition=2)
    assert [future.result(20).offset for future in lingering] == [0, 0]
    producer.flush(20)
    assert waiting.result(0).offset == 0


def test_closed_sticky_batch_skips_linger(
    cluster: EmbeddedCluster, make: Callable[..., Producer], topic: str
) -> None:
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 100, 1)]).raise_for_errors()
    producer = make(linger_ms=60_000, batch_size=16_384)
    futures = [producer.send(topic, bytes(1_000)) for _ in range(20)]
    assert futures[0].result(20).offset == 0


def test_records_arrive_as_sent(make: Callable[..., Producer], stored: Stored, topic: str) -> None:
    with make() as producer:
        sent = producer.send(
            topic, b"v", b"k", headers=[("h", b"1"), ("n", None)], timestamp_ms=1_700_000_000_000
        )
        partition = murmur2_partition(topic, b"k", 3)
        assert sent.result(10) == RecordMetadata(topic, partition, 0, 1_700_000_000_000, 1, 1)
        producer.send(topic, None, b"tombstone", partition=2).result(10)
        producer.send(topic, memoryview(b"view"), bytearray(b"array"), partition=1).result(10)
    found = {one.value: one for one in stored(topic)}
    assert found[b"v"].headers == (("h", b"1"), ("n", None))
    assert (found[b"v"].key, found[b"v"].timestamp_ms) == (b"k", 1_700_000_000_000)
    assert found[None].key == b"tombstone"
    assert found[b"view"].key == b"array"


def test_order_of_serializers_and_interceptors(
    make: Callable[..., Producer], stored: Stored, topic: str
) -> None:
    seen: list[object] = []

    class Stamp:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            seen.append(record.value)
            return record._replace(headers=[("by", b"stamp")], key="changed")

        def on_acknowledgement(self, metadata: object, error: KafkaError | None) -> None:
            seen.append(type(metadata or error).__name__)

        def close(self) -> None:
            seen.append("closed")

    class Broken:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise ValueError("broken")

        on_acknowledgement = close = on_send

    with make(
        value_serializer=json_serializer,
        key_serializer=string_serializer,
        interceptor_classes=[Broken(), Stamp()],
    ) as producer:
        delivered: list[object] = []
        producer.send(topic, {"a": 1}, "k", on_delivery=lambda m, e: delivered.append(m)).result(10)
        with pytest.raises(ValueError, match="topic"):
            producer.send("a/b", {"a": 1})
        assert producer.send_many(topic, [1, 2], ["x", "y"]).result(10) == 2
    *first, last = seen
    assert first[:4] == [{"a": 1}, "RecordMetadata", "InvalidArgumentError", 1]
    # The first record may be acknowledged before the second one is sent.
    assert sorted(map(str, first[4:])) == ["2", "RecordMetadata", "RecordMetadata"]
    assert last == "closed"
    assert len(delivered) == 1
    found = stored(topic)
    assert {one.value for one in found} == {b'{"a":1}', b"1", b"2"}
    assert {(one.key, one.headers) for one in found} == {(b"changed", (("by", b"stamp"),))}


def test_partitioners(make: Callable[..., Producer], topic: str) -> None:
    def last(topic: str, key: bytes | None, partition_count: int) -> int:
        return partition_count - 1 if key == b"last" else partition_count if key else -1

    with make(partitioner_class=last) as producer:
        assert producer.send(topic, b"", b"last").result(10).partition == 2
        assert producer.send(topic, b"", b"last", partition=0).result(10).partition == 0
        assert producer.send(topic, b"").result(10).partition in {0, 1, 2}
        with pytest.raises(UnknownPartitionError, match="got 3, expected 0 to 2"):
            producer.send(topic, b"", b"other")
        assert producer.send_many(topic, [b""] * 3, [b"last"] * 3).result(10) == 3
    with make(partitioner_ignore_keys=True, batch_size=300) as producer:
        futures = [producer.send(topic, bytes(100), b"same") for _ in range(60)]
        assert len({future.result(10).partition for future in futures}) > 1
    with make(partitioner_class="murmur3") as producer:
        assert producer.send(topic, b"", b"hello").result(10).partition == 613153351 % 3


def test_send_many(make: Callable[..., Producer], stored: Stored, topic: str) -> None:
    values: list[bytes | None] = [b"%05d" % number for number in range(5_000)]
    keys = [b"k%d" % (number % 10) if number % 3 else None for number in range(5_000)]
    with make(batch_size=4_000) as producer:
        sent = producer.send_many(topic, values, keys, headers=[("h", b"x")])
        assert len(sent) == 5_000
        assert sent.result(20) == 5_000
        assert sent.done()
        assert sent.exception(0) is None
        assert producer.send_many(topic, []).result(0) == 0
        assert producer.send_many(topic, (b"p",), partition=1, timestamps_ms=[5]).result(5) == 1
    found = stored(topic)
    assert len(found) == 5_001
    by_key: dict[bytes | None, list[bytes | None]] = {}
    for one in found:
        if one.value != b"p":
            by_key.setdefault(one.key, []).append(one.value)
            assert one.headers == (("h", b"x"),)
            if one.key is not None:
                assert one.partition == murmur2_partition(topic, one.key, 3)
    for key, seen in by_key.items():
        if key is not None:
            assert seen == sorted(seen, key=lambda value: value or b"")
    assert [one.timestamp_ms for one in found if one.value == b"p"] == [5]


def test_partitions_and_metrics(make: Callable[..., Producer], topic: str) -> None:
    with make() as producer:
        assert [info.partition for info in producer.partitions_for(topic)] == [0, 1, 2]
        for _ in range(10):
            producer.send(topic, bytes(100))
        producer.flush(10)
        values = producer.metrics()
        producer.send_many(topic, [bytes(5_000), b""])
        producer.flush(10)
        larger = producer.metrics()["record-size-max"]
    assert values["record-send-total"] == 10
    assert 100 < values["record-size-max"] < 120
    assert 5_000 < larger < 5_020
    assert values["buffer-available-bytes"] == values["buffer-total-bytes"] == 33_554_432
    assert values["batch-size-avg"] > 100
    assert values["request-latency-max"] > 0
    assert {"record-error-rate", "records-per-request-avg", "requests-in-flight"} <= set(values)
    assert 0 <= values["metadata-age"] < 60
    assert values["bufferpool-wait-ratio"] == 0


def test_unknown_partition(make: Callable[..., Producer], topic: str) -> None:
    with make(max_block_ms=600_000) as producer:
        with pytest.raises(UnknownPartitionError, match="has 3 partition") as caught:
            producer.send(topic, b"", partition=3)
        assert (caught.value.partition, caught.value.count) == (3, 3)


@pytest.mark.fault("W23")
def test_each_thread_keeps_its_order(
    make: Callable[..., Producer], stored: Stored, topic: str
) -> None:
    producer = make(batch_size=2_000, linger_ms=1, buffer_memory=40_000)

    def work(name: int) -> None:
        for number in range(1_000):
            producer.send(topic, b"%d:%06d" % (name, number), b"%d" % name)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    producer.close()
    seen: dict[bytes, list[bytes]] = {}
    for one in stored(topic):
        assert one.value is not None
        seen.setdefault(one.value.split(b":")[0], []).append(one.value)
    assert {name: len(values) for name, values in seen.items()} == {
        b"%d" % name: 1_000 for name in range(6)
    }
    assert all(values == sorted(values) for values in seen.values())


# -- waiting ---------------------------------------------------------------------------------------


def test_unreachable_brokers_are_named_with_their_errors() -> None:
    with (
        Producer(
            bootstrap_servers="127.0.0.1:1,no-such-host.invalid:9", max_block_ms=600
        ) as producer,
        pytest.raises(BootstrapError, match=r"topic 't': .*127\.0\.0\.1:1") as caught,
    ):
        producer.send("t", b"")
    assert isinstance(caught.value, KafkaTimeoutError)
    assert "refused" in str(caught.value)
    assert "no-such-host.invalid:9" in str(caught.value)


@pytest.mark.fault("W9")
def test_full_memory_times_out_with_its_name(topic: str) -> None:
    with EmbeddedCluster() as cluster:
        producer = Producer(
            bootstrap_servers=cluster.bootstrap_servers,
            buffer_memory=40_000,
            max_block_ms=300,
            linger_ms=0,
        )
        await_topic(producer, topic)
        producer.send(topic, b"").result(10)
        cluster.stop()
        started = time.monotonic()
        with pytest.raises(BufferExhaustedError, match=r"buffer\.memory=40000"):
            deque((producer.send(topic, bytes(2_000)) for _ in range(100)), 0)
        assert time.monotonic() - started >= 0.29
        assert producer.metrics()["buffer-available-bytes"] < 16_384
        assert producer.metrics()["bufferpool-wait-ratio"] > 0.005  # 0.3 s of the window of 30 s
        with pytest.raises(BufferExhaustedError) as caught:
            producer.send_many(topic, [bytes(2_000)] * 10)
        assert "of 10 records were queued before" in caught.value.__notes__[0]
        producer.close(0)
        assert producer.metrics()["buffer-available-bytes"] == 40_000


def test_serializers_of_one_argument_are_not_called_for_none(
    make: Callable[..., Producer], stored: Stored, topic: str
) -> None:
    producer = make(key_serializer=str.encode, value_serializer=lambda value: b"%d" % value)
    producer.send(topic, 5, "k", partition=0).result(10)
    producer.send_many(topic, [6, None], ["k", None], partition=0).result(10)
    assert [(one.key, one.value) for one in stored(topic)] == [
        (b"k", b"5"), (b"k", b"6"), (None, None),
    ]  # fmt: skip
    with pytest.raises(SerializationError, match="the serializer raised TypeError: %d format: a"):
        producer.send(topic, "text")


def test_interceptors_that_return_no_record_are_skipped(
    make: Callable[..., Producer], topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Forgetful(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> Any:
            return None

    seen: list[object] = []

    class Watching(ProducerInterceptor):
        def on_acknowledgement(self, metadata: object, error: object) -> None:
            seen.append(metadata)

    producer = make(interceptor_classes=[Forgetful, Watching()])
    sent = [producer.send(topic, b"x", partition=0).result(10).offset for _ in range(3)]
    assert sent == [0, 1, 2]
    producer.flush()
    assert len(seen) == 3
    assert caplog.text.count("on_send returned NoneType, expected a ProducerRecord") == 1
    assert "Forgetful object" in caplog.text


def test_send_many_reports_how_many_records_were_queued(
    make: Callable[..., Producer], topic: str
) -> None:
    def refuse_the_third(topic: str, headers: object, value: bytes) -> bytes:
        if value == b"3":
            raise ValueError("not this one")
        return value

    producer = make(value_serializer=refuse_the_third)
    with pytest.raises(SerializationError) as caught:
        producer.send_many(topic, [b"1", b"2", b"3", b"4"])
    assert caught.value.__notes__ == ["send_many: 2 of 4 records were queued before"]


@pytest.mark.fault("W16")
def test_stalled_close_returns_in_time(topic: str) -> None:
    seen: list[object] = []
    with EmbeddedCluster() as cluster:
        producer = Producer(bootstrap_servers=cluster.bootstrap_servers)
        producer.send(topic, b"").result(10)
        cluster.stop()
        futures = [
            producer.send(topic, b"x", on_delivery=lambda m, e: seen.append(e)) for _ in range(5)
        ]
        with pytest.raises(KafkaTimeoutError, match="5 records have no outcome yet"):
            producer.flush(0.2)
        with pytest.raises(KafkaTimeoutError, match="it is in flight"):
            futures[0].result(0.1)
        threads = [threading.Thread(target=producer.close, args=(0.3,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        producer.close(0.3)
        for thread in threads:
            thread.join(5)
        assert all(isinstance(future.exception(0), KafkaError) for future in futures)
        assert len(seen) == 5
        producer.close()


def test_restarted_broker_receives_every_record_once(topic: str) -> None:
    with EmbeddedCluster() as cluster:
        with Producer(bootstrap_servers=cluster.bootstrap_servers, batch_size=500) as producer:
            producer.send(topic, b"first").result(10)
            futures = [producer.send(topic, b"%05d" % number) for number in range(500)]
            cluster.stop()
            futures += [producer.send(topic, b"%05d" % number) for number in range(500, 1_000)]
            cluster.start()
            producer.flush(30)
            assert all(future.exception(0) is None for future in futures)
        found = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap_servers).read_all(topic)
        values = [one.value for one in found]
    assert values == [b"first", *(b"%05d" % number for number in range(1_000))]


@pytest.mark.fault("W20")
def test_every_call_reports_a_stopped_sender(
    make: Callable[..., Producer], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = make()
    producer.send(topic, b"x").result(10)

    def explode(now_ms: float) -> None:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(producer._core._sender, "send_due", explode)
    try:
        future: DeliveryFuture | None = producer.send(topic, b"y")
    except ProducerFatalError:
        future = None
    if future is not None:
        assert isinstance(future.exception(10), ProducerFatalError)
    task = producer._core._task
    assert task is not None
    task.join(10)
    for call in (
        lambda: producer.send(topic, b"z"),
        lambda: producer.send("another", b"z"),
        lambda: producer.send_many(topic, [b"z"]),
        lambda: producer.send_arrow(topic, pa.table({"value": [b"z"]})),
        lambda: producer.partitions_for("another"),
        producer.flush,
    ):
        with pytest.raises(ProducerFatalError, match="ZeroDivisionError: surprise") as caught:
            call()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    producer.close()


@pytest.mark.fault("W15")
def test_no_call_waits_in_the_producers_own_thread(
    make: Callable[..., Producer], topic: str
) -> None:
    producer = make(max_block_ms=60_000, buffer_memory=1_100_000)
    producer.partitions_for(topic)
    raised: dict[str, BaseException] = {}

    def fill() -> None:
        for _ in range(100):
            producer.send(topic, bytes(100_000))

    calls: dict[str, Callable[[], object]] = {
        "memory": fill,
        "topic": lambda: producer.send("not-yet-known", b"x"),
        "partition": lambda: producer.send(topic, b"x", partition=99),
        "partitions_for": lambda: producer.partitions_for("nor-this"),
        "result": lambda: producer.send(topic, b"x").result(10),
        "flush": producer.flush,
        "close": producer.close,
    }
    finished, done = threading.Event(), threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if finished.is_set() or not str(record.threadName).endswith("-sender"):
                return
            finished.set()  # first: these calls log, too
            for name, call in calls.items():
                try:
                    call()
                except KafkaError as error:
                    raised[name] = error
            done.set()

    log, handler = logging.getLogger("kclient"), Handler()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)  # requests are logged
    try:
        producer.send(topic, b"x")
        assert done.wait(10)
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert list(raised) == list(calls)
    for error in raised.values():
        assert "in the producer's own thread, which runs delivery callbacks" in str(error)
    assert type(raised["memory"]) is BufferExhaustedError
    assert producer.send(topic, b"later").result(10).topic == topic


@pytest.mark.fault("W15")
def test_flush_and_close_in_a_callback_raise(make: Callable[..., Producer], topic: str) -> None:
    producer = make()
    errors: list[BaseException] = []
    again: list[RecordMetadata] = []

    def misuse(metadata: object, error: object) -> None:
        for call in (producer.flush, producer.close):
            try:
                call()
            except IllegalStateError as refused:
                errors.append(refused)
        producer.send(topic, b"again").add_done_callback(lambda f: again.append(f.result(0)))

    producer.send(topic, b"x", on_delivery=misuse).result(10)
    producer.flush(10)
    producer.flush(10)
    assert [str(error).split(":")[0] for error in errors] == ["flush()", "close()"]
    assert len(again) == 1


@pytest.mark.fault("W18")
@pytest.mark.parametrize("call", ["send", "flush", "result", "close"])
def test_ctrl_c_ends_every_wait(call: str, topic: str) -> None:
    with EmbeddedCluster() as cluster:
        producer = Producer(
            bootstrap_servers=cluster.bootstrap_servers,
            max_block_ms=600_000,
            delivery_timeout_ms=600_000,
        )
        producer.send(topic, b"").result(10)
        cluster.stop()
        future = producer.send(topic, b"x")
        waits: dict[str, Callable[[], object]] = {
            "send": lambda: producer.send("another", b""),
            "flush": producer.flush,
            "result": future.result,
            "close": producer.close,
        }

        def interrupt(number: int, frame: object) -> None:
            signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.15)
            with pytest.raises(KeyboardInterrupt):
                waits[call]()
        finally:
            signal.signal(signal.SIGALRM, before)
        producer.close(0.1)
        assert isinstance(future.exception(0), KafkaError)


def test_key_is_sent_to_a_partition_that_was_added(
    cluster: EmbeddedCluster, make: Callable[..., Producer], topic: str
) -> None:
    producer = make(metadata_max_age_ms=100)
    before = len(producer.partitions_for(topic))
    keys = [b"%d" % number for number in range(50)]
    added = next(key for key in keys if partition_of_key(key, before + 1) == before)
    assert producer.send(topic, b"v", added).result(10).partition < before
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_partitions({topic: before + 1}).raise_for_errors()
    wait_until(
        lambda: producer.send(topic, b"v", added).result(10).partition == before,
        "the added partition to be used",
    )


# -- processes -------------------------------------------------------------------------------------


@pytest.mark.fault("W19")
def test_forked_child_raises_and_the_parent_continues(
    make: Callable[..., Producer], topic: str
) -> None:
    producer = make()
    producer.send(topic, b"parent").result(10)
    child = os.fork()
    if child == 0:
        seen = 0
        for call in (
            lambda: producer.send(topic, b"child"),
            lambda: producer.send_many(topic, [b"child"]),
            lambda: producer.partitions_for(topic),
            producer.flush,
        ):
            try:
                call()
            except ForkedClientError as error:
                seen += f"created in process {os.getppid()}" in str(error)
        producer.close()
        os._exit(seen)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    assert producer.send(topic, b"parent", partition=0).result(10).offset >= 0


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c",
         textwrap.dedent(program), *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.fault("W17")
def test_process_exit_sends_queued_records(
    cluster: EmbeddedCluster, stored: Stored, topic: str
) -> None:
    ended = run_python(
        """
        import sys
        from kclient import Producer
        producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60000)
        for number in range(100):
            producer.send(sys.argv[2], b"%d" % number)
        """,
        cluster.bootstrap_servers,
        topic,
    )
    assert ended.returncode == 0, ended.stderr
    assert "never closed" in ended.stderr
    assert len(stored(topic)) == 100


@pytest.mark.fault("W17")
def test_process_exit_reports_lost_records() -> None:
    ended = run_python(
        """
        import sys
        from kclient import Producer
        from kclient.producer import producer_core
        from kclient.testing.embedded_cluster import EmbeddedCluster
        producer_core.EXIT_TIMEOUT = 0.5
        with EmbeddedCluster() as cluster:
            producer = Producer(bootstrap_servers=cluster.bootstrap_servers)
            producer.send("t", b"").result(10)
        for number in range(7):
            producer.send("t", b"lost")
        """
    )
    assert ended.returncode == 0, ended.stderr
    message = (
        r"ended with 7 records unsent; the last error was: .*127\.0\.0\.1:\d+: .*[Cc]onnection"
    )
    assert len(re.findall(message, ended.stderr)) == 1
    assert "close() the producer first" not in ended.stderr  # closing would not have helped
    assert ended.stderr.count("unsent") == 1


@pytest.mark.fault("W17")
def test_process_exit_is_not_blocked_by_a_callback(cluster: EmbeddedCluster, topic: str) -> None:
    ended = run_python(
        """
        import sys, threading
        from kclient import Producer
        from kclient.producer import producer_core
        producer_core.EXIT_TIMEOUT = 0.5
        producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=0)
        inside = threading.Event()
        def never_return(metadata, error):
            inside.set()
            threading.Event().wait()
        producer.send(sys.argv[2], b"seen", on_delivery=never_return)
        inside.wait(20)
        for number in range(3):
            producer.send(sys.argv[2], b"lost")
        """,
        cluster.bootstrap_servers,
        topic,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("records unsent: close() the producer first") == 1


@pytest.mark.fault("W17")
def test_process_exit_is_not_blocked_by_a_silent_broker() -> None:
    with EmbeddedCluster() as cluster:
        cluster.faults.delay(ApiKey.PRODUCE, 60, nth=2)
        ended = run_python(
            """
            import sys
            from kclient import Producer
            from kclient.producer import producer_core
            producer_core.EXIT_TIMEOUT = 0.5
            producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=0)
            producer.send("t", b"").result(20)
            futures = [producer.send("t", b"lost") for number in range(5)]
            futures[0].add_done_callback(lambda future: print(future.exception(0)))
            """,
            cluster.bootstrap_servers,
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr.count("5 records unsent: close() the producer first") == 1
        assert "before the acknowledgement" in ended.stdout


@pytest.mark.fault("W16")
def test_unreferenced_producer_warns_and_delivers(
    make: Callable[..., Producer], cluster: EmbeddedCluster, topic: str
) -> None:
    producer = Producer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=1_000)
    future = producer.send(topic, b"x")
    producers = [producer]
    del producer
    with pytest.warns(ResourceWarning, match="was never closed"):
        producers.clear()
    assert future.result(10).offset == 0
