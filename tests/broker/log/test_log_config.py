"""Topic configuration: Kafka's keys, defaults and validation."""

from dataclasses import fields

import pytest

from kclient.broker.log.log_config import (
    BROKER_SYNONYMS,
    TOPIC_CONFIG_KEYS,
    TOPIC_CONFIG_TYPES,
    LogConfig,
    config_text,
)
from kclient.common.broker_errors import InvalidConfigurationError


def test_log_config_defaults_equal_config_keys() -> None:
    rows = {key.keyword: key.default for key in TOPIC_CONFIG_KEYS}
    assert rows == {field.name: field.default for field in fields(LogConfig)}
    assert len(rows) == 33
    names = {key.name for key in TOPIC_CONFIG_KEYS}
    assert names >= BROKER_SYNONYMS.keys() | TOPIC_CONFIG_TYPES.keys()
    assert LogConfig.parse({}) == LogConfig()


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


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (("compact", "delete"), "compact,delete"), ((), ""), (0.5, "0.5"), (-1, "-1")],
)
def test_values_are_formatted_as_in_kafka(value: object, text: str) -> None:
    assert config_text(value) == text
