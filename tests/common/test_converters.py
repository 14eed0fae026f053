"""Accepted and refused forms of serializers and deserializers."""

import json
import pickle
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from kclient.common.converters import DataOnly
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.producer.producer_config import PRODUCER_CONFIG

SERIALIZER = PRODUCER_CONFIG.keys["value.serializer"]
DESERIALIZER = CONSUMER_CONFIG.keys["value.deserializer"]


class WithMethod:
    def serialize(self, topic: str, headers: list[Any], data: Any) -> bytes:
        return f"{topic} {headers} {data}".encode()


class Callable3:
    def __call__(self, topic: str, headers: list[Any], data: Any) -> bytes:
        return b"called"


class Callable1:
    def __call__(self, data: Any) -> bytes:
        return bytes(data)


class Confluent:
    """As confluent-kafka's serializers with a schema."""

    def __call__(self, obj: Any, ctx: Any) -> bytes:
        return b""


class ConfluentString:
    def __call__(self, obj: Any, ctx: Any = None) -> bytes:
        return str(obj).encode()


class BothForms(Confluent):
    def serialize(self, topic: str, headers: list[Any], data: Any) -> bytes:
        return b"method"


def with_optional_headers(topic: str, headers: Any = None, data: Any = None) -> Any:
    return topic, headers, data


@pytest.mark.parametrize(
    ("given", "data", "expected"),
    [
        (str.encode, "ä", "ä".encode()),
        (bytes.decode, b"x", "x"),
        (json.loads, b"[1]", [1]),
        (lambda value: json.dumps(value).encode(), {"a": 1}, b'{"a": 1}'),
        (pickle.dumps, 1, pickle.dumps(1)),
        (int, b"12", 12),
        (float, b"1.5", 1.5),
        (Decimal, "1.5", Decimal("1.5")),
        (uuid.UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        (struct.Struct(">q").pack, 1, bytes(7) + b"\1"),
        (partial(json.loads, parse_int=float), b"1", 1.0),
        (Callable1(), [1], b"\1"),
        (ConfluentString(), 5, b"5"),
        (len, b"abc", 3),
    ],
)
def test_callable_of_one_argument_gets_data(
    given: Callable[..., Any], data: Any, expected: Any
) -> None:
    converter: Any = SERIALIZER.convert(given)
    assert type(converter) is DataOnly
    assert converter.function is given
    assert converter("topic", [], data) == expected
    assert converter("topic", [], None) is None


@pytest.mark.parametrize(
    "given",
    [
        lambda topic, headers, data: (topic, headers, data),
        lambda *arguments: arguments,
        lambda topic, *rest: (topic, *rest),
        with_optional_headers,
        partial(lambda schema, topic, headers, data: (topic, headers, data), "schema"),
    ],
)
def test_callable_of_three_arguments_is_used_without_wrapper(
    given: Callable[..., Any],
) -> None:
    converter: Any = DESERIALIZER.convert(given)
    assert converter is given
    assert converter("t", [], b"d") == ("t", [], b"d")


def test_callable_objects_and_objects_with_method_are_used_unchanged() -> None:
    called, mock, method = Callable3(), Mock(), WithMethod()
    assert SERIALIZER.convert(called) is called
    assert SERIALIZER.convert(mock) is mock
    assert SERIALIZER.convert(method) == method.serialize
    both: Any = SERIALIZER.convert(BothForms())
    assert both("t", [], 1) == b"method"
    assert SERIALIZER.convert(None) is None


async def encode_later(data: Any) -> bytes:
    return b""


class TwoArguments:
    def serialize(self, topic: str, data: Any) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (lambda: b"", r"its parameters are \(\)"),
        (lambda topic, data: b"", r"its parameters are \(topic, data\)"),
        (Confluent(), r"its parameters are \(obj: Any, ctx: Any\) -> bytes"),
        (lambda a, b, c, d: b"", r"its parameters are \(a, b, c, d\)"),
        (lambda data, *, schema: b"", r"its parameters are \(data, \*, schema\)"),
        (WithMethod, r"it is a class; give an instance: WithMethod\(\.\.\.\)"),
        (Callable3, r"it is a class; give an instance: Callable3\(\.\.\.\)"),
        (TwoArguments(), r"the parameters of serialize are \(topic: str, data: Any\)"),
        (encode_later, "coroutine function"),
        ("json", "^$"),
        (7, "^$"),
    ],
)
def test_other_forms_are_refused_with_reason(given: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        SERIALIZER.convert(given)
    assert "(data) or (topic, headers, data), or an object with serialize(" in SERIALIZER.expected
