"""The asyncio admin client, against the companion broker."""

import asyncio
import gc
import inspect
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kclient import AdminClient as BlockingAdminClient
from kclient import NewTopic
from kclient.admin.admin_types import ConfigResource, ConfigResourceType, CreatedTopic
from kclient.admin.results import Results
from kclient.aio import AdminClient
from kclient.common.errors import (
    BootstrapError,
    ClosedError,
    ForkedClientError,
    IllegalStateError,
    InvalidTypeError,
    KafkaTimeoutError,
)
from kclient.testing import ApiKey, EmbeddedCluster
from tests.aio.conftest import Loop
from tests.support.clients.cancelled_calls import cancel_at_each_suspension

UNREACHABLE = "127.0.0.1:1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        yield running


def client(cluster: EmbeddedCluster) -> AdminClient:
    return AdminClient(bootstrap_servers=cluster.bootstrap_servers)


async def until(is_met: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not is_met():
            await asyncio.sleep(0.001)


# --- calls


def public_methods(kind: type) -> dict[str, Any]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


def test_calls_are_those_of_the_blocking_client() -> None:
    blocking, awaited = public_methods(BlockingAdminClient), public_methods(AdminClient)
    assert blocking.keys() == awaited.keys()
    for name, method in awaited.items():
        assert inspect.iscoroutinefunction(method)
        assert inspect.signature(method) == inspect.signature(blocking[name])
        assert method.__qualname__ == f"AdminClient.{name}"
        assert name == "close" or method.__doc__ == blocking[name].__doc__


def test_topic_is_created_described_and_deleted(cluster: EmbeddedCluster, loop: Loop) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            created = await admin.create_topics(NewTopic("orders", 3), timeout=10)
            assert created["orders"].num_partitions == 3
            described = await admin.describe_topics("orders")
            assert described["orders"].topic_id == created["orders"].topic_id
            await admin.delete_topics("orders")
            assert "orders" not in {topic.name for topic in await admin.list_topics()}

    loop(test)


def test_tasks_share_a_client(cluster: EmbeddedCluster, loop: Loop) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            names = [f"shared-{number}" for number in range(20)]
            await asyncio.gather(*(admin.create_topics(NewTopic(name)) for name in names))
            found = await asyncio.gather(*(admin.describe_topics(name) for name in names))
            assert [list(each) for each in found] == [[name] for name in names]
            (await admin.delete_topics(names)).raise_for_errors()

    loop(test)


def test_failed_calls_raise_the_errors_of_the_blocking_client(loop: Loop) -> None:
    async def test() -> None:
        async with AdminClient(bootstrap_servers=UNREACHABLE) as admin:
            with pytest.raises(InvalidTypeError, match="names: got 5"):
                await admin.delete_topics(5)  # type: ignore[arg-type]  # refused by the typing, too
            with pytest.raises(BootstrapError, match="Connection refused"):
                await admin.list_topics(timeout=0.1)

    loop(test)


def test_deprecated_call_warns_at_the_line_of_its_caller(loop: Loop) -> None:
    async def test() -> None:
        async with AdminClient(bootstrap_servers=UNREACHABLE) as admin:
            topic = ConfigResource(ConfigResourceType.TOPIC, "t")
            with (
                pytest.warns(DeprecationWarning, match="use incremental_alter") as caught,
                pytest.raises(KafkaTimeoutError),
            ):
                (await admin.alter_configs({topic: {"a": "1"}}, timeout=0)).raise_for_errors()
            assert [each.filename for each in caught] == [__file__]

    loop(test)


def test_call_at_a_silent_broker_ends_at_its_timeout(cluster: EmbeddedCluster, loop: Loop) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            await admin.describe_cluster()
            cluster.faults.mute()
            try:
                with pytest.raises(KafkaTimeoutError, match="DESCRIBE_CLUSTER at"):
                    await admin.describe_cluster(timeout=0.1)
            finally:
                cluster.faults.unmute()
            assert (await admin.describe_cluster()).nodes

    loop(test)


# --- cancellation


def test_response_that_came_while_the_loop_was_blocked_is_not_a_timeout(
    cluster: EmbeddedCluster, loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "kclient")

    async def test() -> None:
        async with AdminClient(
            bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=500
        ) as admin:
            await admin.describe_cluster()
            # The loop is blocked once the request was written, unless its response was very fast.
            while not re.search(r"DESCRIBE_CLUSTER response .* after [67]\d\d\.", caplog.text):
                call = asyncio.create_task(admin.describe_cluster())
                asyncio.get_running_loop().call_soon(time.sleep, 0.6)
                await call

    loop(test)
    assert "no response to DESCRIBE_CLUSTER" not in caplog.text


@pytest.mark.parametrize("is_connected", [False, True])
def test_call_can_be_cancelled_at_each_suspension(
    cluster: EmbeddedCluster, loop: Loop, is_connected: bool
) -> None:
    async def test() -> None:
        admin = client(cluster)
        if is_connected:
            await admin.describe_cluster()

        async def create(number: int) -> Results[str, CreatedTopic]:
            return await admin.create_topics(NewTopic(f"cancelled-{number}"))

        async def check(number: int, outcome: object) -> None:
            nonlocal admin
            name = f"cancelled-{number}"
            names = {topic.name for topic in await admin.list_topics(timeout=5)}
            if isinstance(outcome, asyncio.CancelledError):
                # Without a note, nothing was sent.
                assert hasattr(outcome, "__notes__") or name not in names
            if name in names:
                await admin.delete_topics(name)
            if not is_connected:
                await admin.close()
                admin = client(cluster)

        assert await cancel_at_each_suspension(create, check) > (0 if is_connected else 3)
        await admin.close()

    loop(test)


def test_late_response_to_a_cancelled_call_is_dropped(cluster: EmbeddedCluster, loop: Loop) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            await admin.describe_cluster()
            requests = cluster.faults.requests
            requests.clear()
            cluster.faults.mute()
            call = asyncio.create_task(admin.create_topics(NewTopic("late")))
            await until(lambda: requests)
            call.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await call
            assert "CREATE_TOPICS at " in caught.value.__notes__[0]
            cluster.faults.unmute()
            assert "late" in {topic.name for topic in await admin.list_topics()}
            await admin.delete_topics("late")
            apis = [each.api for each in requests]
            assert apis == [ApiKey.CREATE_TOPICS, ApiKey.METADATA, ApiKey.DELETE_TOPICS]
            assert len({each.connection_id for each in requests}) == 1

    loop(test)


def test_cancelled_call_that_changes_nothing_has_no_note(
    cluster: EmbeddedCluster, loop: Loop
) -> None:
    async def test() -> None:
        async with client(cluster) as admin:

            async def describe(_: int) -> object:
                return await admin.describe_cluster(timeout=5)

            async def check(_: int, outcome: object) -> None:
                assert not hasattr(outcome, "__notes__")

            assert await cancel_at_each_suspension(describe, check)

    loop(test)


def test_timeout_of_the_caller_leaves_the_client_usable(
    cluster: EmbeddedCluster, loop: Loop
) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await admin.list_topics()
            assert (await admin.describe_cluster(timeout=5)).nodes

    loop(test)


def test_call_that_is_cancelled_when_its_turn_comes_passes_it_on(
    cluster: EmbeddedCluster, loop: Loop
) -> None:
    async def test() -> None:
        async with client(cluster) as admin:
            await admin.describe_cluster()
            cluster.faults.requests.clear()
            cluster.faults.mute()
            running, woken, waiting = (
                asyncio.create_task(admin.describe_cluster(timeout=30)) for _ in range(3)
            )
            await until(lambda: cluster.faults.requests)
            running.cancel()
            woken.cancel()
            cluster.faults.unmute()
            async with asyncio.timeout(10):
                assert (await waiting).nodes
            assert [running.cancelled(), woken.cancelled()] == [True, True]

    loop(test)


# --- life


def test_client_is_bound_to_the_loop_of_its_first_call(cluster: EmbeddedCluster) -> None:
    admin = client(cluster)
    with asyncio.Runner() as first:
        first.run(admin.list_topics())
        with asyncio.Runner() as second:
            with pytest.raises(IllegalStateError, match="event loop"):
                second.run(admin.list_topics())
            with pytest.raises(IllegalStateError, match="event loop"):
                second.run(admin.close())
        first.run(admin.close())


def test_client_is_refused_in_a_forked_process(cluster: EmbeddedCluster) -> None:
    admin = client(cluster)
    with asyncio.Runner() as runner:
        runner.run(admin.list_topics())
        child = os.fork()
        if child == 0:
            try:
                asyncio.Runner().run(admin.list_topics())
            except ForkedClientError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        runner.run(admin.list_topics(timeout=5))
        runner.run(admin.close())


def test_client_can_be_closed_after_the_end_of_its_loop(cluster: EmbeddedCluster) -> None:
    admin = client(cluster)
    with asyncio.Runner() as runner:
        runner.run(admin.list_topics())
    with asyncio.Runner() as runner:
        runner.run(admin.close())
    assert repr(admin).endswith(", closed>")


def test_closed_client_raises_closed_error(cluster: EmbeddedCluster, loop: Loop) -> None:
    async def test() -> None:
        admin = client(cluster)
        await admin.list_topics()
        await admin.close()
        await admin.close()
        with pytest.raises(ClosedError):
            await admin.list_topics()
        with pytest.raises(ClosedError):
            await admin.__aenter__()
        assert repr(admin) == f"<aio.AdminClient of {cluster.bootstrap_servers}, closed>"

    loop(test)


def test_close_ends_the_waiting_calls_and_the_running_one_ends_by_itself(
    cluster: EmbeddedCluster, loop: Loop
) -> None:
    async def test() -> None:
        admin = client(cluster)
        await admin.describe_cluster()
        cluster.faults.requests.clear()
        cluster.faults.mute()
        running, waiting = (asyncio.create_task(admin.describe_cluster()) for _ in range(2))
        await until(lambda: cluster.faults.requests)
        await admin.close()
        with pytest.raises(ClosedError):
            await waiting
        cluster.faults.unmute()
        assert (await running).nodes

    loop(test)


def test_unclosed_client_warns_and_closes_its_connections(
    cluster: EmbeddedCluster, loop: Loop
) -> None:
    async def test() -> None:
        kept = [client(cluster)]
        await kept[0].list_topics()
        with pytest.warns(ResourceWarning, match="AdminClient.* was never closed"):
            kept.clear()
        await asyncio.sleep(0)
        gc.collect()  # an open socket would warn here

    loop(test)


def test_client_left_by_a_closed_loop_warns_and_closes_its_connections(
    cluster: EmbeddedCluster,
) -> None:
    kept = [client(cluster)]
    asyncio.run(kept[0].list_topics())
    with pytest.warns(ResourceWarning, match="AdminClient.* was never closed"):
        kept.clear()
    gc.collect()  # an open socket would warn here
