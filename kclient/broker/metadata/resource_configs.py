"""Settings of groups and of client metrics (Kafka: GroupConfig, ClientMetricsConfigs).

They are checked, stored and described. This broker has no groups and no metrics that use them.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from kclient.broker.log.config_check import check_value, invalid_value
from kclient.common.broker_errors import InvalidConfigurationError, InvalidRequestError
from kclient.common.config_def import ConfigKey, ConfigType


class GroupKey(NamedTuple):
    """Setting of groups.

    Attributes:
        key: Its type and default; the limits are those of any value.
        server_key: Setting of Kafka's brokers with its default; empty if there is none.
        least: Lowest value by the default of the broker's ``min`` setting, or None.
        most: Highest value by the default of its ``max`` setting, or None.
    """

    key: ConfigKey
    server_key: str
    least: int | None = None
    most: int | None = None

    def limit_key(self, kind: str) -> str:
        """Return the name of the broker's setting with a limit: ``min`` or ``max``."""
        _, group, name = self.server_key.split(".", 2)
        name = name.removeprefix("num.") if kind == "max" else name
        return f"group.{group}.{kind}.{name}"


def _key(
    name: str,
    kind: ConfigType,
    default: object,
    low: int | None = None,
    values: tuple[str, ...] = (),
) -> ConfigKey:
    return ConfigKey(name, kind, str, "", default, "", low=low, values=values)


def _number(
    name: str, default: int, low: int, least: int | None = None, most: int | None = None
) -> GroupKey:
    return GroupKey(_key(name, ConfigType.INT, default, low), f"group.{name}", least, most)


def _text(name: str, default: str, *values: str) -> GroupKey:
    return GroupKey(_key(name, ConfigType.STRING, default, values=values), "")


_RENEWAL: Final = "share.renew.acknowledge.enable"
_OFFSET_RESET: Final = "share.auto.offset.reset"
_DURATION: Final = re.compile(r"by_duration:P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")

GROUP_KEYS: Final[dict[str, GroupKey]] = {
    row.key.name: row
    for row in (
        _number("consumer.session.timeout.ms", 45_000, 1, 45_000, 60_000),
        _number("consumer.heartbeat.interval.ms", 5_000, 1, 5_000, 15_000),
        _number("consumer.assignment.interval.ms", 1_000, 0, 0, 15_000),
        _number("share.session.timeout.ms", 45_000, 1, 45_000, 60_000),
        _number("share.heartbeat.interval.ms", 5_000, 1, 5_000, 15_000),
        _number("share.assignment.interval.ms", 1_000, 0, 0, 15_000),
        _number("share.record.lock.duration.ms", 30_000, 1_000, 15_000, 60_000),
        _number("share.delivery.count.limit", 5, 2, 2, 10),
        _number("share.partition.max.record.locks", 2_000, 100, 100, 4_000),
        _text(_OFFSET_RESET, "latest"),
        _text("share.isolation.level", "read_uncommitted", "read_committed", "read_uncommitted"),
        GroupKey(_key(_RENEWAL, ConfigType.BOOLEAN, default=True), ""),
        _number("streams.session.timeout.ms", 45_000, 1, 45_000, 60_000),
        _number("streams.heartbeat.interval.ms", 5_000, 1, 5_000, 15_000),
        _number("streams.assignment.interval.ms", 1_000, 0, 0, 15_000),
        _number("streams.num.standby.replicas", 0, 0, None, 2),
        _number("streams.initial.rebalance.delay.ms", 3_000, 0),
    )
}
"""Settings of groups by name."""

CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = {
    key.name: key
    for key in (
        _key("interval.ms", ConfigType.INT, 300_000),
        _key("match", ConfigType.LIST, ()),
        _key("metrics", ConfigType.LIST, ()),
    )
}
"""Settings of client metrics by name."""

_INTERVALS: Final = range(100, 3_600_001)
_MATCHED: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_group_configs(given: Mapping[str, str]) -> None:
    """Check all settings of a group.

    Raises:
        InvalidConfigurationError: A name is unknown, or a value is invalid.
    """
    for name, value in given.items():
        row = GROUP_KEYS.get(name)
        if row is None:
            raise InvalidConfigurationError(f"Unknown group config name: {name:.250}")
        check_value(row.key, value)
        if row.key.type is ConfigType.INT:
            _check_limits(row, int(value))
        elif name == _OFFSET_RESET:
            _check_offset_reset(value)


def _check_limits(row: GroupKey, value: int) -> None:
    if row.least is not None and value < row.least:
        raise InvalidConfigurationError(
            f"{row.key.name} must be greater than or equal to {row.limit_key('min')}"
        )
    if row.most is not None and value > row.most:
        raise InvalidConfigurationError(
            f"{row.key.name} must be less than or equal to {row.limit_key('max')}"
        )


def _check_offset_reset(value: str) -> None:
    if value not in ("earliest", "latest") and not _DURATION.fullmatch(value):
        problem = (
            f"Invalid value `{value:.80}` for configuration {_OFFSET_RESET}. The value must be "
            "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise invalid_value(value, _OFFSET_RESET, problem)


def check_client_metrics(given: Mapping[str, str]) -> None:
    """Check all settings of client metrics.

    Raises:
        InvalidConfigurationError: A value has the wrong form.
        InvalidRequestError: A name is unknown, or the interval out of range.
    """
    for name, value in given.items():
        if name not in CLIENT_METRICS_KEYS:
            raise InvalidRequestError(f"Unknown client metrics configuration: {name:.250}")
        check_value(CLIENT_METRICS_KEYS[name], value)
        items = [item.strip() for item in value.split(",")] if value.strip() else []
        if name == "interval.ms" and int(value) not in _INTERVALS:
            raise InvalidRequestError(
                f"Invalid value {int(value)} for interval.ms, interval must be between "
                f"{_INTERVALS[0]} and {_INTERVALS[-1]} (1 hour)"
            )
        if name != "interval.ms" and not all(items):
            raise InvalidConfigurationError(f"Configuration '{name}' values must not be empty.")
        if name == "match":
            _check_patterns(items)


def _check_patterns(items: list[str]) -> None:
    for item in items:
        name, _, pattern = (part.strip() for part in item.partition("="))
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            pattern = ""
        if name not in _MATCHED or not pattern:
            raise InvalidConfigurationError(f"Illegal client matching pattern: {item:.250}")
