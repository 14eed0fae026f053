"""Wrong use of any client: an immediate error in one form, before any I/O.

The clients that `make` makes have no network: whatever asks for it fails the test.
"""

import copy
import math
import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kclient import (
    AdminClient,
    Consumer,
    ConsumerInterceptor,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import (
    ClosedError,
    ConfigError,
    IllegalStateError,
    InvalidArgumentError,
    InvalidTypeError,
)
from kclient.consumer import ConsumerRecords
from tests.bad_input.conftest import Make

KINDS: list[Any] = [Producer, Consumer, AdminClient]

SERVERS = [
    (None, "bootstrap_servers: got None (NoneType), expected 'host:port[,host:port]' or a list"),
    ("", "bootstrap_servers: got '' (str), expected at least one 'host:port'"),
    ([], "bootstrap_servers: got [] (list), expected at least one 'host:port'"),
    (
        b"a:1",
        "bootstrap_servers: got b'a:1' (bytes), expected 'host:port[,host:port]' or a list; de",
    ),
    ("localhost", "bootstrap_servers[0]: got 'localhost', expected 'host:port'; add ':9092'?"),
    (["a:1", "b"], "bootstrap_servers[1]: got 'b', expected 'host:port'; add ':9092'?"),
    (
        "a:0",
        "bootstrap_servers[0]: got 'a:0', expected 'host:port'; the port is a number from 1 to",
    ),
    ("a:99999", "the port is a number from 1 to 65535"),
    ("a:x", "the port is a number from 1 to 65535"),
    ("http://a:1", "bootstrap_servers[0]: got 'http://a:1', expected 'host:port'; remove the part"),
    ("a:1,,b:1", "bootstrap_servers[1]: got '', expected 'host:port'; remove the extra comma"),
    (7, "bootstrap_servers: got 7 (int), expected 'host:port[,host:port]' or a list"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("given", "text"), SERVERS)
def test_servers(make: Make, kind: Any, given: object, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        make(kind, bootstrap_servers=given)


OPTIONS = [
    ({"bootstrap_server": "a:1"}, "did you mean 'bootstrap_servers'?"),
    ({"request_timeout": 5}, "did you mean 'request_timeout_ms'?"),
    ({"metadata_broker_list": "a:1"}, "here it is bootstrap_servers"),
    ({"socket.timeout.ms": 5}, "here it is request.timeout.ms"),
    ({"api_version": (2, 0)}, "leave it out; versions are negotiated with each broker"),
    ({"statistics_interval_ms": 5}, "leave it out; .metrics() of a producer or a consumer returns"),
    ({"error_cb": print}, "leave it out; errors are raised by the call they concern"),
    ({"ssl_cafile": "ca.pem"}, "here it is ssl_truststore_location"),
    ({"request_timeout_ms": -1}, "request_timeout_ms: got -1 (int), expected a whole number >= 0"),
    ({"request_timeout_ms": math.nan}, "request_timeout_ms: got nan (float), expected a whole"),
    ({"request_timeout_ms": "5s"}, "request_timeout_ms: got '5s' (str), expected a whole number"),
    ({"request_timeout_ms": 2**63}, "expected a whole number >= 0; it is more than 92233720368547"),
    ({"request_timeout_ms": 0.5}, "expected a whole number >= 0; it is in milliseconds: 0.5 s are"),
    ({"request_timeout_ms": None}, "request_timeout_ms: got None (NoneType), expected a whole"),
    ({"client_id": 5}, "client_id: got 5 (int), expected a non-empty str"),
    (
        {"security_protocol": "SSLX"},
        "security_protocol: got 'SSLX' (str), expected one of 'PLAINTEXT', 'SSL'",
    ),
    (
        {"security_protocol": "SASL_SSL"},
        "sasl_mechanism: got nothing with SASL_SSL, expected one of",
    ),
    (
        {"sasl_mechanism": "PLAIN"},
        "security_protocol: got 'PLAINTEXT' with sasl_mechanism, expected",
    ),
    (
        {"sasl_jaas_config": "pw hunter2"},
        "sasl_jaas_config: got a secret value, expected one entry",
    ),
    ({"ssl_key_password": "hunter2"}, "security_protocol: got 'PLAINTEXT' with ssl_key_password"),
    ({"sasl_password": b"hunter2"}, "sasl_password: got a secret value, expected a non-empty str"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("given", "text"), OPTIONS)
def test_options_of_all(make: Make, kind: Any, given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)) as caught:
        make(kind, **given)
    assert "hunter2" not in f"{caught.value!r} {caught.value}"


OWN_OPTIONS: list[tuple[Any, dict[str, object], str]] = [
    (Producer, {"acks": 2}, "acks: got 2 (int), expected one of 'all', "),
    (Producer, {"acks": "ALL "}, "acks: got 'ALL ' (str), expected one of 'all', "),
    (Producer, {"compression_type": "xz"}, "expected one of 'none', 'gzip', 'snappy', 'lz4', 'zs"),
    (Producer, {"enable_idempotence": True, "acks": 1}, "acks: got 1, expected 'all' with enable_"),
    (
        Producer,
        {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
        "max_in_flight_requests_per_connection: got 6, expected at most 5 with enable_idempotence",
    ),
    (
        Producer,
        {"delivery_timeout_ms": 1000, "request_timeout_ms": 2000, "linger_ms": 7},
        "delivery_timeout_ms: got 1000, expected at least linger_ms + request_timeout_ms = 7 + 20",
    ),
    (
        Producer,
        {"transactional_id": "t", "acks": 1},
        "acks: got 1, expected 'all' with a transactional_id; change one of the two",
    ),
    (Producer, {"value_serializer": "json"}, "value_serializer: got 'json' (str), expected a call"),
    (
        Producer,
        {"key_serializer": lambda obj, ctx: obj},
        "(data) or (topic, headers, data), or an object with serialize(topic, headers, data); its",
    ),
    (Consumer, {"value_deserializer": lambda obj, ctx: obj}, "; its parameters are (obj, ctx)"),
    (Producer, {"dr_cb": print}, "pass on_delivery to send(), or keep the future that it returns"),
    (
        Producer,
        {"group_id": "g"},
        "unknown option 'group_id' for Producer; it is an option of Cons",
    ),
    (Producer, {"queue_buffering_max_ms": 5}, "here it is linger_ms"),
    (Consumer, {"acks": 1}, "unknown option 'acks' for Consumer; it is an option of Producer"),
    (Consumer, {"linger.ms": 1}, "it is an option of Producer"),
    (Consumer, {"group_id": ""}, "group_id: got '' (str), expected a non-empty str"),
    (Consumer, {"auto_offset_reset": "smallest"}, "here it is 'earliest'"),
    (Consumer, {"enable_auto_offset_store": False}, "set enable_auto_commit=False and call commit"),
    (Consumer, {"consumer_timeout_ms": 5}, "pass the time to poll(timeout=...), in seconds"),
    (Consumer, {"enable_auto_commit": True}, "enable_auto_commit: got True, expected group_id wit"),
    (Consumer, {"topics": ["t"]}, "call subscribe(topics)"),
    (
        AdminClient,
        {"acks": 1},
        "unknown option 'acks' for AdminClient; it is an option of Producer",
    ),
]


@pytest.mark.parametrize(("kind", "given", "text"), OWN_OPTIONS)
def test_options_of_one(make: Make, kind: Any, given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        make(kind, **given)


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_type_in_place_of_options(kind: Any) -> None:
    with pytest.raises(ConfigError, match="topics into the calls that use them"):
        kind("topic")


async def coroutine(*_: object) -> None: ...


PART = TopicPartition("t", 0)
WRONG: Any = 5
OTHER = TopicPartition("t", 5)
NAIVE = datetime(2026, 1, 1, tzinfo=UTC)

Call = Callable[[Any], object]
Row = tuple[Call, type[Exception], str]

PRODUCER: list[Row] = [
    (lambda p: p.send(None, b""), InvalidTypeError, "topic: got None (NoneType), expected a topic"),
    (lambda p: p.send("a/b", b""), InvalidArgumentError, "topic: got 'a/b', expected 1 to 249 of"),
    (lambda p: p.send("..", b""), InvalidArgumentError, "'.' and '..' are not allowed"),
    (lambda p: p.produce("t", b""), AttributeError, "use send(topic, value, key, on_delivery="),
    (lambda p: p.poll(0), AttributeError, "callbacks run in the producer's own thread"),
    (lambda p: p.list_topics(), AttributeError, "list_topics() of an AdminClient"),
    (lambda p: p.send_and_wait("t", b""), AttributeError, "use send(...).result(), or await"),
    (lambda p: p.partitionsFor("t"), AttributeError, "use partitions_for(topic)"),
    (lambda p: p.beginTransaction(), AttributeError, "use begin_transaction()"),
    (lambda p: p.begin_transaction(), IllegalStateError, "expected a transactional_id in its conf"),
    (pickle.dumps, TypeError, "cannot pickle or copy a Producer: it has threads"),
    (copy.copy, TypeError, "create one in each process"),
    (lambda p: p.send("t", {}), InvalidTypeError, "set value_serializer=json_serializer"),
    (lambda p: p.send("t", b"", "k"), InvalidTypeError, "set key_serializer=string_serializer"),
    (lambda p: p.send("t", b"", partition=-7), InvalidArgumentError, "partition: got -7 (int)"),
    (lambda p: p.send("t", b"", partition="0"), InvalidTypeError, "partition: got '0' (str)"),
    (lambda p: p.send("t", b"", partition=2**31), InvalidArgumentError, "expected 0 to 2147483647"),
    (lambda p: p.send("t", b"", timestamp_ms=NAIVE), InvalidTypeError, "int(moment.timestamp() * "),
    (lambda p: p.send("t", b"", timestamp_ms=-1), InvalidArgumentError, "timestamp_ms: got -1"),
    (lambda p: p.send("t", b"", headers={"a": b""}), InvalidTypeError, "list(headers.items())"),
    (
        lambda p: p.send("t", b"", headers=[("b", b""), ("a", 1)]),
        InvalidTypeError,
        "headers[1] ('a', 1): value must be bytes or None",
    ),
    (lambda p: p.send("t", b"", on_delivery=3), InvalidTypeError, "on_delivery: got 3 (int), exp"),
    (lambda p: p.send("t", b"", on_delivery=coroutine), InvalidTypeError, "would not be awaited"),
    (
        lambda p: p.send("t", bytes(1 << 20)),
        RecordTooLargeError,
        "expected at most max.request.size=1048576; raise it, and max.message.bytes of the topic",
    ),
    (lambda p: p.send_many("t", "abc"), InvalidTypeError, "values: got 'abc' (str)"),
    (lambda p: p.send_many("t", [b"", 5]), InvalidTypeError, "value: got int"),
    (lambda p: p.send_many("t", [b""], [b"", b""]), InvalidArgumentError, "keys: got 2 items, exp"),
    (lambda p: p.partitions_for(5), InvalidTypeError, "topic: got 5 (int), expected a topic name"),
    (lambda p: p.flush(-0.5), InvalidArgumentError, "timeout: got -0.5 (float), expected seconds "),
    (lambda p: p.flush(math.nan), InvalidArgumentError, "timeout: got nan (float), expected secon"),
    (lambda p: p.flush("1"), InvalidTypeError, "timeout: got '1' (str), expected seconds >= 0 or"),
    (lambda p: p.close(-1), InvalidArgumentError, "timeout: got -1 (int), expected seconds >= 0"),
]

CONSUMER: list[Row] = [
    (lambda c: c.poll(0), IllegalStateError, "poll: nothing to read; call subscribe() or assign("),
    (
        lambda c: c.subscribe([None]),
        InvalidTypeError,
        "topics: got None (NoneType) in it, expected",
    ),
    (lambda c: c.subscribe(5), InvalidTypeError, "topics: got 5 (int), expected a list of topic"),
    (lambda c: c.subscribe("a b"), InvalidArgumentError, "topic: got 'a b', expected 1 to 249 of"),
    (lambda c: c.subscribe(), InvalidArgumentError, "subscribe: expected either topics or pattern"),
    (
        lambda c: c.subscribe(pattern="("),
        InvalidArgumentError,
        "pattern: got '(' (str), expected a",
    ),
    (
        lambda c: c.subscribe("t", on_revoked=coroutine),
        InvalidTypeError,
        "on_revoked: got the coroutine function",
    ),
    (lambda c: c.subscribe("t", on_assigned=5), InvalidTypeError, "on_assigned: got 5 (int)"),
    (
        lambda c: (c.subscribe("t"), c.assign([PART])),
        IllegalStateError,
        "the two exclude each other: call unsubscribe() first",
    ),
    (lambda c: c.assign("t"), InvalidTypeError, "partitions: got 't' (str), expected a list of To"),
    (lambda c: c.assign([("t", "0")]), InvalidTypeError, "expected its number as an int"),
    (lambda c: c.assign([("t", -1)]), InvalidArgumentError, "expected a number >= 0"),
    (lambda c: c.assign([(5, 0)]), InvalidTypeError, "topic: got 5 (int), expected a topic name"),
    (lambda c: c.seek(OTHER, 0), IllegalStateError, "t-5 is not assigned to this consumer"),
    (lambda c: c.seek(PART, -1), InvalidArgumentError, "offset of t-0: got -1, expected 0 to 9223"),
    (lambda c: c.seek(PART, "1"), InvalidTypeError, "offset of t-0: got '1' (str), expected an in"),
    (lambda c: c.pause(OTHER), IllegalStateError, "t-5 is not assigned to this consumer"),
    (lambda c: c.commit({PART: -1}), InvalidArgumentError, "offset of t-0: got -1, expected 0 to"),
    (
        lambda c: c.commit([PART]),
        InvalidTypeError,
        "expected a dict of TopicPartition to OffsetAnd",
    ),
    (
        lambda c: c.commit({PART: OffsetAndMetadata(1, WRONG)}),
        InvalidTypeError,
        "metadata of t-0: got 5 (int), expected a str",
    ),
    (lambda c: c.commit({PART: 1}, timeout=-1), InvalidArgumentError, "timeout: got -1 (int), exp"),
    (
        lambda c: c.commit_async({PART: 1}, callback=3),
        InvalidTypeError,
        "callback: got 3 (int), ex",
    ),
    (
        lambda c: c.commit_async({PART: 1}, callback=coroutine),
        InvalidTypeError,
        "callback: got the coroutine function",
    ),
    (lambda c: c.poll(-1), InvalidArgumentError, "timeout: got -1 (int), expected seconds >= 0"),
    (lambda c: c.poll(max_records=0), InvalidArgumentError, "max_records: got 0, expected >= 1"),
    (
        lambda c: c.poll(max_records="5"),
        InvalidTypeError,
        "max_records: got '5' (str), expected an",
    ),
    (
        lambda c: c.offsets_for_times({PART: NAIVE.replace(tzinfo=None)}),
        InvalidArgumentError,
        "expected a datetime with a time zone, such as datetime.now(UTC)",
    ),
    (
        lambda c: c.offsets_for_times({PART: "2020"}),
        InvalidTypeError,
        "expected milliseconds since the epoch as int, or a datetime",
    ),
    (
        lambda c: c.seek(PART, None),
        InvalidTypeError,
        "if offsets_for_times() finds no record, use seek_to_end()",
    ),
    (
        lambda c: c.seek(OTHER, 0),
        IllegalStateError,
        "t-5 is not assigned to this consumer; assign() it, or subscribe() and wait for on_ass",
    ),
    (
        lambda c: (c.subscribe("t"), c.seek(PART, 0)),
        IllegalStateError,
        "the group assigns partitions within poll(): pass on_assigned= to subscribe()",
    ),
    (
        lambda c: c.pause([PART]),
        InvalidTypeError,
        "pass them as separate arguments: pause(*partitions)",
    ),
    (lambda c: c.resume({PART}), InvalidTypeError, "arguments: resume(*partitions)"),
    (lambda c: c.seek_to_end([PART]), InvalidTypeError, "arguments: seek_to_end(*partitions)"),
    (lambda c: c.seek_to_beginning((PART,)), InvalidTypeError, "seek_to_beginning(*partitions)"),
    (
        lambda c: c.subscribe(["^m.*"]),
        InvalidArgumentError,
        "a regular expression is given as subscribe(pattern='^m.*')",
    ),
    (lambda c: c.offsets_for_times({PART: -1}), InvalidArgumentError, "timestamp of t-0: got -1"),
    (lambda c: c.committed("t"), InvalidTypeError, "partitions: got 't' (str), expected a list of"),
    (lambda c: c.close(timeout=-1), InvalidArgumentError, "timeout: got -1 (int), expected second"),
]

KEYWORDS: list[Row] = [
    (
        lambda c: c.poll(timeout_ms=1000),
        InvalidTypeError,
        "Consumer.poll() got an unexpected keyword argument 'timeout_ms'; use timeout=, in seconds",
    ),
    (lambda c: c.poll_columns(timeout_ms=1), InvalidTypeError, "'timeout_ms'; use timeout=, in"),
    (lambda c: c.subscribe("t", on_assign=print), InvalidTypeError, "use on_assigned="),
    (lambda c: c.subscribe("t", listener=print), InvalidTypeError, "use on_assigned=, on_revoked="),
    (lambda c: c.commit(asynchronous=True), InvalidTypeError, "use commit_async() for True"),
    (lambda c: c.committed([PART], timeout_ms=1), InvalidTypeError, "use timeout=, in seconds"),
    (lambda c: c.position(PART, timeout_ms=1), InvalidTypeError, "use timeout=, in seconds"),
    (lambda c: c.close(autocommit=False), InvalidTypeError, "use enable_auto_commit, an option"),
    (lambda c: c.close(wrong=1), InvalidTypeError, "Consumer.close() got an unexpected keyword"),
    (lambda c: c.assign(wrong=1), TypeError, "Consumer.assign() got an unexpected keyword"),
    (lambda c: c.seek(PART), TypeError, "Consumer.seek() missing 1 required positional"),
    (
        lambda c: c.topics(),
        AttributeError,
        "no attribute 'topics'; use list_topics() of an AdminClient",
    ),
    (lambda c: c.partitions_for_topic("t"), AttributeError, "use describe_topics([topic]) of an"),
    (lambda c: c.list_topics(), AttributeError, "use list_topics() of an AdminClient"),
    (lambda c: c.getmany(), AttributeError, "use poll(timeout, max_records)"),
    (lambda c: c.commitSync(), AttributeError, "no attribute 'commitSync'; use commit()"),
    (lambda c: c.seekToEnd(), AttributeError, "no attribute 'seekToEnd'; use seek_to_end("),
    (lambda c: c.partitionsFor("t"), AttributeError, "use describe_topics([topic]) of an"),
    (lambda c: c.wrong, AttributeError, "'Consumer' object has no attribute 'wrong'"),
]

LONG: list[Any] = [
    lambda c: c.poll(1000),
    lambda c: c.poll_columns(1000),
    lambda c: c.position(PART, 1000),
    lambda c: c.commit({PART: 1}, 1000),
    lambda c: c.committed([PART], 1000),
    lambda c: c.beginning_offsets([PART], 1000),
    lambda c: c.end_offsets([PART], 1000),
    lambda c: c.offsets_for_times({PART: 1}, 1000),
    lambda c: c.close(1000),
]

WITHOUT_GROUP: list[Row] = [
    (
        lambda c: c.subscribe("t"),
        IllegalStateError,
        "subscribe: got no group, expected a consumer wi",
    ),
    (lambda c: c.commit(), IllegalStateError, "commit: got no group, expected a consumer with gro"),
    (lambda c: c.commit_async(), IllegalStateError, "commit_async: got no group, expected a cons"),
    (lambda c: c.committed([PART]), IllegalStateError, "committed: got no group, expected a cons"),
]

ADMIN: list[Row] = [
    (
        lambda a: a.create_topics([]),
        InvalidArgumentError,
        "topics: got [] (list), expected at least",
    ),
    (
        lambda a: a.create_topics(["t"]),
        InvalidTypeError,
        "topics: got 't' (str), expected a NewTopi",
    ),
    (
        lambda a: a.create_topics([NewTopic("../x")]),
        InvalidArgumentError,
        "topic: got '../x', expec",
    ),
    (
        lambda a: a.create_topics([NewTopic("t", 0)]),
        InvalidArgumentError,
        "num_partitions of topic 't': got 0 (int), expected 1 to 2147483647, or -1 for the default",
    ),
    (
        lambda a: a.create_topics([NewTopic("t", 1, 0)]),
        InvalidArgumentError,
        "replication_factor of topic 't': got 0 (int), expected 1 to 2147483647, or -1 for the de",
    ),
    (
        lambda a: a.create_topics([NewTopic("t", configs={"retention.ms": WRONG})]),
        InvalidTypeError,
        "configs of topic 't': got 'retention.ms': 5 (int), expected a str for each name",
    ),
    (
        lambda a: a.delete_topics([]),
        InvalidArgumentError,
        "names: got [] (list), expected at least",
    ),
    (lambda a: a.delete_topics({"t": 1}), InvalidTypeError, "names: got {'t': 1} (dict), expected"),
    (lambda a: a.delete_topics(b"t"), InvalidTypeError, "names: got b't' (bytes), expected a list"),
    (lambda a: a.describe_topics(5), InvalidTypeError, "names: got 5 (int), expected a list"),
    (lambda a: a.create_topics("t"), InvalidTypeError, "topics: got 't' (str), expected a list"),
    (
        lambda a: a.create_topics(NewTopic("t", 0)),
        InvalidArgumentError,
        "num_partitions of topic 't': got 0 (int), expected 1 to 2147483647",
    ),
    (lambda a: a.delete_topics([5]), InvalidTypeError, "topic: got 5 (int), expected a topic name"),
    (
        lambda a: a.create_partitions({}),
        InvalidArgumentError,
        "total_counts: got {}, expected at l",
    ),
    (
        lambda a: a.create_partitions({"t": "2"}),
        InvalidTypeError,
        "total_counts['t']: got '2' (str)",
    ),
    (
        lambda a: a.describe_configs("0"),
        InvalidTypeError,
        "resources: got '0' (str), expect",
    ),
    (
        lambda a: a.describe_consumer_groups([""]),
        InvalidArgumentError,
        "group_id: got '', expected",
    ),
    (
        lambda a: a.delete_consumer_groups([5]),
        InvalidTypeError,
        "group_id: got 5 (int), expected a",
    ),
    (
        lambda a: a.list_groups(states="Stable"),
        InvalidTypeError,
        "states: got 'Stable' (str), expec",
    ),
    (lambda a: a.list_groups(states=[5]), InvalidTypeError, "states: got 5 (int) in the list, exp"),
    (
        lambda a: a.list_consumer_group_offsets("g", ["orders"]),
        InvalidTypeError,
        "partitions: got 'orders' (str), expected a TopicPartition",
    ),
    (
        lambda a: a.list_consumer_group_offsets("g", [("orders", "0")]),
        InvalidTypeError,
        "partition of 'orders': got '0' (str), expected an int",
    ),
    (
        lambda a: a.list_topics(timeout=-1),
        InvalidArgumentError,
        "timeout: got -1 (int), expected se",
    ),
    (
        lambda a: a.list_topics(timeout="1"),
        InvalidTypeError,
        "timeout: got '1' (str), expected seco",
    ),
]

USES = [
    *(pytest.param(Producer, {}, *row) for row in PRODUCER),
    *(pytest.param(Consumer, {"group_id": "g"}, *row) for row in CONSUMER),
    *(pytest.param(Consumer, {}, *row) for row in WITHOUT_GROUP),
    *(pytest.param(AdminClient, {}, *row) for row in ADMIN),
]


@pytest.mark.parametrize(("kind", "options", "call", "error", "text"), USES)
def test_calls(
    make: Make, kind: Any, options: dict[str, Any], call: Call, error: type, text: str
) -> None:
    client = make(kind, **options)
    with pytest.raises(error, match=re.escape(text)):
        call(client)


CLOSED: list[tuple[type, dict[str, Any], Call]] = [
    (Producer, {}, lambda p: p.send("t", b"")),
    (Producer, {}, lambda p: p.send_many("t", [b""])),
    (Producer, {}, lambda p: p.flush()),
    (Producer, {}, lambda p: p.partitions_for("t")),
    (Producer, {}, lambda p: p.__enter__()),
    (Consumer, {"group_id": "g"}, lambda c: c.poll()),
    (Consumer, {"group_id": "g"}, lambda c: c.subscribe("t")),
    (Consumer, {"group_id": "g"}, lambda c: c.commit()),
    (Consumer, {"group_id": "g"}, lambda c: c.__enter__()),
    (AdminClient, {}, lambda a: a.list_topics()),
    (AdminClient, {}, lambda a: a.__enter__()),
]


@pytest.mark.parametrize(("kind", "options", "call"), CLOSED)
def test_use_after_close(make: Make, kind: Any, options: dict[str, Any], call: Call) -> None:
    client = make(kind, **options)
    client.close()
    with pytest.raises(ClosedError, match="closed"):
        call(client)
    client.close()  # once more does nothing


@pytest.mark.parametrize(("call", "error", "text"), KEYWORDS)
def test_names_of_other_clients(
    make: Make, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    consumer = make(Consumer, group_id="g")
    with pytest.raises(error, match=re.escape(text)):
        call(consumer)


def test_names_of_other_clients_do_not_exist(make: Make) -> None:
    consumer = make(Consumer)
    assert not hasattr(consumer, "topics")
    assert getattr(consumer, "list_topics", None) is None
    assert "topics" not in dir(consumer)
    with pytest.raises(AttributeError, match="use partitions"):
        ConsumerRecords({}).items()  # type: ignore[attr-defined]  # the wrong use under test
    assert not hasattr(ConsumerRecords({}), "keys")


@pytest.mark.parametrize("call", LONG)
def test_milliseconds_for_seconds(make: Make, call: Callable[[Any], object]) -> None:
    consumer = make(Consumer, group_id="g")
    consumer.assign([PART])
    text = (
        "timeout: got 1000 (int), expected seconds, at most 600; if these are milliseconds, pass 1;"
        " math.inf waits without limit"
    )
    with pytest.raises(InvalidArgumentError, match=re.escape(text)):
        call(consumer)


def test_milliseconds_for_seconds_of_the_other_clients(make: Make) -> None:
    producer, admin = make(Producer), make(AdminClient)
    for call in (
        producer.flush,
        producer.close,
        lambda timeout: admin.list_topics(timeout=timeout),
    ):
        with pytest.raises(InvalidArgumentError, match="expected seconds, at most 600"):
            call(600.5)
    producer.flush(600)
    producer.flush(math.inf)


class _OneMethod:
    def on_consume(self, records: object) -> object:
        return records


class _Needing(ConsumerInterceptor):
    def __init__(self, name: str) -> None:
        self.name = name


class _Awaiting(ConsumerInterceptor):
    async def on_consume(self, records: Any) -> Any:  # type: ignore[override]  # as is under test
        return records


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ConsumerInterceptor(), "expected a list of ConsumerInterceptor classes or objects"),
        (["package.Name"], "classes are not loaded by name; pass the class itself or an object"),
        ([_OneMethod()], "has no on_commit()"),
        ([_OneMethod], "has no on_commit()"),
        ([_Needing], "_Needing() raised TypeError"),
        ([_Needing], "pass an object of it instead"),
        ([_Awaiting], "on_consume() of <class"),
        ([None], "None has no on_consume()"),
    ],
)
def test_interceptors(make: Make, given: object, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        make(Consumer, interceptor_classes=given)


def test_interceptors_as_classes_and_as_objects(make: Make) -> None:
    make(Consumer, interceptor_classes=[ConsumerInterceptor, _Needing("a")])
