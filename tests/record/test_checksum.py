"""Checksum of batches, against known values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.record import crc32c

CRC32C = {
    b"": 0,
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
}


@pytest.mark.parametrize(("data", "expected"), CRC32C.items())
def test_crc32c_of_known_strings(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_crc32c_continues_from_a_value(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)
