"""Records that consumers return."""

from dataclasses import FrozenInstanceError
from types import ModuleType
from typing import Any

import pytest

from kclient.common.types import TopicPartition
from kclient.record import TimestampType, reference
from kclient.record.record import RECORD_NAMES


def test_defaults_are_those_of_a_record_without_key_and_timestamp(twin: ModuleType) -> None:
    record = twin.ConsumerRecord("t", 1, 5)
    assert (record.topic, record.partition, record.offset) == ("t", 1, 5)
    assert (record.timestamp_ms, record.timestamp_type) == (-1, TimestampType.NO_TIMESTAMP_TYPE)
    assert (record.key, record.value, record.headers, record.leader_epoch) == (None, None, [], -1)
    assert (record.serialized_key_size, record.serialized_value_size) == (-1, -1)


def test_headers_are_not_shared(twin: ModuleType) -> None:
    first, second = twin.ConsumerRecord("t", 1, 5), twin.ConsumerRecord("t", 1, 6)
    first.headers.append(("h", b"1"))
    assert second.headers == []


def test_aliases(twin: ModuleType) -> None:
    record = twin.ConsumerRecord("t", 1, 5, 1000)
    assert record.topic_partition == TopicPartition("t", 1)
    assert record.timestamp == record.timestamp_ms == 1000


def test_records_cannot_be_changed(twin: ModuleType) -> None:
    record = twin.ConsumerRecord("t", 1, 5)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        record.offset = 6


def test_types_of_key_and_value_can_be_named(twin: ModuleType) -> None:
    alias: Any = twin.ConsumerRecord[str, int]
    assert alias("t", 1, 5, key="k", value=7).value == 7


def test_equality_is_by_value(twin: ModuleType) -> None:
    record = twin.ConsumerRecord("t", 1, 5, value=b"v")
    assert record == twin.ConsumerRecord("t", 1, 5, value=b"v")
    assert record != twin.ConsumerRecord("t", 1, 6, value=b"v")


def test_names_of_other_clients_have_hints(twin: ModuleType) -> None:
    record = twin.ConsumerRecord("t", 0, 0)
    for name, hint in RECORD_NAMES.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; ") as caught:
            getattr(record, name)
        assert str(caught.value).endswith(hint)
        assert not hasattr(record, name)
        assert name not in dir(record)
    assert "offset" in dir(record)


def test_records_are_hashed_by_their_place(twin: ModuleType) -> None:
    first, same = [twin.ConsumerRecord("t", 0, 1, value=[{}]) for _ in range(2)]
    assert {first, same} == {first}
    assert hash(first) != hash(twin.ConsumerRecord("t", 0, 2, value=[{}]))
    assert first._asdict() == same._asdict()
    assert list(first._asdict()) == list(reference.ConsumerRecord.__match_args__)
