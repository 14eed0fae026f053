"""The partitioner's hash and the batch checksum, against known values."""

from types import ModuleType

import pytest
from aiokafka.partitioner import murmur2 as foreign_murmur2
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.record import crc32c, murmur2, reference, to_positive

MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
CRC32C = {
    b"": 0,
    b"123456789": 0xE3069283,
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
}


@pytest.mark.parametrize(("data", "expected"), MURMUR2.items())
def test_murmur2_of_known_strings(twin: ModuleType, data: bytes, expected: int) -> None:
    assert twin.murmur2(data) == expected
    assert twin.murmur2(memoryview(data)) == expected
    assert twin.murmur2(bytearray(data)) == expected


@settings(deadline=None)
@given(st.binary(max_size=70))
def test_murmur2_equals_other_clients(data: bytes) -> None:
    assert murmur2(data) & 0xFFFFFFFF == foreign_murmur2(data) & 0xFFFFFFFF
    assert reference.murmur2(data) == murmur2(data)


def test_to_positive_drops_the_sign_bit() -> None:
    assert to_positive(-1) == 2**31 - 1
    assert to_positive(-973932308) == 1173551340
    assert to_positive(5) == 5


@pytest.mark.parametrize(("data", "expected"), CRC32C.items())
def test_crc32c_of_known_strings(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@settings(deadline=None)
@given(st.binary(max_size=50), st.binary(max_size=50))
def test_crc32c_continues_from_a_value(first: bytes, second: bytes) -> None:
    assert crc32c(second, crc32c(first)) == crc32c(first + second)
