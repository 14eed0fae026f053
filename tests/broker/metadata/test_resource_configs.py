"""Settings of groups and client metrics."""

import pytest

from kclient.broker.metadata.resource_configs import (
    GROUP_KEYS,
    check_client_metrics,
    check_group_configs,
)
from kclient.common.broker_errors import InvalidConfigurationError, InvalidRequestError


def test_defaults_of_groups_are_valid() -> None:
    check_group_configs({name: str(row.key.default) for name, row in GROUP_KEYS.items()})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("unknown", "1", "Unknown group config name: unknown"),
        ("consumer.session.timeout.ms", "x", "Not a number of type INT"),
        (
            "streams.num.standby.replicas",
            "3",
            "must be less than or equal to group.streams.max.standby.replicas",
        ),
        ("share.auto.offset.reset", "by_duration:P", "either 'earliest', 'latest' or"),
        ("share.isolation.level", "serializable", "read_committed, read_uncommitted"),
    ],
)
def test_invalid_settings_of_groups_are_refused(name: str, value: str, text: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=text):
        check_group_configs({name: value})


@pytest.mark.parametrize("value", ["client_id=[", "client_id=" + "(" * 10_000, "other=a", "="])
def test_invalid_patterns_of_clients_are_refused(value: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="Illegal client matching pattern"):
        check_client_metrics({"match": value})


def test_intervals_of_client_metrics_are_limited() -> None:
    check_client_metrics({"interval.ms": "100", "match": "client_id=a.*", "metrics": "a,b"})
    with pytest.raises(InvalidRequestError, match="between 100 and 3600000"):
        check_client_metrics({"interval.ms": "99"})
    with pytest.raises(InvalidRequestError, match="Unknown client metrics configuration"):
        check_client_metrics({"interval": "100"})
