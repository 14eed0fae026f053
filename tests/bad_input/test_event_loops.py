"""Blocking calls within a running event loop."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kclient.errors import EventLoopError, KafkaTimeoutError
from kclient.testing import EmbeddedCluster
from tests.bad_input.conftest import Make

PART = TopicPartition("t", 0)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "t")
ROOT = Path(__file__).parents[2]

Call = Callable[[Any], object]

WAITING: list[tuple[Any, str, Call]] = [
    (Producer, "flush", lambda p: p.flush()),
    (Producer, "flush", lambda p: p.flush(1)),
    (Producer, "partitions_for", lambda p: p.partitions_for("t")),
    (Consumer, "poll", lambda c: c.poll()),
    (Consumer, "poll_columns", lambda c: c.poll_columns(0.1)),
    (Consumer, "poll", next),
    (Consumer, "commit", lambda c: c.commit()),
    (Consumer, "commit", lambda c: c.commit({PART: 1}, timeout=1)),
    (Consumer, "committed", lambda c: c.committed([PART])),
    (Consumer, "position", lambda c: c.position(PART)),
    (Consumer, "lag", lambda c: c.lag(PART)),
    (Consumer, "beginning_offsets", lambda c: c.beginning_offsets([PART])),
    (Consumer, "end_offsets", lambda c: c.end_offsets([PART], 5)),
    (Consumer, "offsets_for_times", lambda c: c.offsets_for_times({PART: 0})),
    (AdminClient, "create_topics", lambda a: a.create_topics([NewTopic("t")])),
    (AdminClient, "delete_topics", lambda a: a.delete_topics(["t"])),
    (AdminClient, "list_topics", lambda a: a.list_topics(timeout=1)),
    (AdminClient, "describe_topics", lambda a: a.describe_topics(["t"])),
    (AdminClient, "create_partitions", lambda a: a.create_partitions({"t": 2})),
    (AdminClient, "describe_cluster", lambda a: a.describe_cluster()),
    (AdminClient, "describe_configs", lambda a: a.describe_configs(TOPIC)),
    (AdminClient, "list_offsets", lambda a: a.list_offsets({PART: OffsetSpec.latest()})),
    (AdminClient, "delete_records", lambda a: a.delete_records({PART: -1})),
    (AdminClient, "list_groups", lambda a: a.list_groups()),
    (AdminClient, "describe_consumer_groups", lambda a: a.describe_consumer_groups(["g"])),
    (AdminClient, "list_consumer_group_offsets", lambda a: a.list_consumer_group_offsets("g")),
    (AdminClient, "describe_features", lambda a: a.describe_features()),
    (AdminClient, "delete_consumer_groups", lambda a: a.delete_consumer_groups(["g"])),
]

GROUP: dict[str, Any] = {"group_id": "g"}


COMMIT = ("consumer", "commit")


def in_a_loop(call: Callable[[], object]) -> None:
    async def run() -> None:
        call()

    asyncio.run(run())


@pytest.mark.parametrize(("kind", "name", "call"), WAITING)
def test_blocking_calls_are_rejected_in_event_loop_before_any_request(
    make: Make, kind: Any, name: str, call: Call
) -> None:
    client = make(kind, **(GROUP if kind is Consumer else {}))
    owner = kind.__name__.removesuffix("Client").lower()
    with pytest.raises(RuntimeError) as caught:
        in_a_loop(lambda: call(client))
    assert isinstance(caught.value, EventLoopError)
    text = str(caught.value)
    assert text.startswith(
        f"{name}: called inside a running event loop, expected a thread of its own; "
        f"await asyncio.to_thread({owner}.{name}, …)"
    )
    assert text.endswith(f"or use kclient.aio.{kind.__name__}, whose calls are awaited")
    assert ("cancel" in text) is (name in {"poll", "poll_columns"} or (owner, name) == COMMIT)


def test_send_to_an_unknown_topic_in_an_event_loop_has_the_way_out(make: Make) -> None:
    producer = make(Producer, max_block_ms=10)
    with pytest.raises(KafkaTimeoutError, match=r"partitions_for, topic.*max_block_ms=0"):
        in_a_loop(lambda: producer.send("nowhere", b"x"))


def test_result_is_available_but_not_awaited_in_event_loop() -> None:
    with EmbeddedCluster() as cluster, Producer(
        bootstrap_servers=cluster.bootstrap_servers, linger_ms=60_000
    ) as producer:  # fmt: skip
        producer.partitions_for("t")

        async def run() -> None:
            one = producer.send("t", b"1")
            many = producer.send_many("t", [b"2", b"3"])
            for pending in (one, many):
                with pytest.raises(EventLoopError, match="result: called inside a running event"):
                    pending.result(5)
                with pytest.raises(EventLoopError, match=r"to_thread\((future|delivery)\.result, "):
                    pending.exception()
                with pytest.raises(TimeoutError):
                    pending.result(0)
            await asyncio.to_thread(producer.flush)
            assert one.result(5).offset == 0
            assert one.exception() is None
            assert many.result() == 2

        asyncio.run(run())


def test_alternatives_of_the_how_to_page_work() -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        producer = Producer(bootstrap_servers=servers)
        consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="earliest", **GROUP)

        async def deliver(value: bytes) -> int:
            return (await producer.send("t", value)).offset

        async def run() -> None:
            await asyncio.to_thread(producer.partitions_for, "t")
            offsets = await asyncio.gather(*(deliver(b"%d" % number) for number in range(20)))
            assert sorted(offsets) == list(range(20))
            consumer.subscribe("t")
            read: list[bytes | None] = []
            while len(read) < 20:
                read += [one.value for one in await asyncio.to_thread(consumer.poll, 1.0)]
                await asyncio.to_thread(consumer.commit)
            assert sorted(map(int, filter(None, read))) == list(range(20))

        try:
            asyncio.run(run())
        finally:
            consumer.close()
            producer.close()


def test_calls_that_do_not_wait_and_close_work_in_event_loop() -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        with AdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("t")]).raise_for_errors()

        async def run() -> None:
            with Producer(bootstrap_servers=servers, linger_ms=60_000) as producer:
                future = producer.send("t", b"1")
                with pytest.raises(TimeoutError):
                    producer.flush(0)
            assert future.result().offset == 0
            revoked: list[object] = []

            def on_revoked(partitions: object) -> None:
                consumer.commit()  # part of close(), which is let through
                revoked.append(partitions)

            with Consumer(
                bootstrap_servers=servers, auto_offset_reset="earliest", **GROUP
            ) as consumer:
                consumer.subscribe("t", on_revoked=on_revoked)
                while not (records := consumer.poll(0)):
                    await asyncio.sleep(0)
                assert [record.value for record in records] == [b"1"]
                consumer.commit_async()
                consumer.seek_to_beginning()
            assert revoked == [[PART]]
            AdminClient(bootstrap_servers=servers).close()

        asyncio.run(run())


def test_event_loop_of_another_thread_is_ignored(make: Make) -> None:
    running, over = threading.Event(), threading.Event()

    def hold() -> None:
        running.set()
        over.wait(30)

    thread = threading.Thread(target=in_a_loop, args=(hold,))
    thread.start()
    assert running.wait(30)
    try:
        make(Producer).flush()
    finally:
        over.set()
        thread.join(30)


def test_interactive_shells_may_call_blocking_methods(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = make(Producer)
    shell = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(EventLoopError):  # IPython in a terminal
        in_a_loop(producer.flush)
    shell.kernel = object()
    in_a_loop(producer.flush)


CELL = """
import asyncio
from kclient import Consumer, Producer
asyncio.get_running_loop()  # which raises where there is none
with Producer(bootstrap_servers={servers!r}) as producer:
    producer.send("t", b"from a cell").result(20)
    producer.flush()
consumer = Consumer(bootstrap_servers={servers!r}, group_id="cell", auto_offset_reset="earliest")
consumer.subscribe("t")
print(next(consumer).value)
consumer.close()
"""


def test_notebook_cells_may_call_blocking_methods() -> None:
    from jupyter_client.manager import start_new_kernel  # noqa: PLC0415 (slow)

    manager, client = start_new_kernel(kernel_name="python3", cwd=ROOT)
    printed: list[str] = []
    try:
        with EmbeddedCluster() as cluster:
            response = client.execute_interactive(
                CELL.format(servers=cluster.bootstrap_servers),
                timeout=60,
                output_hook=lambda message: printed.append(str(message["content"])),
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert response["content"]["status"] == "ok", printed
    assert "b'from a cell'" in "".join(printed)


def test_asyncio_is_not_imported() -> None:
    reported = "import sys, kclient, kclient.testing; print('asyncio' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", reported],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
    )
    assert ended.stdout == "False\n"
