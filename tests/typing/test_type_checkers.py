"""mypy and pyright accept valid programs, and find the errors in others."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

GOOD = """
import json
from datetime import timedelta
from typing import Any, assert_type

from kclient import AdminClient, Consumer, NewTopic, Producer, aio
from kclient.admin import CreatedTopic, Results, TopicListing
from kclient.serialization import json_deserializer, json_serializer, string_serializer


def partitioner(topic: str, key: bytes | None, partitions: int) -> int:
    return 0


Producer(bootstrap_servers="h:1", acks="all", linger_ms=5, compression_type="zstd")
Producer(bootstrap_servers=["h:1", "h:2"], acks=1, enable_idempotence=False, retries=3)
Producer(key_serializer=string_serializer, value_serializer=json_serializer, client_id=None)
Producer(value_serializer=str.encode, partitioner_class=partitioner)
Producer(value_serializer=lambda value: json.dumps(value).encode(), partitioner_class="murmur2")
Producer({"bootstrap.servers": "h:1", "linger.ms": "5"}, acks="all")
Consumer(bootstrap_servers="h:1", group_id="g", auto_offset_reset="earliest")
Consumer(auto_offset_reset=timedelta(days=1), isolation_level="read_committed")
Consumer(partition_assignment_strategy=["range", "roundrobin"], max_poll_records=10)
Consumer(value_deserializer=json_deserializer, key_deserializer=bytes.decode)
admin = AdminClient(bootstrap_servers="h:1", default_api_timeout_ms=5_000)
assert_type(admin.create_topics(NewTopic("t"), timeout=5), Results[str, CreatedTopic])
assert_type(admin.create_topics(topics=[], validate_only=True), Results[str, CreatedTopic])
assert_type(admin.list_topics(include_internal=True), list[TopicListing])
assert_type(admin.delete_topics("t", timeout=None), Results[str, None])


async def administer(awaited: aio.AdminClient) -> None:
    async with awaited as same:
        assert_type(same, aio.AdminClient)
    assert_type(await awaited.create_topics(NewTopic("t"), timeout=5), Results[str, CreatedTopic])
    assert_type(await awaited.list_topics(include_internal=True), list[TopicListing])





class Floats:
    def serialize(self, topic: str, headers: list[Any], data: float, /) -> bytes | None:
        return str(data).encode()


def to_bytes(number: int) -> bytes:
    return b"%d" % number


typed: Producer[str, int] = Producer(key_serializer=str.encode, value_serializer=to_bytes)
typed.send("t", 5, "key", headers=[("h", b"")], on_delivery=lambda metadata, error: None)
typed.send("t")
typed.send_many("t", [5, None], ["key", None])
Producer(value_serializer=Floats()).send("t", 1.5, b"key")
Producer(bootstrap_servers="h:1").send("t", b"value", b"key").result(5.0)
Producer(value_serializer=json_serializer).send("t", {"a": 1}, b"key")
untyped: Producer[Any, Any] = Producer({"value.serializer": json_serializer})
untyped.send("t", {"a": 1})
for record in Consumer(bootstrap_servers="h:1").poll():
    print((record.value or b"").decode())
plain: Consumer[bytes | None, bytes | None] = Consumer(bootstrap_servers="h:1")
strings: Consumer[bytes | None, str | None] = Consumer(value_deserializer=bytes.decode)

settings: dict[str, Any] = {"bootstrap_servers": "h:1"}
Producer(**settings)
Consumer(**settings)
"""

BAD = [
    'Producer(acks="banana")',
    "Producer(acks=2)",
    'typed.send("t", "no int")',
    'typed.send("t", 5, b"no str")',
    'typed.send_many("t", [b"no int"])',
    'Producer(bootstrap_servers="h:1").send("t", "str")',
    'Producer(bootstrap_servers="h:1").send("t", {"a": 1})',
    'Producer(value_serializer=json_serializer).send("t", {"a": 1}, "key")',
    "wrong: Consumer[bytes | None, bytes | None] = Consumer(value_deserializer=bytes.decode)",
    "value: Producer[str, int] = Producer(key_serializer=bytes.decode)",
    'Producer(linger_ms="5")',
    "Producer(linger_ms=0.5)",
    "Producer(enable_idempotence=1)",
    'Producer(compression_type="lzma")',
    'Producer(bootstrap_server="h:1")',
    "Producer(bootstrap_servers=9092)",
    'Producer(group_id="g")',
    'Producer(value_serializer="json")',
    'Producer(sasl_mechanism="SCRAM")',
    'Producer(security_protocol="TLS")',
    "Producer(sasl_password=5)",
    "Producer(ssl_context=True)",
    "Producer(batch_size=None)",
    'Consumer(auto_offset_reset="smallest")',
    'Consumer(isolation_level="serializable")',
    'Consumer(group_id=["g"])',
    'Consumer(partition_assignment_strategy="cooperative-sticky")',
    "Consumer(acks=1)",
    'Consumer(enable_auto_commit="no")',
    "Consumer(value_deserializer=5)",
    'AdminClient(group_id="g")',
    'AdminClient(default_api_timeout_ms="5")',
    "admin.list_topics(True)",
    "admin.create_topics()",
    'admin.create_topics("t")',
    'admin.create_topics(NewTopic("t"), validate=True)',
    'admin.delete_topics("t", timeout="5")',
    "names: list[str] = admin.list_topics()",
    "admin.describe_topic([])",
    'aio.AdminClient(group_id="g")',
    "aio.AdminClient().list_topics(True)",
    "listed: list[TopicListing] = aio.AdminClient().list_topics()",
]


def mypy(path: Path) -> list[str]:
    """Return the lines of mypy's report, strict, with the cache of ``make lint``."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", str(path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def pyright(path: Path) -> list[str]:
    """Return the lines of pyright's report, of errors alone, in the form of mypy's."""
    project = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (path.parent / "pyrightconfig.json").write_text(json.dumps(project))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error", str(path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=path.parent,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        f"{path}:{each['range']['start']['line'] + 1}: error: {each['message']}" for each in found
    ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("checker", [mypy, pyright])
def test_options_and_records_are_typed(
    checker: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    sample = tmp_path / "sample.py"
    first_bad = GOOD.count("\n") + 2
    sample.write_text(GOOD + "\n" + "\n".join(BAD) + "\n")
    errors = [line for line in checker(sample) if ": error: " in line]
    lines = {int(line.split(":")[1]) for line in errors}
    assert sorted(line for line in lines if line < first_bad) == [], errors
    missed = [call for number, call in enumerate(BAD, start=first_bad) if number not in lines]
    assert missed == []
