"""Declarations of the broker's keys, as the fields of its configuration."""

from typing import TypeVar

from kclient.common.config_def import ConfigType
from kclient.common.config_keys import INT_MAX, LONG_MAX, IntT, TextT, key, switch, to_int

NamesT = TypeVar("NamesT", bound=tuple[str, ...] | None)

_MAXIMUM = {ConfigType.SHORT: 2**15 - 1, ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}


def number(name: str, kind: ConfigType, default: IntT, doc: str, *, low: int = 0) -> IntT:
    """Declare a key that holds a whole number of a Kafka type, at least `low`."""
    high = _MAXIMUM[kind]

    def convert(raw: object) -> int | None:
        if raw is None and default is None:
            return None
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise TypeError
        value = to_int(raw)
        if not low <= value <= high:
            raise ValueError
        return value

    expected = f"a whole number from {low} to {high}"
    return key(name, kind, convert, expected, default, doc, low=low)


def boolean(name: str, doc: str, *, default: bool) -> bool:
    """Declare a key that holds a bool."""
    return switch(name, doc, default=default, expected="true or false")


def string(name: str, default: TextT, doc: str, *, values: tuple[str, ...] = ()) -> TextT:
    """Declare a key that holds a str, restricted to `values` if given."""

    def convert(raw: object) -> str | None:
        if raw is None and default is None:
            return None
        if not isinstance(raw, str):
            raise TypeError
        if values and raw not in values:
            raise ValueError
        return raw

    expected = f"one of {', '.join(values)}" if values else "a str"
    return key(name, ConfigType.STRING, convert, expected, default, doc, values=values)


def names(name: str, default: NamesT, doc: str, *, values: tuple[str, ...] = ()) -> NamesT:
    """Declare a key that holds a comma-separated list, restricted to `values` if given."""

    def convert(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [item.strip() for item in raw.split(",") if item.strip()]
        if not isinstance(raw, list | tuple) or not all(isinstance(item, str) for item in raw):
            raise TypeError
        unknown = [item for item in raw if values and item not in values]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(values)}")
        return tuple(raw)

    expected = "a comma-separated list"
    return key(name, ConfigType.LIST, convert, expected, default, doc, values=values)
