from typing import Any

import pytest

from kclient.common.config_def import (
    REQUIRED,
    ConfigDef,
    anything,
    choice,
    merged,
    switch,
    text,
    whole_number,
)
from kclient.common.errors import ConfigError

DEFINITION = ConfigDef(
    "Producer",
    [
        text("bootstrap.servers", REQUIRED, "Where to begin."),
        whole_number("linger.ms", 5, "How long a batch waits."),
        whole_number("level", 3, "A level.", low=1, high=9),
        switch("enable.idempotence", True, "No duplicates."),
        choice("acks", -1, {"all": -1, "0": 0, "1": 1, "-1": -1, 0: 0, 1: 1, -1: -1}, "Acks."),
        text("sasl.secret", None, "A secret.", secret=True),
        anything("partitioner.class", None, "a callable or None", "Chooses.", callable),
    ],
)


def parse(**given: Any) -> dict[str, Any]:
    return DEFINITION.parse({"bootstrap_servers": "h:1", **given})


def test_defaults_and_both_spellings() -> None:
    values = DEFINITION.parse({"bootstrap.servers": "h:1", "linger_ms": "7", "acks": "ALL"})
    assert values == {
        "bootstrap_servers": "h:1",
        "linger_ms": 7,
        "level": 3,
        "enable_idempotence": True,
        "acks": -1,
        "sasl_secret": None,
        "partitioner_class": None,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger_ms": -1}, "linger_ms: got -1 (int), expected a whole number >= 0"),
        ({"linger_ms": True}, "linger_ms: got True (bool), expected a whole number >= 0"),
        ({"linger_ms": 0.5}, "linger_ms: got 0.5 (float), expected a whole number >= 0"),
        ({"linger_ms": float("nan")}, "linger_ms: got nan (float), expected a whole number >= 0"),
        ({"level": 10}, "level: got 10 (int), expected a whole number >= 1 and <= 9"),
        ({"acks": 2}, "acks: got 2 (int), expected one of 'all', '0', '1', '-1', 0, 1, -1"),
        ({"acks": "ALL "}, "acks: got 'ALL ' (str), expected one of"),
        ({"acks": True}, "acks: got True (bool), expected one of"),
        ({"enable_idempotence": 1}, "enable_idempotence: got 1 (int), expected True or False"),
        ({"bootstrap_servers": ""}, "bootstrap_servers: got '' (str), expected a non-empty str"),
        ({"partitioner_class": 3}, "partitioner_class: got 3 (int), expected a callable or None"),
        ({"bootstrap_server": "x"}, "did you mean 'bootstrap_servers'?"),
        ({"queue_buffering_max_ms": 5}, "here it is linger_ms"),
        ({"request_required_acks": 5}, "here it is acks"),
        ({"zzz": 5}, "unknown option 'zzz' for Producer"),
        ({"linger.ms": 1, "linger_ms": 2}, "linger.ms: got it twice"),
    ],
)
def test_error_names_invalid_value(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**given)
    assert message in str(caught.value)


def test_infinity_is_refused() -> None:
    with pytest.raises(ConfigError, match="linger_ms: got inf"):
        parse(linger_ms=float("inf"))


def test_error_names_missing_required_option() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers: got nothing"):
        DEFINITION.parse({})


def test_secret_value_is_never_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(sasl_secret=b"hunter2")
    assert "hunter2" not in str(caught.value)
    assert "a secret value" in str(caught.value)


def test_option_in_dict_and_keywords_is_refused() -> None:
    assert merged({"linger.ms": 1}, {"acks": 1}) == {"linger.ms": 1, "acks": 1}
    assert merged(None, {"acks": 1}) == {"acks": 1}
    with pytest.raises(ConfigError, match="acks: got it twice"):
        merged({"acks": 1}, {"acks": 1})
    with pytest.raises(ConfigError, match="expected a dict"):
        merged(["acks"], {})  # type: ignore[arg-type]
