"""Fault R5: decompression bombs, received by a consumer and by a broker."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT_MIB = 64
SLACK_MIB = 32

PROGRAM = """
import resource, struct, sys, tempfile, zlib
from pathlib import Path
from kclient import Consumer, TopicPartition
from kclient.common.errors import CompressionError, KafkaError
from kclient.protocol.headers import decode_response, encode_request
from kclient.protocol.messages.produce import (
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
)
from kclient.record import CompressionType, RecordBatchBuilder
from kclient.record.varints import encode_varint
from kclient.testing.virtual import VirtualWorld
from tests.fuzz.batch_mutation import fixed_up
from tests.fuzz.hostile_broker import ADDRESS, TOPIC, HostileBroker
from tests.fuzz.stepped_broker import SteppedBroker
from tests.support.clients.wire import joined
from tests.support.virtual.controller_calls import assert_created

def bomb():
    builder = RecordBatchBuilder(bytearray(200))
    builder.append(1000, None, b"v")
    head = bytes(builder.seal(compression=CompressionType.GZIP))[:61]
    codec = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    size = 256 << 20
    fields = bytes(3) + b"\\x01" + encode_varint(size)  # a record with a value of this size
    stream = codec.compress(encode_varint(len(fields) + size + 1) + fields)
    stream += b"".join(codec.compress(zeros) for _ in range(256)) + codec.compress(bytes(1))
    stream += codec.flush()
    assert len(stream) < 260 * 1024
    length = struct.pack(">i", len(head) + len(stream) - 12)
    return fixed_up(head[:8] + length + head[12:] + stream)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def consumer(data):
    with VirtualWorld(1) as world:
        broker = HostileBroker(world, None, b"", 0)
        partition = TopicPartition(TOPIC, 0)
        log = broker.logs[partition]
        end = log.end_offset
        log.append_bytes(end, end + 1, end.to_bytes(8) + data[8:])
        log.append(b"behind")
        world.net.peers[ADDRESS] = lambda: broker
        process = world.machine("app").process("app")
        made = []
        def read():
            reader = Consumer(
                bootstrap_servers="%s:%d" % ADDRESS, runtime=process.runtime,
                auto_offset_reset="earliest", max_decompressed_record_bytes=64 << 20,
            )
            reader.assign([partition])
            taken = []
            while True:
                try:
                    taken += [record.offset for record in reader.poll(1.0)]
                except CompressionError as error:
                    made.append(str(error))
                    break
            assert taken == list(range(end)), taken
            assert reader.position(partition) == end
            reader.seek(partition, end + 1)
            records = []
            while not records:
                records = list(reader.poll(1.0))
            assert records[0].value == b"behind"
            reader.close()
        task = process.spawn("main", read)
        world.run(until=lambda: task.over)
        return made[0]

def broker(data):
    with tempfile.TemporaryDirectory() as directory:
        running = SteppedBroker(Path(directory))
        running.server.services.topic_creation.create([TOPIC], assert_created)
        part = PartitionProduceData(index=0, records=data)
        topic = TopicProduceData(name=TOPIC, partition_data=[part])
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic])
        (frame,) = running.connect().ask(joined(encode_request(request, 9, 1, "test")))
        response = decode_response(frame, ProduceResponse, 9)[1]
        running.stop()
        (partition,) = response.responses[0].partition_responses
        assert partition.error_code == 0, partition
        return "accepted"

role = {"consumer": consumer, "broker": broker}[sys.argv[1]]
data = bomb()
before = peak()
text = role(data)
print(len(data), peak() - before, text)
"""


@pytest.mark.fault("R5")
@pytest.mark.parametrize(
    ("role", "outcome", "most_mib"),
    [
        ("consumer", "expected at most 67108864; raise max.decompressed.record.bytes", LIMIT_MIB),
        ("broker", "accepted", 0),
    ],
)
def test_large_record_of_few_bytes_is_read_within_the_memory_limit(
    role: str, outcome: str, most_mib: int
) -> None:
    """A record of 255 KiB that decompresses to 256 MiB exceeds the limit of the consumer.

    The broker validates it without holding it.
    """
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, role], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    size, grown, text = ran.stdout.split(maxsplit=2)
    assert int(size) < 260 * 1024
    assert outcome in text
    assert int(grown) <= most_mib + SLACK_MIB
