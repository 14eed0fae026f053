"""The partitioner's hash, against known values."""

from types import ModuleType

import pytest
from aiokafka.partitioner import murmur2 as foreign_murmur2
from hypothesis import given
from hypothesis import strategies as st

from kclient.record import murmur2, reference
from kclient.record.reference.murmur2 import to_positive

MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("data", "expected"), MURMUR2.items())
def test_murmur2_of_known_strings(twin: ModuleType, data: bytes, expected: int) -> None:
    assert twin.murmur2(data) == expected
    assert twin.murmur2(memoryview(data)) == expected
    assert twin.murmur2(bytearray(data)) == expected


@given(st.binary(max_size=70))
def test_murmur2_equals_other_clients(data: bytes) -> None:
    assert murmur2(data) & 0xFFFFFFFF == foreign_murmur2(data) & 0xFFFFFFFF
    assert reference.murmur2(data) == murmur2(data)


def test_to_positive_drops_the_sign_bit() -> None:
    assert to_positive(-1) == 2**31 - 1
    assert to_positive(-973932308) == 1173551340
    assert to_positive(5) == 5
