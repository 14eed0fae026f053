"""Arrow tables through partitioners, serializers and interceptors, and to topics of a column."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from kclient import Producer
from kclient.common.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    KafkaError,
    SerializationError,
)
from kclient.producer import ProducerRecord, UnknownPartitionError
from kclient.serialization import int_serializer, json_serializer
from tests.support.clients.foreign import ForeignRecord

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Make = Callable[..., Producer]
Stored = Callable[[str], list[ForeignRecord]]


@pytest.mark.parametrize("serializer", [None, lambda topic, headers, data: data])
def test_topics_from_a_column(make: Make, stored: Stored, topic: str, serializer: Any) -> None:
    others = [f"{topic}-{each}" for each in "ab"]
    table = pa.table(
        {
            "topic": pa.array([others[0], others[1], others[0]]).dictionary_encode(),
            "value": [b"1", b"2", b"3"],
            "partition": [1, 1, 1],
        }
    )
    with make(value_serializer=serializer) as producer:
        assert producer.send_arrow(None, table).result(10) == 3
        assert producer.send_arrow(None, table.slice(2)).result(10) == 1
    assert [one.value for one in stored(others[0])] == [b"1", b"3", b"3"]
    assert [one.value for one in stored(others[1])] == [b"2"]


def test_partitioners(make: Make, stored: Stored, topic: str) -> None:
    def last(topic: str, key: bytes | None, partition_count: int) -> int:
        return partition_count - 1 if key == b"last" else partition_count if key else -1

    keyed = pa.table({"value": [b"a", b"b", b"c"], "key": [b"last", b"last", None],
                      "partition": pa.array([None, 0, 1], pa.int8())})  # fmt: skip
    with make(partitioner_class=last) as producer:
        assert producer.send_arrow(topic, keyed).result(10) == 3
        wrong = pa.table({"value": [b"x", b"y"], "key": [b"last", b"other"]})
        with pytest.raises(UnknownPartitionError, match="got 3, expected 0 to 2") as caught:
            producer.send_arrow(topic, wrong)
        assert caught.value.__notes__ == ["send_arrow: 0 of 2 records were queued before"]
        assert producer.send_arrow(topic, pa.table({"value": [b"-1"]})).result(10) == 1
    places = {one.value: one.partition for one in stored(topic)}
    assert (places[b"a"], places[b"b"], places[b"c"]) == (2, 0, 1)
    assert set(places) == {b"a", b"b", b"c", b"-1"}
    with make(partitioner_ignore_keys=True, batch_size=300) as producer:
        table = pa.table({"value": [bytes(100)] * 60, "key": [b"same"] * 60})
        producer.send_arrow(topic, table).result(10)
    assert len({one.partition for one in stored(topic) if one.key == b"same"}) > 1


def test_serializers_accept_columns_of_any_type(make: Make, stored: Stored, topic: str) -> None:
    table = pa.table(
        {
            "value": [{"a": 1}, None, {"a": 3}],
            "key": pa.array([1, 2, 3], pa.int32()),
            "partition": [0, 0, 0],
            "timestamp": pa.array([5, None, 7], pa.timestamp("ms")),
            "headers": pa.array([[{"key": "h", "value": b"1"}], None, []], PAIRS),
        }
    )
    with make(value_serializer=json_serializer, key_serializer=int_serializer) as producer:
        assert producer.send_arrow(topic, table).result(10) == 3
    found = stored(topic)
    assert [one.value for one in found] == [b'{"a":1}', None, b'{"a":3}']
    assert [one.headers for one in found] == [(("h", b"1"),), (), ()]
    assert [found[0].timestamp_ms, found[2].timestamp_ms] == [5, 7]
    with make(value_serializer=json_serializer) as producer:
        with pytest.raises(InvalidTypeError, match="key: got Arrow type int32"):
            producer.send_arrow(topic, table)
        late = pa.table({"value": [1, 2], "headers": pa.array([None, [(b"\xff", b"")]],
                         pa.map_(pa.binary(), pa.binary()))})  # fmt: skip
        with pytest.raises(InvalidArgumentError, match="headers: row 1 has a header") as caught:
            producer.send_arrow(topic, late)
        assert caught.value.__notes__ == ["send_arrow: 1 of 2 records were queued before"]

    def fail(topic: str, headers: object, data: object) -> bytes:
        raise LookupError

    with make(value_serializer=fail) as producer, pytest.raises(SerializationError) as failed:
        producer.send_arrow(topic, pa.table({"value": [1]}))
    assert failed.value.__notes__ == ["send_arrow: 0 of 1 records were queued before"]


def test_interceptors_receive_each_record(make: Make, stored: Stored, topic: str) -> None:
    seen: list[object] = []

    class Stamp:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            seen.append(record.value)
            return record._replace(key=b"stamp")

        def on_acknowledgement(self, metadata: object, error: KafkaError | None) -> None: ...

        def close(self) -> None: ...

    with make(interceptor_classes=[Stamp()]) as producer:
        table = pa.table({"value": ["text", None], "partition": [0, 0]})
        assert producer.send_arrow(topic, table).result(10) == 2
    assert seen == [b"text", None]
    assert [one.content for one in stored(topic)] == [(b"stamp", b"text", ()), (b"stamp", None, ())]
