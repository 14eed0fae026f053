import random
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.errors import InvalidArgumentError
from kclient.common.uuids import (
    METADATA_TOPIC_ID,
    ZERO_UUID,
    random_uuid,
    text_to_uuid,
    uuid_to_text,
)


def test_known_texts() -> None:
    assert uuid_to_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@given(st.binary(min_size=16, max_size=16))
def test_text_round_trip(value: bytes) -> None:
    text = uuid_to_text(value)
    assert len(text) == 22
    assert text_to_uuid(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "A" * 21, "A" * 23, "A" * 21 + "B", "A" * 21 + "=", "A" * 21 + "+", "é" * 22, " " * 22],
)
def test_bad_texts(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="uuid: got"):
        text_to_uuid(text)


def test_random_uuids_are_version_4_and_differ() -> None:
    source = random.Random(1)
    made = [random_uuid(source) for _ in range(500)]
    assert len(set(made)) == 500
    assert {uuid.UUID(bytes=value).version for value in made} == {4}
    assert not any(uuid_to_text(value).startswith("-") for value in made)


def test_uuid_text_never_starts_with_dash() -> None:
    draws = [b"\xf8" + bytes(15), b"\x01" + bytes(15)]

    class Scripted:
        def randbytes(self, n: int) -> bytes:
            return draws.pop(0)[:n]

    assert uuid_to_text(b"\xf8" + bytes(15)).startswith("-")
    assert random_uuid(Scripted())[0] == 1
