"""Back-off of refused requests, for every error code.

A broker gives one client the same error for every request of one API, for some virtual seconds.
Each error code has a client of its own, so that one simulation runs them all.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.admin.admin_types import ConfigResource, ConfigResourceType
from kclient.admin.results import Results
from kclient.common.errors import KafkaError
from kclient.protocol.api_keys import ApiKey
from kclient.testing.virtual import VirtualBroker, VirtualProcess, VirtualWorld

HANDLED = {-1, 1, 17, 22, 25, 29, 30, 35, 36, 45, 46, 47, 48, 59, 60, 68, 74, 76, 79, 82, 87, 110}
"""Non-retriable errors that some client handles by another request."""

CODES = sorted(
    HANDLED | {code for code, kind in KafkaError._by_code.items() if kind.retriable}
)  # fmt: skip

SECONDS = 6
PER_SECOND = 10.0
"""``retry.backoff.ms`` is 100."""

AT_FIRST = 8
"""Requests that are not repetitions: API versions, coordinator, positions, one per partition."""

TOPIC = "t"
Life = Callable[[VirtualProcess, str, str], None]


def produce(process: VirtualProcess, servers: str, name: str) -> None:
    with Producer(
        bootstrap_servers=servers, client_id=name, max_block_ms=500, delivery_timeout_ms=4_000,
        request_timeout_ms=3_000, runtime=process.runtime,
    ) as producer:  # fmt: skip
        while True:
            try:
                producer.send(TOPIC, b"x").result(5)
            except KafkaError:
                process.sleep(0.5)
            process.sleep(0.1)


def consume(process: VirtualProcess, servers: str, name: str) -> None:
    with Consumer(
        bootstrap_servers=servers,
        client_id=name,
        group_id=f"group of {name}",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=500,
        session_timeout_ms=6_000,
        auto_commit_interval_ms=500,
        runtime=process.runtime,
    ) as consumer:
        consumer.subscribe(TOPIC)
        while True:
            try:
                if consumer.poll(0.5):
                    consumer.commit(timeout=1.0)
            except KafkaError:
                process.sleep(0.5)


def look_up(process: VirtualProcess, servers: str, name: str) -> None:
    with Consumer(
        bootstrap_servers=servers, client_id=name, group_id=f"group of {name}",
        runtime=process.runtime,
    ) as consumer:  # fmt: skip
        partition = TopicPartition(TOPIC, 0)
        while True:
            for call in (consumer.end_offsets, consumer.committed):
                try:
                    call([partition], timeout=2.0)
                except KafkaError:
                    process.sleep(0.5)
            process.sleep(0.2)


def leave(process: VirtualProcess, servers: str, name: str) -> None:
    while True:
        consumer = Consumer(
            bootstrap_servers=servers, client_id=name, group_id=f"group of {name}",
            runtime=process.runtime,
        )  # fmt: skip
        consumer.subscribe(TOPIC)
        for _ in range(4):
            consumer.poll(0.2)
        consumer.close(2.0)


def administer(process: VirtualProcess, servers: str, name: str) -> None:
    with AdminClient(
        bootstrap_servers=servers, client_id=name, default_api_timeout_ms=2_000,
        runtime=process.runtime,
    ) as admin:  # fmt: skip
        calls = (
            lambda: admin.create_topics([NewTopic(name, 1, 1)]),
            lambda: admin.create_partitions({TOPIC: 2}),
            admin.list_topics,
            admin.describe_cluster,
            admin.list_groups,
            lambda: admin.describe_consumer_groups(["g"]),
            lambda: admin.list_consumer_group_offsets("g"),
            lambda: admin.delete_consumer_groups(["g"]),
            lambda: admin.describe_configs(ConfigResource(ConfigResourceType.TOPIC, TOPIC)),
            lambda: admin.delete_topics([name]),
        )
        while True:
            for call in calls:
                try:
                    found = call()
                    if isinstance(found, Results):
                        found.raise_for_errors()
                except KafkaError:
                    process.sleep(0.2)
            process.sleep(0.3)


LIVES: list[tuple[ApiKey, Life]] = [
    (ApiKey.METADATA, produce),
    (ApiKey.INIT_PRODUCER_ID, produce),
    (ApiKey.PRODUCE, produce),
    (ApiKey.API_VERSIONS, produce),
    (ApiKey.METADATA, consume),
    (ApiKey.FIND_COORDINATOR, consume),
    (ApiKey.JOIN_GROUP, consume),
    (ApiKey.SYNC_GROUP, consume),
    (ApiKey.HEARTBEAT, consume),
    (ApiKey.OFFSET_FETCH, consume),
    (ApiKey.OFFSET_COMMIT, consume),
    (ApiKey.LIST_OFFSETS, consume),
    (ApiKey.FETCH, consume),
    (ApiKey.LEAVE_GROUP, leave),
    (ApiKey.LIST_OFFSETS, look_up),
    (ApiKey.OFFSET_FETCH, look_up),
    (ApiKey.FIND_COORDINATOR, look_up),
    (ApiKey.CREATE_TOPICS, administer),
    (ApiKey.CREATE_PARTITIONS, administer),
    (ApiKey.DELETE_TOPICS, administer),
    (ApiKey.METADATA, administer),
    (ApiKey.LIST_GROUPS, administer),
    (ApiKey.DESCRIBE_GROUPS, administer),
    (ApiKey.DELETE_GROUPS, administer),
    (ApiKey.DESCRIBE_CONFIGS, administer),
    (ApiKey.FIND_COORDINATOR, administer),
    (ApiKey.OFFSET_FETCH, administer),
]


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.campaign)])
@pytest.mark.parametrize(
    ("api", "life"), LIVES, ids=lambda part: getattr(part, "name", getattr(part, "__name__", ""))
)
def test_refused_request_is_repeated_with_backoff(api: ApiKey, life: Life, share: int) -> None:
    """Without the campaign, each row of the table has every fourth code, and each code a row."""
    codes = CODES[LIVES.index((api, life)) % share :: share]
    with VirtualWorld(seed=1, latency_ms=(0.1, 1.0)) as world:
        broker = VirtualBroker(world, {"group.initial.rebalance.delay.ms": 0, "num.partitions": 1})
        servers = broker.bootstrap_servers
        first = world.machine("first").process("first")
        made = first.spawn("main", lambda: _make_topic(first, servers))
        world.run(until=lambda: made.over)
        broker.faults.requests.clear()
        for code in codes:
            name = f"{api.name}-{code}"
            broker.faults.fail(api, code, times=None, client_id=name)
            process = world.machine(name).process(name)
            process.spawn("main", partial(life, process, servers, name))
        counts: Counter[tuple[str | None, str]] = Counter()
        for _ in range(SECONDS * 4):
            world.run(timeout_ms=250.0)
            seen = broker.faults.requests
            counts.update((each.client_id, each.api.name) for each in seen)
            assert len(seen) < (seen.maxlen or 0)
            seen.clear()
    most = AT_FIRST + PER_SECOND * SECONDS
    assert {key: count for key, count in counts.items() if count > most} == {}
    refused = {name for name, each in counts if each == api.name}
    assert len(refused) == len(codes), "every client came to the API that fails"


def _make_topic(process: VirtualProcess, servers: str) -> None:
    with Producer(bootstrap_servers=servers, runtime=process.runtime) as producer:
        producer.send_many(TOPIC, [b"x"] * 50).result(10)
