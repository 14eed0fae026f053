"""Declarations of the broker's keys: conversion and limits of each kind."""

import pytest

from kclient.broker.server.broker_keys import boolean, names, number, string
from kclient.common.config_def import Config, ConfigDef, ConfigType
from kclient.common.errors import ConfigError


class Sample(Config):
    """A configuration with one key of each kind."""

    a_short: int = number("a.short", ConfigType.SHORT, 1, "A short.", low=-1)
    a_whole: int = number("a.whole", ConfigType.INT, 1, "An int.")
    a_time: int | None = number("a.time", ConfigType.LONG, None, "A long, or none.", low=1)
    a_flag: bool = boolean("a.flag", "A bool.", default=False)
    a_word: str = string("a.word", "x", "One of two.", values=("x", "y"))
    a_rack: str | None = string("a.rack", None, "A text, or none.")
    a_items: tuple[str, ...] = names("a.items", ("p",), "A list.", values=("p", "q", "r"))


SAMPLE = ConfigDef("a sample", Sample, of_client=False)


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("a.short", "-1", -1),
        ("a.short", 32767, 32767),
        ("a.whole", "2147483647", 2**31 - 1),
        ("a.time", None, None),
        ("a.time", str(2**63 - 1), 2**63 - 1),
        ("a.flag", "TRUE", True),
        ("a.flag", False, False),
        ("a.word", "y", "y"),
        ("a.rack", None, None),
        ("a.rack", "", ""),
        ("a.items", "q, r ,", ("q", "r")),
        ("a.items", ["r", "p"], ("r", "p")),
        ("a.items", "", ()),
    ],
)
def test_values_are_converted(key: str, raw: object, value: object) -> None:
    assert getattr(SAMPLE.parse({key: raw}), SAMPLE.keys[key].keyword) == value


@pytest.mark.parametrize(
    ("key", "raw", "text"),
    [
        ("a.short", 32768, "got 32768 (int), expected a whole number from -1 to 32767"),
        ("a.short", -2, "got -2 (int), expected a whole number from -1"),
        ("a.whole", 2**31, "got 2147483648 (int), expected a whole number from 0 to 2147483647"),
        ("a.whole", True, "got True (bool), expected a whole number"),
        ("a.whole", 1.0, "got 1.0 (float), expected a whole number"),
        ("a.whole", "1.5", "got '1.5' (str), expected a whole number"),
        ("a.whole", None, "got None (NoneType), expected a whole number"),
        ("a.time", 0, "got 0 (int), expected a whole number from 1"),
        ("a.flag", "yes", "got 'yes' (str), expected true or false"),
        ("a.flag", 1, "got 1 (int), expected true or false"),
        ("a.word", "z", "got 'z' (str), expected one of x, y"),
        ("a.rack", 5, "got 5 (int), expected a str"),
        ("a.items", "p,s", "'s' is not one of p, q, r"),
        ("a.items", [1], "expected a comma-separated list"),
        ("a.items", {"p"}, "expected a comma-separated list"),
    ],
)
def test_other_values_are_refused(key: str, raw: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SAMPLE.parse({key: raw})
    assert str(caught.value).startswith(f"{key}: ")
    assert text in str(caught.value)


def test_types_are_those_of_kafka() -> None:
    assert {name: key.type for name, key in SAMPLE.keys.items()} == {
        "a.short": ConfigType.SHORT,
        "a.whole": ConfigType.INT,
        "a.time": ConfigType.LONG,
        "a.flag": ConfigType.BOOLEAN,
        "a.word": ConfigType.STRING,
        "a.rack": ConfigType.STRING,
        "a.items": ConfigType.LIST,
    }
