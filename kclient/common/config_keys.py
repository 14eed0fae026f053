"""Declarations of keys, as the attributes of a configuration class.

A function returns the key with its default; for type checkers it has the type of the stored
value::

    class ProducerConfig(ClientConfig):
        linger_ms: int = whole_number("linger.ms", 5, "Time that a batch waits for records.")
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from kclient.common.config_def import ConfigKey, ConfigType, OtherValue
from kclient.common.secret import Secret

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

T = TypeVar("T")
IntT = TypeVar("IntT", bound=int | None)
TextT = TypeVar("TextT", bound=str | None)


def key(
    name: str,
    type_: ConfigType,
    convert: Callable[[object], object],
    expected: str,
    default: T,
    doc: str,
    *,
    secret: bool = False,
    choices: tuple[object, ...] = (),
    server_keys: tuple[str, ...] = (),
    low: int | None = None,
    high: int | None = None,
    values: tuple[str, ...] = (),
) -> T:
    """Declare a key; the arguments are the attributes of `ConfigKey`."""
    row = ConfigKey(
        name,
        type_,
        convert,
        expected,
        default,
        doc,
        secret=secret,
        choices=choices,
        server_keys=server_keys,
        low=low,
        high=high,
        values=values,
    )
    return cast("T", row)


def other_value(default: T) -> T:
    """Declare an attribute of a configuration that is no key."""
    return cast("T", OtherValue(default))


def whole_number(
    name: str,
    default: IntT,
    doc: str,
    *,
    low: int = 0,
    high: int = LONG_MAX,
    server_keys: tuple[str, ...] = (),
) -> IntT:
    """Declare a key that holds an int between `low` and `high`."""

    def convert(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise TypeError
        if isinstance(raw, float) and not raw.is_integer():
            raise ValueError(_of_fraction(name, raw))
        value = to_int(raw)
        if value > high:
            raise ValueError(f"it is more than {high}")
        if value < low:
            raise ValueError
        return value

    kind = ConfigType.INT if high <= INT_MAX else ConfigType.LONG
    upper = "" if high >= INT_MAX else f" and <= {high}"
    expected = f"a whole number >= {low}{upper}"
    return key(
        name,
        kind,
        convert,
        expected,
        default,
        doc,
        server_keys=server_keys,
        low=low,
        high=None if high >= INT_MAX else high,
    )


def to_int(raw: float | str) -> int:
    """Return an int, or the one that a str names."""
    try:
        return int(raw)
    except ValueError:  # drop the text of int()
        raise ValueError from None


def _of_fraction(name: str, raw: float) -> str:
    if name.endswith(".ms") and math.isfinite(raw) and raw > 0:
        return f"it is in milliseconds: {raw:g} s are {raw * 1000:g}"
    return ""


def level(
    name: str,
    default: int,
    doc: str,
    *,
    low: int,
    high: int,
    expected: str = "a whole number from {low} to {high}",
    server_keys: tuple[str, ...] = (),
) -> int:
    """Declare a key that holds a compression level; the default may be out of the range."""

    def convert(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise TypeError
        value = to_int(raw)
        if value != default and not low <= value <= high:
            raise ValueError
        return value

    expected = expected.format(low=low, high=high, default=default)
    return key(
        name,
        ConfigType.INT,
        convert,
        expected,
        default,
        doc,
        server_keys=server_keys,
        low=low,
        high=high,
    )


def fraction(name: str, default: float, doc: str, *, server_keys: tuple[str, ...] = ()) -> float:
    """Declare a key that holds a number from 0 to 1."""

    def convert(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise TypeError
        value = float(raw)
        if not 0 <= value <= 1:
            raise ValueError
        return value

    expected = "a number from 0 to 1"
    return key(
        name,
        ConfigType.DOUBLE,
        convert,
        expected,
        default,
        doc,
        server_keys=server_keys,
        low=0,
        high=1,
    )


def text(name: str, default: TextT, doc: str, *, secret: bool = False) -> TextT:
    """Declare a key that holds a non-empty str, or None if the default is None."""

    def convert(raw: object) -> str | None:
        if raw is None and default is None:
            return None
        if not isinstance(raw, str):
            raise TypeError
        if not raw and default != "":
            raise ValueError
        return raw

    kind = ConfigType.PASSWORD if secret else ConfigType.STRING
    return key(name, kind, convert, "a non-empty str", default, doc, secret=secret)


def password(name: str, doc: str) -> Secret | None:
    """Declare a key that holds a secret, given as a non-empty str."""

    def convert(raw: object) -> Secret | None:
        if raw is None or isinstance(raw, Secret):
            return raw
        if not isinstance(raw, str):
            raise TypeError
        if not raw:
            raise ValueError
        return Secret(raw)

    no_secret: Secret | None = None
    return key(name, ConfigType.PASSWORD, convert, "a non-empty str", no_secret, doc, secret=True)


def switch(
    name: str,
    doc: str,
    *,
    default: bool,
    expected: str = "True or False",
    server_keys: tuple[str, ...] = (),
) -> bool:
    """Declare a key that holds a bool; the strings 'true' and 'false' are accepted too."""
    return key(name, ConfigType.BOOLEAN, to_bool, expected, default, doc, server_keys=server_keys)


def to_bool(raw: object) -> bool:
    """Return a bool, or the one that a str names."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.lower() in {"true", "false"}:
        return raw.lower() == "true"
    raise TypeError


def choice(
    name: str,
    default: T,
    values: Mapping[Any, T],
    doc: str,
    *,
    server_keys: tuple[str, ...] = (),
) -> T:
    """Declare a key that accepts one of several values, each mapped to the stored one."""

    def convert(raw: object) -> object:
        folded = raw.lower() if isinstance(raw, str) else raw
        if isinstance(folded, bool) or folded not in values:
            raise ValueError
        return values[folded]

    return key(
        name,
        ConfigType.STRING,
        convert,
        f"one of {', '.join(repr(value) for value in values)}",
        default,
        doc,
        choices=tuple(values),
        server_keys=server_keys,
        values=tuple(str(value) for value in values.values()),
    )
