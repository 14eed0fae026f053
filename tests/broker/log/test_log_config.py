"""Topic configuration: Kafka's keys, defaults and validation."""

import pytest

from kclient.broker.log.log_config import (
    TOPIC_CONFIG,
    LogConfig,
)
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.common.broker_errors import InvalidConfigurationError


def test_topics_have_the_keys_of_kafka() -> None:
    assert len(TOPIC_CONFIG.keys) == 33
    assert LogConfig.parse({}) == LogConfig()


def test_every_server_key_is_a_key_of_the_broker() -> None:
    server_keys = [name for key in TOPIC_CONFIG.keys.values() for name in key.server_keys]
    assert len(server_keys) == 33
    assert set(server_keys) <= BROKER_CONFIG.keys.keys()


def test_values_are_parsed_from_text() -> None:
    config = LogConfig.parse(
        {
            "cleanup.policy": "compact, delete",
            "segment.bytes": "1048576",
            "retention.ms": "-1",
            "preallocate": "TRUE",
            "min.cleanable.dirty.ratio": "0.25",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "compression.gzip.level": "-1",
        }
    )
    assert config == LogConfig(
        cleanup_policy=("compact", "delete"),
        segment_bytes=1048576,
        retention_ms=-1,
        preallocate=True,
        min_cleanable_dirty_ratio=0.25,
        message_timestamp_type="LogAppendTime",
        compression_type="zstd",
    )
    assert config.compacts
    assert config.deletes
    assert config.stamps_append_time


def test_overrides_replace_defaults() -> None:
    defaults = LogConfig(retention_ms=5, segment_ms=7)
    assert LogConfig.parse({"retention.ms": "6"}, defaults) == LogConfig(
        retention_ms=6, segment_ms=7
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compost"),
        ("cleanup.policy", 5),
        ("segment.bytes", "1048575"),
        ("segment.bytes", "x"),
        ("segment.bytes", "1.5"),
        ("segment.bytes", 2**31),
        ("retention.ms", "-2"),
        ("retention.ms", None),
        ("preallocate", "yes"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", True),
        ("message.timestamp.type", "Never"),
        ("compression.type", "xz"),
        ("compression.gzip.level", "10"),
        ("compression.gzip.level", 1.5),
        ("compression.zstd.level", "23"),
        ("flush.messages", "0"),
        ("min.insync.replicas", "0"),
    ],
)
def test_invalid_values_are_rejected(name: str, value: object) -> None:
    with pytest.raises(InvalidConfigurationError, match=name):
        LogConfig.parse({name: value})


def test_unknown_keys_are_rejected() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"retention\.m"):
        LogConfig.parse({"retention.m": "5"})
    with pytest.raises(InvalidConfigurationError):
        LogConfig.parse({"retention_ms": "5"})
