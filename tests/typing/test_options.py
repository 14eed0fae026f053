"""The types of the options are those that the clients accept."""

import collections.abc
from ssl import SSLContext
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from kclient.admin.admin_core import ADMIN_CONFIG, AdminOptions
from kclient.common.config_def import ConfigDef, ConfigKey
from kclient.consumer.consumer_config import CONSUMER_CONFIG, ConsumerOptions
from kclient.producer.producer_config import PRODUCER_CONFIG, ProducerOptions
from kclient.serialization import Deserializer, Serializer

OPTIONS: list[tuple[ConfigDef[Any], Any]] = [
    (PRODUCER_CONFIG, ProducerOptions),
    (CONSUMER_CONFIG, ConsumerOptions),
    (ADMIN_CONFIG, AdminOptions),
]


def hints_of(types: Any) -> dict[str, Any]:
    """Return the types of the options; the clients import the module ssl with its first use."""
    return get_type_hints(types, localns={"SSLContext": SSLContext})


def a_callable(*_: object) -> bytes:
    return b""


JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' username="alice" password="secret";'
)

# What is tried for each type: one of them is accepted if the type is.
PROBES: dict[str, list[object]] = {
    "int": [1, 5, 1000, 10_000],
    "bool": [True],
    "str": [
        "some text",
        "host:1",
        JAAS,
        "https://host/token",
        "name=value",
        "TLSv1.2",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    ],
    "NoneType": [None],
    "callable": [a_callable],
}


def can_be_set(definition: ConfigDef[Any]) -> dict[str, ConfigKey]:
    return {key.keyword: key for key in definition.keys.values() if not key.refused}


def literals(annotation: Any) -> list[object]:
    """Return the values that an annotation lists."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [value for part in get_args(annotation) for value in literals(part)]


def accepted_types(annotation: Any) -> set[str]:
    """Return which of the probes' types an annotation allows as a whole."""
    origin = get_origin(annotation)
    if origin in {Union, UnionType}:
        return set().union(*map(accepted_types, get_args(annotation)))
    if origin is collections.abc.Callable or annotation in {Serializer, Deserializer}:
        return {"callable"}
    return {annotation.__name__} & PROBES.keys() if isinstance(annotation, type) else set()


def accepts(key: ConfigKey, value: object) -> bool:
    try:
        key.convert(value)
    except (TypeError, ValueError):
        return False
    return True


CASES = [
    pytest.param(key, hints_of(types)[name], id=f"{definition.owner}.{name}")
    for definition, types in OPTIONS
    for name, key in can_be_set(definition).items()
    if name in hints_of(types)
]


@pytest.mark.parametrize(("definition", "types"), OPTIONS, ids=lambda each: None)
def test_every_option_that_can_be_set_has_a_type(definition: ConfigDef[Any], types: Any) -> None:
    assert set(hints_of(types)) == set(can_be_set(definition))


@pytest.mark.parametrize(("key", "annotation"), CASES)
def test_the_values_that_a_type_lists_are_accepted(key: ConfigKey, annotation: Any) -> None:
    listed = literals(annotation)
    assert [value for value in listed if not accepts(key, value)] == []
    if key.choices:
        assert set(map(repr, listed)) == set(map(repr, key.choices))


@pytest.mark.parametrize(("key", "annotation"), CASES)
@pytest.mark.parametrize("kind", PROBES)
def test_a_type_allows_what_the_client_accepts(key: ConfigKey, annotation: Any, kind: str) -> None:
    allowed = kind in accepted_types(annotation)
    listed = literals(annotation)
    taken = any(accepts(key, probe) for probe in PROBES[kind] if probe not in listed)
    assert taken == allowed
