"""Rows of broker and topic settings, with the type that DescribeConfigs reports."""

from collections.abc import Callable
from dataclasses import dataclass

from kclient.common.config_def import ConfigKey, ConfigType

_RANGES = {
    ConfigType.SHORT: 2**15 - 1,
    ConfigType.INT: 2**31 - 1,
    ConfigType.LONG: 2**63 - 1,
}


@dataclass(frozen=True, slots=True)
class ServerKey:
    """One setting of the broker or of a topic.

    Attributes:
        row: Name, conversion, default and documentation.
        read_only: Whether a change needs a restart.
        server_keys: For a topic setting, the broker settings it falls back to, in order.
    """

    row: ConfigKey
    read_only: bool = True
    server_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Dotted name."""
        return self.row.name


def number(
    name: str,
    kind: ConfigType,
    default: int | None,
    doc: str,
    *,
    low: int = 0,
    server_keys: tuple[str, ...] = (),
) -> ServerKey:
    """Define a whole number of a Kafka type, at least `low`."""
    high = _RANGES[kind]

    def convert(raw: object) -> int | None:
        if raw is None and default is None:
            return None
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise TypeError
        value = int(raw)
        if not low <= value <= high:
            raise ValueError
        return value

    expected = f"a whole number from {low} to {high}"
    row = ConfigKey(name, kind, convert, expected, default, doc)
    return ServerKey(row, server_keys=server_keys)


def fraction(
    name: str, default: float, doc: str, *, server_keys: tuple[str, ...] = ()
) -> ServerKey:
    """Define a number between 0 and 1."""

    def convert(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise TypeError
        value = float(raw)
        if not 0.0 <= value <= 1.0:
            raise ValueError
        return value

    row = ConfigKey(name, ConfigType.DOUBLE, convert, "a number from 0 to 1", default, doc)
    return ServerKey(row, server_keys=server_keys)


def boolean(name: str, doc: str, *, default: bool, server_keys: tuple[str, ...] = ()) -> ServerKey:
    """Define a switch."""

    def convert(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.lower() in {"true", "false"}:
            return raw.lower() == "true"
        raise TypeError

    row = ConfigKey(name, ConfigType.BOOLEAN, convert, "true or false", default, doc)
    return ServerKey(row, server_keys=server_keys)


def string(
    name: str,
    default: str | None,
    doc: str,
    *,
    values: tuple[str, ...] = (),
    server_keys: tuple[str, ...] = (),
) -> ServerKey:
    """Define a string, restricted to `values` if given."""

    def convert(raw: object) -> str | None:
        if raw is None and default is None:
            return None
        if not isinstance(raw, str):
            raise TypeError
        if values and raw not in values:
            raise ValueError
        return raw

    expected = f"one of {', '.join(values)}" if values else "a str"
    row = ConfigKey(name, ConfigType.STRING, convert, expected, default, doc)
    return ServerKey(row, server_keys=server_keys)


def names(
    name: str,
    default: tuple[str, ...] | None,
    doc: str,
    *,
    values: tuple[str, ...] = (),
    server_keys: tuple[str, ...] = (),
) -> ServerKey:
    """Define a comma-separated list, restricted to `values` if given."""
    row = ConfigKey(
        name, ConfigType.LIST, _list_converter(values), "a comma-separated list", default, doc
    )
    return ServerKey(row, server_keys=server_keys)


def _list_converter(values: tuple[str, ...]) -> Callable[[object], tuple[str, ...]]:
    def convert(raw: object) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [item.strip() for item in raw.split(",") if item.strip()]
        if not isinstance(raw, list | tuple) or not all(isinstance(item, str) for item in raw):
            raise TypeError
        unknown = [item for item in raw if values and item not in values]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(values)}")
        return tuple(raw)

    return convert
