"""Preparation of a record: checks, interceptors, serializers, in this order."""

from typing import Any

import pytest

from kclient.common.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    SerializationError,
)
from kclient.common.types import RecordMetadata
from kclient.producer.interceptors import ProducerInterceptor, ProducerInterceptors
from kclient.producer.record_preparer import RecordPreparer, SerializedRecord
from kclient.producer.send_arguments import Headers, ProducerRecord
from kclient.serialization import Serializer

NOW_MS = 1_234


def preparer(
    key: Serializer | None = None,
    value: Serializer | None = None,
    *interceptors: ProducerInterceptor,
) -> RecordPreparer:
    return RecordPreparer(key, value, ProducerInterceptors(interceptors), lambda: NOW_MS)


def upper(_topic: str, headers: Headers, text: object) -> bytes:
    headers.append(("by", b"upper"))
    return str(text).upper().encode()


class Stamp(ProducerInterceptor):
    """Changes fields of records."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(**self.changes)

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        raise AssertionError("nothing was sent")


def test_bytes_are_unchanged_and_time_is_the_present() -> None:
    record = ProducerRecord("t", b"v", b"k", [("h", None)], 2)
    assert preparer().prepare(record) == SerializedRecord("t", b"k", b"v", [("h", None)], 2, NOW_MS)
    assert preparer().prepare(ProducerRecord("t", timestamp_ms=7)).timestamp_ms == 7


def test_interceptor_precedes_the_serializer() -> None:
    prepared = preparer(None, upper, Stamp(value="changed")).prepare(ProducerRecord("t", "given"))
    assert prepared.value == b"CHANGED"


def test_serializer_may_add_headers() -> None:
    given: Headers = [("first", b"1")]
    prepared = preparer(None, upper).prepare(ProducerRecord("t", "x", headers=given))
    assert prepared.headers == [("first", b"1"), ("by", b"upper")]
    assert given == [("first", b"1")]


def test_serializer_that_raises_is_named() -> None:
    def fail(*_: object) -> bytes:
        raise ValueError("no schema")

    with pytest.raises(SerializationError, match=r"key.*no schema"):
        preparer(fail).prepare(ProducerRecord("t", b"v", "k"))


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (ProducerRecord("no/topic"), InvalidArgumentError),
        (ProducerRecord("t", partition=-2), InvalidArgumentError),
        (ProducerRecord("t", timestamp_ms=-5), InvalidArgumentError),
        (ProducerRecord("t", value=5), InvalidTypeError),
        (ProducerRecord("t", headers=[("h", "text")]), InvalidTypeError),  # type: ignore[list-item]
    ],
)
def test_record_is_checked_before_and_after_interceptors(
    record: ProducerRecord, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        preparer().prepare(record)
    with pytest.raises(kind):
        preparer(None, None, Stamp(**record._asdict())).prepare(ProducerRecord("t", b"v"))


def test_stages_that_change_records_are_known() -> None:
    assert not preparer().changes_records
    assert preparer(None, None, Stamp()).changes_records
    with_key, with_value = preparer(upper), preparer(None, upper)
    assert (with_key.changes_records, with_value.changes_records) == (True, True)
    assert (with_key.serializes_keys, with_key.serializes_values) == (True, False)
    assert (with_value.serializes_keys, with_value.serializes_values) == (False, True)
