import pickle
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.broker.log.log_config import TOPIC_CONFIG
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.common.config_def import (
    REQUIRED,
    Config,
    ConfigDef,
    ConfigType,
    merged,
)
from kclient.common.config_keys import choice, key, level, switch, text, whole_number
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG

ACKS = {"all": -1, "0": 0, "1": 1, "-1": -1, 0: 0, 1: 1, -1: -1}


class BaseConfig(Config):
    bootstrap_servers: str = text("bootstrap.servers", REQUIRED, "Where to begin.")
    linger_ms: int = whole_number("linger.ms", 5, "How long a batch waits.")


class ExampleConfig(BaseConfig):
    linger_ms: int = whole_number("linger.ms", 7, "How long a batch waits.")
    level: int = level("level", 3, "A level.", low=1, high=9)
    number: int | None = whole_number("number", None, "A number.", low=1, high=9)
    enable_idempotence: bool = switch("enable.idempotence", "No duplicates.", default=True)
    acks: int = choice("acks", -1, ACKS, "Acks.")
    sasl_secret: str | None = text("sasl.secret", None, "A secret.", secret=True)
    upper: str = key("upper", ConfigType.STRING, str, "a str", "", "Set by `validated`.")

    def validated(self, given: Mapping[str, object]) -> Self:
        if self.acks == 0 and "enable_idempotence" in given:
            raise ConfigError("acks: got 0, expected 'all' with enable_idempotence")
        return self.with_values(upper=",".join(given).upper())


DEFINITION = ConfigDef("Producer", ExampleConfig)


def parse(**given: Any) -> ExampleConfig:
    return DEFINITION.parse({"bootstrap_servers": "h:1", **given})


def test_fields_are_the_values_and_defaults() -> None:
    config = DEFINITION.parse({"bootstrap.servers": "h:1", "level": "7", "acks": "ALL"})
    assert config == ExampleConfig(
        bootstrap_servers="h:1",
        linger_ms=7,
        level=7,
        number=None,
        enable_idempotence=True,
        acks=-1,
        sasl_secret=None,
        upper="BOOTSTRAP_SERVERS,LEVEL,ACKS",
    )


def test_values_are_checked_against_explicit_ones() -> None:
    assert parse(acks=0).acks == 0
    with pytest.raises(ConfigError, match="acks: got 0, expected 'all' with enable_idempotence"):
        parse(acks=0, enable_idempotence=True)


def test_configuration_is_immutable() -> None:
    with pytest.raises(AttributeError):
        parse().linger_ms = 3  # type: ignore[misc]  # what is under test


def test_repr_hides_secrets() -> None:
    shown = repr(parse(sasl_secret="hunter2"))
    assert shown.startswith("ExampleConfig(bootstrap_servers='h:1', linger_ms=7, ")
    assert "sasl_secret=..." in shown
    assert "hunter2" not in shown


def test_subclass_may_change_a_default() -> None:
    assert [key.default for key in BaseConfig.CONFIG_KEYS.values()] == [REQUIRED, 5]
    assert DEFINITION.keys["linger.ms"].default == 7


@pytest.mark.parametrize(
    "definition", [PRODUCER_CONFIG, CONSUMER_CONFIG, ADMIN_CONFIG, BROKER_CONFIG, TOPIC_CONFIG]
)
def test_fields_are_named_as_their_keys(definition: ConfigDef[Any]) -> None:
    declared = {name: key.keyword for name, key in definition.config.CONFIG_KEYS.items()}
    assert declared == {name: name for name in declared}


def test_type_of_a_number_follows_its_range() -> None:
    assert DEFINITION.keys["number"].type is ConfigType.INT
    assert DEFINITION.keys["linger.ms"].type is ConfigType.LONG
    assert DEFINITION.keys["sasl.secret"].type is ConfigType.PASSWORD


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"linger_ms": -1}, "linger_ms: got -1 (int), expected a whole number >= 0"),
        ({"linger_ms": True}, "linger_ms: got True (bool), expected a whole number >= 0"),
        ({"linger_ms": 0.5}, "linger_ms: got 0.5 (float), expected a whole number >= 0"),
        ({"linger_ms": float("nan")}, "linger_ms: got nan (float), expected a whole number >= 0"),
        ({"number": 10}, "number: got 10 (int), expected a whole number >= 1 and <= 9"),
        ({"level": 10}, "level: got 10 (int), expected a whole number from 1 to 9"),
        ({"acks": 2}, "acks: got 2 (int), expected one of 'all', '0', '1', '-1', 0, 1, -1"),
        ({"acks": "ALL "}, "acks: got 'ALL ' (str), expected one of"),
        ({"acks": True}, "acks: got True (bool), expected one of"),
        ({"enable_idempotence": 1}, "enable_idempotence: got 1 (int), expected True or False"),
        ({"bootstrap_servers": ""}, "bootstrap_servers: got '' (str), expected a non-empty str"),
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


def test_configurations_are_immutable() -> None:
    config: Any = parse()
    with pytest.raises(AttributeError, match="linger_ms"):
        config.linger_ms = 6
    with pytest.raises(AttributeError, match="linger_ms"):
        del config.linger_ms
    with pytest.raises(AttributeError, match="lingering"):
        config.lingering = 6
    assert config == parse()


def test_copy_with_other_values() -> None:
    config = parse(level=4)
    changed = config.with_values(linger_ms=9)
    assert (changed.linger_ms, changed.level, config.linger_ms) == (9, 4, 7)
    assert type(changed) is ExampleConfig
    assert changed == parse(level=4, linger_ms=9).with_values(upper=config.upper)


def test_constructor_refuses_unknown_and_missing_names() -> None:
    build: Any = ExampleConfig
    with pytest.raises(TypeError, match="ExampleConfig has no attribute 'lingers'"):
        build(bootstrap_servers="h:1", lingers=1)
    with pytest.raises(TypeError, match="ExampleConfig needs the attribute 'bootstrap_servers'"):
        build()


def test_configurations_of_another_class_are_not_equal() -> None:
    class OtherConfig(BaseConfig):
        pass

    assert OtherConfig(bootstrap_servers="h:1") != BaseConfig(bootstrap_servers="h:1")


def test_configurations_can_be_pickled() -> None:
    config = parse(sasl_secret="hidden")
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301 (what this test made)


class CachingConfig(BaseConfig):
    @cached_property
    def seconds(self) -> float:
        return self.linger_ms / 1000


def test_cached_properties_are_no_values() -> None:
    config = CachingConfig(bootstrap_servers="h:1", linger_ms=1000)
    assert config.seconds == 1.0
    assert config == CachingConfig(bootstrap_servers="h:1", linger_ms=1000)
    assert config.with_values(linger_ms=2000).seconds == 2.0
