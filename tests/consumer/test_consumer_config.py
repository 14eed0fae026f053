"""Consumer options and their validation."""

from datetime import timedelta
from typing import Any

import pytest

from kclient.common.errors import ConfigError
from kclient.consumer.assignors import RangeAssignor, RoundRobinAssignor
from kclient.consumer.auto_offset_reset import AutoOffsetReset
from kclient.consumer.consumer_config import CONSUMER_CONFIG, ConsumerConfig

SERVERS = {"bootstrap_servers": "localhost:9092"}


def parse(**options: object) -> ConsumerConfig:
    return CONSUMER_CONFIG.parse({**SERVERS, **options})


def test_defaults_are_those_of_the_java_client() -> None:
    config = parse(group_id="g")
    expected = {
        "auto_commit_interval_ms": 5000,
        "allow_auto_create_topics": True,
        "check_crcs": True,
        "connections_max_idle_ms": 540_000,
        "default_api_timeout_ms": 60_000,
        "enable_auto_commit": True,
        "exclude_internal_topics": True,
        "fetch_max_bytes": 52_428_800,
        "fetch_max_wait_ms": 500,
        "fetch_min_bytes": 1,
        "group_protocol": "classic",
        "heartbeat_interval_ms": 3000,
        "isolation_level": 0,
        "max_partition_fetch_bytes": 1_048_576,
        "max_poll_interval_ms": 300_000,
        "max_poll_records": 500,
        "metadata_max_age_ms": 300_000,
        "request_timeout_ms": 30_000,
        "retry_backoff_ms": 100,
        "session_timeout_ms": 45_000,
    }
    assert {name: getattr(config, name) for name in expected} == expected
    assert config.auto_offset_reset == AutoOffsetReset("latest")
    assert [assignor.name for assignor in config.partition_assignment_strategy] == ["range"]


def test_every_key_is_in_the_reference_page() -> None:
    for key in CONSUMER_CONFIG.keys.values():
        assert key.doc
        assert key.doc.endswith(".")


class CoroutineAssignor(RangeAssignor):
    """An assignor with a coroutine function."""

    async def assign(self, *_: object) -> Any:  # type: ignore[override]  # what is refused
        """Assign nothing."""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"auto_offset_reset": "smallest"}, "here it is 'earliest'"),
        ({"auto_offset_reset": "by_duration:5 days"}, "P3DT12H30M5S"),
        ({"auto_offset_reset": timedelta(days=-1)}, "expected a duration >= 0, by which"),
        ({"isolation_level": "serializable"}, "read_committed"),
        ({"group_id": ""}, "group_id: got ''"),
        ({"group_protocol": "consumer"}, "expected 'classic'"),
        ({"max_poll_records": 0}, "max_poll_records: got 0"),
        ({"fetch_min_bytes": -1}, "fetch_min_bytes"),
        ({"session_timeout_ms": 1000, "group_id": "g"}, "heartbeat_interval_ms: got 3000"),
        ({"request_timeout_ms": 400}, "more than fetch_max_wait_ms"),
        ({"fetch_max_bytes": 2**30}, "receive_message_max_bytes"),
        ({"enable_auto_commit": True}, "expected group_id with it"),
        ({"group_instance_id": "i"}, "expected group_id with it"),
        ({"value_deserializer": "utf-8"}, "a callable"),
        ({"partition_assignment_strategy": "cooperative-sticky"}, "not available yet"),
        ({"partition_assignment_strategy": ["range", "sticky"]}, "not available yet"),
        ({"partition_assignment_strategy": "org.x.CooperativeStickyAssignor"}, "not available yet"),
        ({"partition_assignment_strategy": "org.x.RangeAssignor"}, "here it is 'range'"),
        ({"partition_assignment_strategy": "own"}, "passed as an object"),
        ({"partition_assignment_strategy": ["range", "range"]}, "each name once"),
        ({"partition_assignment_strategy": RangeAssignor}, "an assignor has name"),
        (
            {"partition_assignment_strategy": CoroutineAssignor()},
            "assign() is a coroutine function",
        ),
        ({"interceptor_classes": ["a.b.C"]}, "not loaded by name"),
        ({"interceptor_classes": [object()]}, "has no on_consume"),
        ({"group_remote_assignor": "x"}, "group protocol 'consumer'"),
        ({"sasl_jaas_config": "secret"}, "a secret value"),
        ({"max_pol_records": 5}, "did you mean 'max_poll_records'"),
        ({"enable.auto.offset.store": False}, "enable_auto_commit=False and call commit()"),
    ],
)
def test_invalid_options_are_rejected_with_reason(options: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**options)
    assert text in str(caught.value)
    assert "secret'" not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    ["roundrobin,range", ["RoundRobin", "range"], (RoundRobinAssignor(), RangeAssignor())],
)
def test_assignors_are_given_by_name_or_object(given: object) -> None:
    chosen = parse(partition_assignment_strategy=given).partition_assignment_strategy
    assert [assignor.name for assignor in chosen] == ["roundrobin", "range"]
