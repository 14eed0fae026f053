"""Types of keys and values for type checkers; ``make lint`` checks them, too."""

from typing import assert_type

from kclient.consumer import Consumer, ConsumerRecords
from kclient.record import ConsumerRecord
from tests.consumer.conftest import ORDERS_0, ConsumerWorld

SERVERS = "10.0.0.1:9092"


def to_int(_topic: str, _headers: object, data: bytes) -> int:
    return int(data)


def to_text_of_three(_topic: str, _headers: object, data: bytes) -> str:
    return data.decode()


def test_types_are_bytes_without_deserializers(world: ConsumerWorld) -> None:
    world.fill(2)
    with Consumer(
        {"auto.offset.reset": "earliest"}, runtime=world.runtime, bootstrap_servers=SERVERS
    ) as consumer:
        assert_type(consumer, Consumer[bytes | None, bytes | None])
        consumer.assign([ORDERS_0])
        record = next(consumer)
        assert_type(record, ConsumerRecord[bytes | None, bytes | None])
        assert (record.key, record.value) == (b"k0", b"0")
        records = consumer.poll(1.0)
        assert_type(records, ConsumerRecords[bytes | None, bytes | None])
        assert_type([each.value for each in records], list[bytes | None])


def test_deserializers_set_the_types(world: ConsumerWorld) -> None:
    world.fill(2)
    with Consumer(
        runtime=world.runtime,
        bootstrap_servers=SERVERS,
        auto_offset_reset="earliest",
        key_deserializer=to_text_of_three,
        value_deserializer=to_int,
    ) as consumer:
        assert_type(consumer, Consumer[str | None, int | None])
        consumer.assign([ORDERS_0])
        for record in consumer:
            assert_type(record, ConsumerRecord[str | None, int | None])
            assert_type(record.value, int | None)
            assert (record.key, record.value) == ("k0", 0)
            break
        records = consumer.poll(1.0)
        assert_type(records.records(ORDERS_0), list[ConsumerRecord[str | None, int | None]])
        assert [each.value for each in records] == [1]


def test_one_deserializer_sets_one_type(world: ConsumerWorld) -> None:
    keys = Consumer(
        runtime=world.runtime, bootstrap_servers=SERVERS, key_deserializer=to_text_of_three
    )
    values = Consumer(runtime=world.runtime, bootstrap_servers=SERVERS, value_deserializer=to_int)
    assert_type(keys, Consumer[str | None, bytes | None])
    assert_type(values, Consumer[bytes | None, int | None])
    for consumer in (keys, values):
        consumer.close()


def test_type_annotations_exist_at_run_time() -> None:
    def handle(record: ConsumerRecord[str, dict[str, int]]) -> int:
        return record.value["n"]

    made = ConsumerRecord[str, dict[str, int]]("t", 0, 0, key="k", value={"n": 5})
    assert type(made) is ConsumerRecord
    assert handle(made) == 5
    assert Consumer[str, int] is not None
    assert ConsumerRecords[str, int]({}).partitions() == []
