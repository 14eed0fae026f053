"""Invalid arguments raise before any request: the brokers here do not exist."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from kclient import Producer
from kclient.common.errors import (
    ClosedError,
    ConfigError,
    InvalidArgumentError,
    InvalidTypeError,
    SerializationError,
)
from kclient.producer.send_arguments import check_on_delivery
from kclient.serialization import int_serializer


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=60_000) as made:
        yield made


async def coroutine(metadata: object, error: object) -> None: ...


def confluent(err: object, msg: object) -> None: ...


def keyed(key: object, err: object, msg: object) -> None: ...


class Confluent:
    def __call__(self, err: object, msg: object) -> None: ...

    def acked(self, exc: object, record: object) -> None: ...


class Javas:
    def __call__(self, metadata: object, exception: object) -> None: ...

    def acked(self, metadata: object, error: object) -> None: ...


NAIVE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"topic": None}, TypeError, r"topic: got None \(NoneType\), expected a topic name as str"),
        ({"topic": 5}, TypeError, r"topic: got 5 \(int\)"),
        ({"topic": []}, TypeError, r"topic: got \[\] \(list\)"),
        ({"topic": ""}, ValueError, r"topic: got '', .*it is empty"),
        ({"topic": "x" * 250}, ValueError, r"it has 250 characters, more than 249"),
        ({"topic": "a/b"}, ValueError, r"topic: got 'a/b', expected 1 to 249 of"),
        ({"topic": ".."}, ValueError, r"'\.' and '\.\.' are not allowed"),
        (
            {"value": {"a": 1}},
            TypeError,
            r"value: got dict, expected bytes-like or None; set value_serializer=json_serializer",
        ),
        ({"value": 5}, TypeError, r"value: got int, .* set value_serializer=int_serializer"),
        ({"value": 5.0}, TypeError, r"set value_serializer=float_serializer"),
        ({"value": "s"}, TypeError, r"set value_serializer=string_serializer, or encode it"),
        ({"key": "s"}, TypeError, r"key: got str, .* set key_serializer=string_serializer"),
        ({"partition": -7}, ValueError, r"partition: got -7 \(int\), expected 0 to 2147483647"),
        ({"partition": "0"}, TypeError, r"partition: got '0' \(str\), expected an int or None"),
        ({"partition": True}, TypeError, r"partition: got True \(bool\)"),
        ({"timestamp_ms": -5}, ValueError, r"timestamp_ms: got -5"),
        ({"timestamp_ms": 1.5}, TypeError, r"timestamp_ms: got 1\.5 \(float\)"),
        ({"timestamp_ms": NAIVE}, TypeError, r"int\(moment\.timestamp\(\) \* 1000\)"),
        ({"timestamp_ms": 2**63}, ValueError, r"timestamp_ms: got 9223372036854775808"),
        ({"headers": {"a": b"b"}}, TypeError, r"headers: .*list\(headers\.items\(\)\)"),
        ({"headers": [("a", 1)]}, TypeError, r"headers\[0\] \('a', 1\): value must be bytes or"),
        ({"headers": [("a", b""), (1, b"")]}, TypeError, r"headers\[1\] \(1, b''\): name must be"),
        ({"headers": ["ab"]}, TypeError, r"headers\[0\]: got 'ab'"),
        ({"headers": 7}, TypeError, r"headers: got 7 \(int\)"),
        ({"on_delivery": 3}, TypeError, r"on_delivery: got 3 \(int\), expected a callable"),
        ({"on_delivery": coroutine}, TypeError, r"would not be awaited"),
        ({"on_delivery": confluent}, TypeError, r"parameters \(err, msg\), .*swap the parameters"),
        ({"on_delivery": lambda e, m: None}, TypeError, r"\(e, m\), .*confluent-kafka passes it"),
        ({"on_delivery": lambda error, _: None}, TypeError, r"swap the parameters"),
        ({"on_delivery": Confluent()}, TypeError, r"parameters \(err, msg\), expected \(metadata,"),
        ({"on_delivery": Confluent().acked}, TypeError, r"parameters \(exc, record\)"),
        ({"on_delivery": partial(keyed, 1)}, TypeError, r"parameters \(err, msg\)"),
        (
            {"on_delivery": lambda future: None},
            TypeError,
            r"parameters \(future\), expected \(meta",
        ),
    ],
)
def test_send_raises_at_once(
    producer: Producer, given: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        producer.send(**({"topic": "t", "value": b"v"} | given))


@pytest.mark.parametrize(
    "given",
    [
        lambda metadata, error: None,
        lambda m, e: None,
        lambda *outcome: None,
        lambda metadata, error, key=b"k": None,
        lambda error, exception: None,  # unusual, but not recognizably swapped
        partial(keyed, msg=1),
        Javas(),
        Javas().acked,
        print,
    ],
)
def test_other_callbacks_are_accepted(given: Any) -> None:
    for _ in range(2):
        check_on_delivery(given)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"values": b"abc"}, InvalidTypeError, r"values: got b'abc' \(bytes\), expected a list"),
        ({"values": 5}, InvalidTypeError, r"values: got 5 \(int\), expected a list"),
        ({"values": [b"a", 1]}, InvalidTypeError, r"value: got int, expected bytes-like"),
        ({"keys": [b"a", b"b"]}, InvalidArgumentError, r"keys: got 2 items, expected 1"),
        ({"keys": ["a"]}, InvalidTypeError, r"key: got str"),
        ({"timestamps_ms": [1, 2]}, InvalidArgumentError, r"timestamps_ms: got 2 items"),
        ({"timestamps_ms": [None]}, InvalidArgumentError, r"timestamps_ms: got None in a list"),
        ({"timestamps_ms": -1}, InvalidArgumentError, r"timestamp_ms: got -1"),
        ({"partition": -1}, InvalidArgumentError, r"partition: got -1"),
        ({"headers": [1]}, InvalidTypeError, r"headers\[0\]"),
        ({"topic": ""}, InvalidArgumentError, r"topic: got ''"),
    ],
)
def test_send_many_raises_at_once(
    producer: Producer, given: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        producer.send_many(**({"topic": "t", "values": [b"v"]} | given))


@pytest.mark.parametrize("timeout", [-0.5, float("nan")])
def test_negative_timeouts_raise(producer: Producer, timeout: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"timeout: got .* expected seconds >= 0"):
        producer.flush(timeout)
    with pytest.raises(InvalidArgumentError, match="timeout"):
        producer.close(timeout)


def test_timeouts_must_be_numbers(producer: Producer) -> None:
    with pytest.raises(InvalidTypeError, match=r"timeout: got '5' \(str\)"):
        producer.flush("5")  # type: ignore[arg-type]  # invalid on purpose


def test_serializer_error_names_field_and_topic() -> None:
    def fail(topic: str, headers: object, data: object) -> bytes:
        raise LookupError("no schema")

    for options, value, key, text in (
        ({"value_serializer": fail}, 5, None, r"value for topic 't'.*LookupError: no schema"),
        ({"key_serializer": int_serializer}, b"", "x", r"key for topic 't': got 'x', expected"),
        ({"value_serializer": lambda *_: "no"}, b"", None, "the serializer returned str"),
    ):
        with (
            Producer(bootstrap_servers="127.0.0.1:1", **options) as producer,
            pytest.raises(SerializationError, match=text),
        ):
            producer.send("t", value, key)


def test_closed_producer_raises(producer: Producer) -> None:
    producer.close()
    for call in (
        lambda: producer.send("t", b""),
        lambda: producer.send_many("t", [b""]),
        lambda: producer.send_arrow("t", pa.table({"value": [b""]})),
        lambda: producer.partitions_for("t"),
        producer.flush,
    ):
        with pytest.raises(ClosedError, match="the producer is closed"):
            call()
    producer.close()


def test_invalid_options_start_no_thread() -> None:
    with pytest.raises(ConfigError, match="got it twice"):
        Producer({"linger.ms": 1}, linger_ms=2, bootstrap_servers="h:1")
    with pytest.raises(ConfigError, match=r"bootstrap_servers: got nothing"):
        Producer()
    with pytest.raises(
        ConfigError, match=r"config: got 'h:1' \(str\), expected a dict.*bootstrap_servers="
    ):
        Producer("h:1")  # type: ignore[arg-type]  # invalid on purpose
