"""Makes librdkafka.json: run ``python -m tests.protocol.golden.record_librdkafka``.

Requests are those that librdkafka's clients send to a canned broker; responses are those of the
mock cluster inside librdkafka. kafka-python decodes the bytes, so that two foreign
implementations agree on each vector.
"""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, libversion
from confluent_kafka import ConsumerGroupTopicPartitions as GroupPartitions
from confluent_kafka import TopicPartition as Partition
from confluent_kafka import admin as foreign_admin

from kclient.protocol import headers
from kclient.protocol.message import Request
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.protocol.golden.canned_broker import TOPIC, CannedBroker, framed, read_frame
from tests.protocol.golden.make_kafka_python import RENAMED, foreign_messages
from tests.protocol.golden.vector_file import Vector, write_vectors

ADMIN: Any = foreign_admin  # its type hints are not for strict checkers
GROUP = "group"
SECONDS = 5


def noted(item: Any, schema: Any, version: int) -> Any:
    """Return what kafka-python read, as it goes into the vector file."""
    notes = {}
    for field in schema.fields.values():
        value = getattr(item, field.name) if field.for_version_q(version) else None
        if value is None and not field.nullable_for_version_q(version):
            continue  # kafka-python's None for a default of another type
        name = field.name
        if name == "authorized_operations":
            name = RENAMED.get(type(item).__name__, name)
        notes[name] = _note(value, field, version)
    return notes


def _note(value: Any, field: Any, version: int) -> Any:
    if field.is_struct_array():
        return value and [noted(item, field, version) for item in value]
    if field.is_struct():
        return noted(value, field, version)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, set):
        return sum(1 << bit for bit in value)
    return value.hex if hasattr(value, "int") and hasattr(value, "hex") else value


def read_by_kafka_python(name: str, version: int, data: bytes) -> Vector:
    """Return a vector whose values are what kafka-python reads from the bytes."""
    foreign = foreign_messages()[name]
    item = foreign.decode(data, version=version)
    return Vector(name, version, noted(item, foreign._struct, version), data)


def sent_requests() -> Iterator[Vector]:
    """Yield what librdkafka's clients say to a broker."""
    broker = CannedBroker()
    settings = {"bootstrap.servers": broker.bootstrap}
    producer = Producer({**settings, "enable.idempotence": True})
    producer.produce(TOPIC, b"value", b"key", headers={"header": b"x"}, timestamp=1_700_000_000_000)
    producer.flush(SECONDS)
    consume({**settings, "group.id": GROUP, "auto.offset.reset": "earliest"})
    administrate(ADMIN.AdminClient(settings))
    for (request_type, version), data in sorted(broker.requests.items(), key=str):
        yield read_by_kafka_python(request_type.__name__, version, data)


def consume(settings: dict[str, Any]) -> None:
    """Join a group, fetch, commit and leave."""
    consumer = Consumer({**settings, "heartbeat.interval.ms": 100, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    consumer.poll(2)
    with suppress(KafkaException):
        consumer.commit(offsets=[Partition(TOPIC, 0, 1, "note")], asynchronous=False)
    consumer.close()


def administrate(admin: Any) -> None:
    """Make every call of librdkafka's admin client whose API is spoken here."""
    topic = ADMIN.NewTopic("new", 3, 1, config={"cleanup.policy": "compact"})
    resource = ADMIN.ConfigResource(ADMIN.ConfigResource.Type.TOPIC, TOPIC)
    calls = [
        lambda: admin.create_topics([topic], operation_timeout=1),
        lambda: admin.delete_topics(["old"], operation_timeout=1),
        lambda: admin.create_partitions([ADMIN.NewPartitions(TOPIC, 5)], operation_timeout=1),
        lambda: admin.describe_configs([resource]),
        lambda: admin.delete_records([Partition(TOPIC, 0, 1)]),
        admin.list_consumer_groups,
        lambda: admin.describe_consumer_groups([GROUP], include_authorized_operations=True),
        lambda: admin.delete_consumer_groups([GROUP]),
        lambda: admin.list_consumer_group_offsets([GroupPartitions(GROUP, [Partition(TOPIC, 0)])]),
        lambda: admin.list_offsets({Partition(TOPIC, 0): ADMIN.OffsetSpec.latest()}),
        lambda: admin.describe_cluster(include_authorized_operations=True),
    ]
    for call in calls:
        made = call()
        for future in made.values() if isinstance(made, dict) else [made]:
            # The responses are mostly empty; only the requests are of interest.
            with suppress(KafkaException, ValueError, IndexError, TimeoutError):
                future.result(2)


QUESTIONS: list[Request] = [
    ApiVersionsRequest(client_software_name="kclient", client_software_version="1"),
    MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)]),
    FindCoordinatorRequest(key=GROUP),
    InitProducerIdRequest(transactional_id=None),
    ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name=TOPIC, partitions=[ListOffsetsPartition(timestamp=-1)])],
    ),
    FetchRequest(
        topics=[FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition_max_bytes=999)])]
    ),
    OffsetFetchRequest(
        group_id=GROUP, topics=[OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    ),
    OffsetCommitRequest(group_id=GROUP),
]


def mock_responses() -> Iterator[Vector]:
    """Yield the responses of librdkafka's mock cluster."""
    producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
    producer.produce(TOPIC, b"value", partition=0)
    producer.flush(SECONDS)
    (broker,) = producer.list_topics(timeout=SECONDS).brokers.values()
    with socket.create_connection((broker.host, broker.port), SECONDS) as connection:
        spoken = ApiVersionsResponse.decode(ask(connection, QUESTIONS[0], 2), 2).api_keys
        ranges = {row.api_key: range(row.min_version, row.max_version + 1) for row in spoken}
        for question in QUESTIONS:
            for version in ranges[question.api_key]:
                # Empty topic ids are invalid there, so versions that use them are skipped.
                if version in question.valid_versions and not (
                    isinstance(question, FetchRequest) and version > 12
                ):
                    name = question.response_type.__name__
                    data = ask(connection, question, version)
                    if isinstance(question, MetadataRequest) and question.is_flexible(version):
                        data = data[:-1]  # the mock cluster writes one empty tag section too many
                    yield read_by_kafka_python(name, version, data)


def ask(connection: socket.socket, question: Request, version: int) -> bytes:
    """Return the body of a response."""
    connection.sendall(framed(headers.encode_request(question, version, 1, "kclient")))
    frame = read_frame(connection)
    flexible = question.is_flexible(version) and not isinstance(question, ApiVersionsRequest)
    return frame[5 if flexible else 4 :]


if __name__ == "__main__":
    write_vectors(
        "librdkafka.json",
        f"librdkafka {libversion()[0]}, requests of its clients and responses of its mock cluster,"
        " read by kafka-python",
        [*sent_requests(), *mock_responses()],
    )
