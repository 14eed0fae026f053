"""Checks of new values of settings, with the texts of Kafka's ConfigDef."""

import re
from collections.abc import Callable
from typing import Final

from kclient.common.broker_errors import InvalidConfigurationError
from kclient.common.config_def import ConfigKey, ConfigType

_MAX_SHOWN: Final = 250
_BITS: Final = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?")


def list_items(text: str) -> list[str]:
    """Return the items of a list, without empty ones."""
    return [item.strip() for item in text.split(",") if item.strip()]


def check_value(key: ConfigKey, value: str) -> None:
    """Check a value of a setting.

    Raises:
        InvalidConfigurationError: The value is not of the key's type, or out of its range.
    """
    check = _CHECKS.get(key.type)
    if check is not None:
        check(key, value)


def check_throttled_replicas(name: str, value: str) -> None:
    """Check a list of replicas whose replication is throttled.

    Raises:
        InvalidConfigurationError: It is neither ``*`` nor a list of PARTITION:BROKER.
    """
    items = list_items(value)
    if items != ["*"] and not all(_REPLICA.fullmatch(item) for item in items):
        raise invalid_value(
            f"[{', '.join(items)}]",
            name,
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def invalid_value(shown: object, name: str, problem: str) -> InvalidConfigurationError:
    """Return the error for a value (Kafka: ConfigException)."""
    text = f"{shown:.{_MAX_SHOWN}}" if isinstance(shown, str) else str(shown)
    return InvalidConfigurationError(f"Invalid value {text} for configuration {name}: {problem}")


def _check_whole_number(key: ConfigKey, value: str) -> None:
    text = value.strip()
    limit = 1 << _BITS[key.type]
    if _WHOLE_NUMBER.fullmatch(text) is None or not -limit <= int(text) < limit:
        raise invalid_value(value, key.name, f"Not a number of type {key.type.name}")
    _check_range(key, int(text))


def _check_fraction(key: ConfigKey, value: str) -> None:
    try:
        number = float(value)
    except ValueError:
        raise invalid_value(value, key.name, "Not a number of type DOUBLE") from None
    _check_range(key, number)


def _check_range(key: ConfigKey, number: float) -> None:
    low, high, default = key.low, key.high, key.default
    if low is not None and high is not None and isinstance(default, int) and default < low:
        # A level, whose default is out of its range.
        if number != default and not low <= number <= high:
            problem = f"Value must be between {low} and {high} or equal to {default}"
            raise invalid_value(number, key.name, problem)
    elif low is not None and not number >= low:
        raise invalid_value(number, key.name, f"Value must be at least {low}")
    elif high is not None and not number <= high:
        raise invalid_value(number, key.name, f"Value must be no more than {high}")


def _check_boolean(key: ConfigKey, value: str) -> None:
    if value.strip().lower() not in {"true", "false"}:
        raise invalid_value(value, key.name, "Expected value to be either true or false")


def _check_string(key: ConfigKey, value: str) -> None:
    if key.values and value.strip() not in key.values:
        raise invalid_value(value, key.name, f"String must be one of: {', '.join(key.values)}")


def _check_list(key: ConfigKey, value: str) -> None:
    for item in list_items(value):
        if key.values and item not in key.values:
            expected = ", ".join(sorted(key.values))
            raise invalid_value(item, key.name, f"String must be one of: {expected}")


_CHECKS: Final[dict[ConfigType, Callable[[ConfigKey, str], None]]] = {
    ConfigType.BOOLEAN: _check_boolean,
    ConfigType.DOUBLE: _check_fraction,
    ConfigType.INT: _check_whole_number,
    ConfigType.LIST: _check_list,
    ConfigType.LONG: _check_whole_number,
    ConfigType.SHORT: _check_whole_number,
    ConfigType.STRING: _check_string,
}
