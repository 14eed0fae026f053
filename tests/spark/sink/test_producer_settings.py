"""Validation of the producer configuration of a sink."""

import copy
from typing import Any

import pytest

from kclient.common.errors import ConfigError, InvalidArgumentError, InvalidTypeError, KafkaError
from kclient.spark import foreach_partition_sink
from kclient.spark.sink.producer_settings import ProducerSettings

CONF: dict[str, object] = {"bootstrap.servers": "localhost:9092"}


def test_equal_settings_have_equal_digests() -> None:
    dotted = ProducerSettings({**CONF, "linger.ms": 7})
    underscored = ProducerSettings({"linger_ms": 7, "bootstrap_servers": "localhost:9092"})

    assert dotted == underscored
    assert hash(dotted) == hash(underscored)
    assert dotted.digest == underscored.digest
    assert dotted.digest != ProducerSettings({**CONF, "linger.ms": 8}).digest


def test_repr_of_settings_has_no_values() -> None:
    settings = ProducerSettings({**CONF, "client.id": "hunter2"})

    assert (
        "hunter2"
        not in f"{settings!r} {settings} {foreach_partition_sink(settings.config(), topic='t')!r}"
    )


def test_copied_settings_are_equal() -> None:
    settings = ProducerSettings({**CONF, "linger.ms": 7})

    assert copy.deepcopy(settings).config() == settings.config()


WRONG: list[tuple[Any, str]] = [
    ("localhost:9092", "conf: got 'localhost:9092' (str), expected a dict"),
    ({}, "bootstrap_servers: got nothing"),
    ({**CONF, "linger": 5}, "unknown option 'linger'"),
    ({**CONF, 7: 5}, "conf: got the option 7 (int), expected names as str"),
    ({**CONF, "linger.ms": 5, "linger_ms": 5}, "given twice"),
    ({**CONF, "linger.ms": "soon"}, "linger.ms: got 'soon'"),
    (
        {**CONF, "key.serializer": "x"},
        "key.serializer: got a value, expected none; keys and values are bytes",
    ),
    ({**CONF, "value.serializer": str}, "value.serializer: got a value, expected none; keys"),
    ({**CONF, "interceptor.classes": []}, "interceptor.classes: got a value, expected none"),
    ({**CONF, "transactional.id": "x"}, "transactional.id: got a value, expected none; each task"),
    ({**CONF, "partitioner.class": len}, "expected str, a number, True or False"),
    ({**CONF, "acks": 0}, "acks: got 0, expected 'all' or 1"),
    ({**CONF, "acks": "0"}, "acks: got 0, expected 'all' or 1"),
]


@pytest.mark.parametrize(("conf", "text"), WRONG)
def test_wrong_settings_fail_on_the_driver(conf: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        foreach_partition_sink(conf, topic="t")

    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"topic": 7}, InvalidTypeError, "topic"),
        ({"topic": "a b"}, InvalidArgumentError, "topic"),
        ({"topic": "t", "key": 7}, InvalidTypeError, "key: got 7 (int), expected the name"),
        ({"topic": "t", "value": None}, InvalidTypeError, "value: got None"),
        ({"topic": "t", "value": ""}, InvalidTypeError, "value: got ''"),
        ({"topic": "t", "partition": 0}, InvalidTypeError, "partition: got 0 (int)"),
        ({"topic": "t", "flush_timeout": -1}, InvalidArgumentError, "flush_timeout: got -1"),
        ({"topic": "t", "flush_timeout": "5"}, InvalidTypeError, "flush_timeout: got '5'"),
        ({"topic": "t", "delivery": "at_least_once"}, ConfigError, "did you mean 'at-least-once'?"),
        ({"topic": "t", "delivery": None}, ConfigError, "delivery: got None"),
        ({"delivery": "exactly-once"}, ConfigError, "write_id: got nothing, expected an id"),
        ({"write_id": "w"}, ConfigError, "write_id: got 'w' (str), expected it with delivery"),
        ({"delivery": "exactly-once", "write_id": 7}, ConfigError, "write_id: got 7 (int)"),
        ({"transactional_id_prefix": ""}, ConfigError, "transactional_id_prefix: got ''"),
    ],
)
def test_wrong_arguments_fail_on_the_driver(
    arguments: Any, kind: type[KafkaError], text: str
) -> None:
    with pytest.raises(kind) as caught:
        foreach_partition_sink(CONF, **arguments)

    assert text in str(caught.value)
