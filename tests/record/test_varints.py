"""Integers of variable length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import InvalidArgumentError
from kclient.record import decode_varint, decode_varlong, encode_varint, size_of_varint
from kclient.record.varints import encode_length

KNOWN = {
    0: "00",
    -1: "01",
    1: "02",
    63: "7e",
    -64: "7f",
    64: "8001",
    -65: "8101",
    8191: "fe7f",
    8192: "808001",
    2**31 - 1: "feffffff0f",
    -(2**31): "ffffffff0f",
    2**63 - 1: "feffffffffffffffff01",
    -(2**63): "ffffffffffffffffff01",
}


@pytest.mark.parametrize(("value", "encoded"), KNOWN.items())
def test_known_values(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert decode_varlong(bytes.fromhex(encoded)) == (value, len(encoded) // 2)
    assert size_of_varint(value) == len(encoded) // 2


def test_length_of_null_is_minus_one() -> None:
    assert [encode_length(data).hex() for data in (None, b"", b"x" * 64)] == ["01", "00", "8001"]


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_varlong_round_trip(value: int, before: bytes, after: bytes) -> None:
    encoded = encode_varint(value)
    data = before + encoded + after
    assert decode_varlong(data, len(before)) == (value, len(before) + len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_varint_round_trip(value: int) -> None:
    encoded = encode_varint(value)
    assert decode_varint(memoryview(encoded)) == (value, len(encoded))


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_more_than_64_bits_are_rejected(value: int) -> None:
    with pytest.raises(InvalidArgumentError, match="64 bits"):
        encode_varint(value)


@pytest.mark.parametrize("data", ["", "80", "8080808080", "ffffffff1f", "808080808000"])
def test_malformed_varint_is_corrupt(data: str) -> None:
    with pytest.raises(CorruptRecordError):
        decode_varint(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["", "ff" * 9, "ff" * 9 + "02", "ff" * 10 + "00"])
def test_malformed_varlong_is_corrupt(data: str) -> None:
    with pytest.raises(CorruptRecordError):
        decode_varlong(bytes.fromhex(data))


def test_negative_position_is_rejected() -> None:
    with pytest.raises(InvalidArgumentError, match="position: got -1"):
        decode_varint(b"\x00", -1)
