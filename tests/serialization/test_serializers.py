from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient import serialization as s
from kclient.common.errors import SerializationError

PAIRS = {
    "bytes": (s.bytes_serializer, s.bytes_deserializer, st.binary()),
    "string": (s.string_serializer, s.string_deserializer, st.text()),
    "int": (s.int_serializer, s.int_deserializer, st.integers(-(2**63), 2**63 - 1)),
    "float": (s.float_serializer, s.float_deserializer, st.floats(allow_nan=False)),
    "json": (
        s.json_serializer,
        s.json_deserializer,
        st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none()),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    serialize, deserialize, values = PAIRS[name]
    value = data.draw(values)
    encoded = serialize("t", [], value)
    assert isinstance(encoded, bytes)
    assert deserialize("t", [], encoded) == value


@pytest.mark.parametrize("name", PAIRS)
def test_none_passes_through(name: str) -> None:
    serialize, deserialize, _ = PAIRS[name]
    assert serialize("t", [], None) is None
    assert deserialize("t", [], None) is None


@pytest.mark.parametrize(
    ("serialize", "value"),
    [
        (s.bytes_serializer, "text"),
        (s.string_serializer, b"bytes"),
        (s.int_serializer, "1"),
        (s.int_serializer, 2**63),
        (s.float_serializer, "1.0"),
    ],
)
def test_wrong_types_are_refused(serialize: s.Serializer, value: Any) -> None:
    with pytest.raises(SerializationError, match="expected"):
        serialize("t", [], value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), r"not JSON compliant.*; replace NaN and infinity, for example by None"),
        ({"a": [float("inf")]}, r"; replace NaN and infinity"),
        (
            datetime(2026, 1, 1, tzinfo=UTC),
            r"datetime is not JSON serializable; convert it, or give ",
        ),
        ({"a": {1, 2}}, r"lambda data: json\.dumps\(data, default=str\)\.encode\(\)"),
    ],
)
def test_what_json_has_no_form_of_is_refused_with_what_to_do(value: Any, text: str) -> None:
    with pytest.raises(SerializationError, match=text):
        s.json_serializer("t", [], value)


def test_a_cycle_is_no_json() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(SerializationError, match="Circular reference detected"):
        s.json_serializer("t", [], cycle)


@pytest.mark.parametrize("deserialize", [s.int_deserializer, s.float_deserializer])
def test_wrong_lengths_are_refused(deserialize: s.Deserializer) -> None:
    with pytest.raises(SerializationError, match="got 3 bytes, expected 8"):
        deserialize("t", [], b"abc")


def test_java_layouts() -> None:
    assert s.int_serializer("t", [], 1) == bytes([0, 0, 0, 0, 0, 0, 0, 1])
    assert s.float_serializer("t", [], 1.0) == bytes.fromhex("3ff0000000000000")
    assert s.bytes_serializer("t", [], memoryview(b"ab")) == b"ab"
