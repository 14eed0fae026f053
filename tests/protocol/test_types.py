import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import InvalidArgumentError, ProtocolError
from kclient.protocol import types


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (0xFFFFFFFF, "ffffffff0f")],
)
def test_uvarint(value: int, encoded: str) -> None:
    assert types.encode_uvarint(value).hex() == encoded
    data = bytes.fromhex(encoded)
    assert types.read_uvarint(b"\xff" + data, 1) == (value, 1 + len(data))


@pytest.mark.fault("P5")
@pytest.mark.parametrize("data", ["", "80", "ffffffff", "ffffffff10", "ffffffffff01", "8080808080"])
def test_bad_uvarints(data: str) -> None:
    with pytest.raises(ProtocolError):
        types.read_uvarint(bytes.fromhex(data), 0)


def test_negative_uvarint_is_refused() -> None:
    with pytest.raises(ValueError, match="got -1"):
        types.encode_uvarint(-1)


@given(st.none() | st.text(max_size=300))
def test_nullable_string(value: str | None) -> None:
    data = types.encode_nullable_string(value)
    assert types.read_nullable_string(memoryview(data), 0) == (value, len(data))


@pytest.mark.parametrize("value", ["x" * 32768, "\ud800"])
def test_invalid_strings_are_refused(value: str) -> None:
    with pytest.raises(InvalidArgumentError, match="string: got"):
        types.encode_nullable_string(value)


@pytest.mark.fault("P6")
@pytest.mark.parametrize(
    ("tags", "after"), [("00", 1), ("01 00 00", 3), ("02 01 01 ff 07 00", 6), ("00 05", 1)]
)
def test_tags_are_skipped(tags: str, after: int) -> None:
    assert types.skip_tags(memoryview(bytes.fromhex(tags)), 0) == after


@pytest.mark.fault("P6")
@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ("", "ends"),
        ("01", "ends"),
        ("01 00", "ends"),
        ("01 00 01", "needs 1 bytes, only 0 remain"),
        ("02 03 00 03 00", "tag 3 follows tag 3"),
        ("02 03 00 02 00", "tag 2 follows tag 3"),
        ("01 00 ffffffff0f 00", "needs 4294967295 bytes"),
        ("ffffffff0f", "ends"),
    ],
)
def test_broken_tags(tags: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        types.skip_tags(memoryview(bytes.fromhex(tags)), 0)
