"""Values of settings are refused with the texts of Apache Kafka."""

import pytest

from kclient.broker.log.log_config import check_new_configs
from kclient.common.broker_errors import InvalidConfigurationError


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("retention.ms", "1_000", "Not a number of type LONG"),
        ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("max.message.bytes", "3000000000", "Not a number of type INT"),
        ("min.cleanable.dirty.ratio", "2", "Value must be no more than 1"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("cleanup.policy", "delete,foo", "String must be one of: compact, delete"),
        ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppend"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("leader.replication.throttled.replicas", "0", "a list of replicas in the following"),
        ("unknown", "1", "Unknown topic config name: unknown"),
    ],
)
def test_invalid_values_have_kafkas_text(name: str, value: str, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        check_new_configs({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", " +5 "),
        ("compression.gzip.level", "-1"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact, delete"),
        ("preallocate", "TRUE"),
        ("leader.replication.throttled.replicas", "*"),
        ("follower.replication.throttled.replicas", "0:1,2:3"),
    ],
)
def test_values_that_kafka_accepts_are_valid(name: str, value: str) -> None:
    check_new_configs({name: value})
