"""Forms of keys: accepted values, stored values and errors."""

from typing import Any

import pytest

from kclient.common.config_def import Config, ConfigDef, ConfigType
from kclient.common.config_keys import choice, fraction, level, switch, text, whole_number
from kclient.common.errors import ConfigError


class FormsConfig(Config):
    linger_ms: int = whole_number("linger.ms", 5, "A time.")
    number: int | None = whole_number("number", None, "A number.", low=1, high=9)
    level: int = level("level", -1, "A level.", low=1, high=9)
    ratio: float = fraction("ratio", 0.5, "A ratio.")
    name: str | None = text("name", None, "A name.")
    rack: str = text("rack", "", "A rack.")
    flag: bool = switch("flag", "A flag.", default=False)
    acks: int = choice("acks", -1, {"all": -1, "1": 1, 1: 1}, "Acks.")


DEFINITION = ConfigDef("Forms", FormsConfig)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"linger_ms": "7"}, 7),
        ({"linger_ms": 7.0}, 7),
        ({"number": 9}, 9),
        ({"level": "-1"}, -1),
        ({"level": 9}, 9),
        ({"ratio": "0.25"}, 0.25),
        ({"name": None}, None),
        ({"rack": ""}, ""),
        ({"flag": "TRUE"}, True),
        ({"acks": "ALL"}, -1),
        ({"acks": 1}, 1),
    ],
)
def test_accepted_values_are_converted(given: dict[str, Any], stored: object) -> None:
    (name,) = given
    assert getattr(DEFINITION.parse(given), name) == stored


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger_ms": "x"}, "linger_ms: got 'x' (str), expected a whole number >= 0"),
        ({"linger_ms": 0.5}, "linger_ms: got 0.5 (float), expected a whole number >= 0; it is in "),
        ({"linger_ms": 2**63}, "it is more than 9223372036854775807"),
        ({"number": 0}, "number: got 0 (int), expected a whole number >= 1 and <= 9"),
        ({"number": None}, "number: got None (NoneType), expected a whole number >= 1 and <= 9"),
        ({"level": 0}, "level: got 0 (int), expected a whole number from 1 to 9"),
        ({"level": 1.5}, "level: got 1.5 (float), expected a whole number from 1 to 9"),
        ({"ratio": "x"}, "ratio: got 'x' (str), expected a number from 0 to 1"),
        ({"ratio": 1.1}, "ratio: got 1.1 (float), expected a number from 0 to 1"),
        ({"name": ""}, "name: got '' (str), expected a non-empty str"),
        ({"flag": 1}, "flag: got 1 (int), expected True or False"),
        ({"acks": True}, "acks: got True (bool), expected one of 'all', '1', 1"),
    ],
)
def test_errors_name_the_expected_form(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        DEFINITION.parse(given)
    assert str(caught.value).startswith(message) or str(caught.value).endswith(message)


def test_keys_have_the_types_of_kafka() -> None:
    types = {key.keyword: key.type for key in DEFINITION.keys.values()}
    assert types == {
        "linger_ms": ConfigType.LONG,
        "number": ConfigType.INT,
        "level": ConfigType.INT,
        "ratio": ConfigType.DOUBLE,
        "name": ConfigType.STRING,
        "rack": ConfigType.STRING,
        "flag": ConfigType.BOOLEAN,
        "acks": ConfigType.STRING,
    }
