"""Errors of deserializers."""

import pytest

from kclient.common.errors import SerializationError
from kclient.common.types import TopicPartition
from kclient.record.errors import RecordDeserializationError
from kclient.record.record import Header

HEADERS: list[Header] = [("h", b"1"), ("h", None)]


def failed(cause: Exception, origin: str = "value") -> RecordDeserializationError:
    place = TopicPartition("orders", 3)
    return RecordDeserializationError(origin, place, 41, 1000, b"k", b"secret", HEADERS, cause)


def test_error_has_the_record_as_received() -> None:
    error = failed(ValueError("bad"), "key")
    assert isinstance(error, SerializationError)
    assert (error.origin, error.topic_partition, error.offset) == (
        "key",
        TopicPartition("orders", 3),
        41,
    )
    assert (error.timestamp_ms, error.key, error.value) == (1000, b"k", b"secret")
    assert error.headers == HEADERS
    assert error.headers is not HEADERS


def test_error_of_data_names_the_offset_that_skips_the_record() -> None:
    text = str(failed(ValueError("not JSON")))
    assert text == (
        "orders-3, offset 41: the value deserializer failed: ValueError: not JSON; "
        "if only this record is damaged, seek to 42 to skip it"
    )


@pytest.mark.parametrize(
    "kind",
    [AssertionError, AttributeError, ImportError, NameError, NotImplementedError, TypeError],
)
def test_error_of_code_does_not_suggest_to_skip_the_record(kind: type[Exception]) -> None:
    text = str(failed(kind("x")))
    assert f"{kind.__name__} usually is a mistake in the deserializer's code" in text
    assert "seek to" not in text


def test_text_of_the_cause_is_bounded() -> None:
    assert len(str(failed(ValueError("x" * 100_000)))) < 500
