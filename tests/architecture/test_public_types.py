"""Python's protocols on every public type: pickle, copy, repr, equality and hash."""

import asyncio
import copy
import dataclasses
import pickle
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import isabstract, isclass
from types import ModuleType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

import kclient.errors
from kclient import AdminClient, Consumer, ConsumerRecord, Producer, TopicPartition, aio
from kclient.admin import DelegationToken, Results, UserScramCredentialUpsertion
from kclient.common.errors import KafkaError
from kclient.consumer import ConsumerRecords
from kclient.journey import Journey
from kclient.record import TimestampType, reference
from kclient.spark import Lag
from kclient.testing import BrokerFault, BrokerFaults, EmbeddedCluster, FaultProxy, FaultRule

MODULES = [
    import_module(f"kclient{name}")
    for name in (
        "", ".admin", ".admin.admin_types", ".aio", ".common.types", ".consumer", ".journey",
        ".producer", ".serialization", ".spark", ".testing",
    )
]  # fmt: skip
NOWHERE = "127.0.0.1:1"
COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301 (its own)
}
CONTROLS = (BrokerFault, FaultRule)
"""Of a running test: they hold functions, and count what they did."""
SECRET = (DelegationToken, UserScramCredentialUpsertion)
"""With a secret, which no copy may have; see test_token_calls.py and test_scram_calls.py."""


def public_classes() -> Iterator[type[Any]]:
    found: dict[type[Any], None] = {}
    for module in MODULES:
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            if isclass(value) and value.__module__.startswith("kclient.") and name[0] != "_":
                found[value] = None
    yield from found


def public_errors() -> list[type[KafkaError]]:
    modules: list[ModuleType] = [kclient.errors, import_module("kclient.spark")]
    names = [(module, name) for module in modules for name in dir(module)]
    found = {getattr(module, name): None for module, name in names if name.endswith("Error")}
    return [each for each in found if issubclass(each, KafkaError)]


def sample(hint: Any) -> Any:  # noqa: PLR0911 (one for each kind of type)
    """Return a value of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return sample(arguments[0])
    if origin is tuple:
        return tuple(sample(each) for each in arguments if each is not ...)
    if isclass(origin):
        if issubclass(origin, Mapping):
            return {sample(arguments[0]): sample(arguments[1])}
        return frozenset() if issubclass(origin, frozenset) else []
    simple = {int: 7, str: "text", bool: True, float: 1.5, bytes: b"b", NoneType: None, Any: b"any"}
    if hint in simple:
        return simple[hint]
    if isclass(hint) and issubclass(hint, Enum):
        return next(iter(hint))
    if isclass(hint) and (hasattr(hint, "_fields") or dataclasses.is_dataclass(hint)):
        return value_of(hint)
    return None  # an error, which is equal to itself only, or a message


def value_of(kind: type[Any]) -> Any:
    hints = get_type_hints(kind)
    names = getattr(kind, "_fields", None)
    if names is None:
        names = [each.name for each in dataclasses.fields(kind) if each.init]
    return kind(**{name: sample(hints[name]) for name in names})


def values() -> Iterator[Any]:
    record: Any = ConsumerRecord("t", 1, 2, 3, TimestampType.CREATE_TIME, b"k", b"v", [("h", None)])
    yield record
    yield reference.ConsumerRecord("t", 1, 2, 3, key={}, value=[], headers=[("h", b"1")])
    yield ConsumerRecords({TopicPartition("t", 1): [record]})
    yield Lag({TopicPartition("t", 1): 3})
    yield Results("create_topics", {"t": 3, "u": 4})
    for kind in public_classes():
        if issubclass(kind, Enum):
            yield next(iter(kind))
        elif kind not in CONTROLS and not issubclass(kind, BaseException):
            is_dataclass = dataclasses.is_dataclass(kind) and kind is not reference.ConsumerRecord
            if hasattr(kind, "_fields") or is_dataclass:
                yield value_of(kind)


@pytest.mark.parametrize("value", list(values()), ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_values_survive_copies(value: Any, again: Callable[[Any], Any]) -> None:
    other = again(value)
    assert type(other) is type(value)
    assert other == value
    assert repr(other) == repr(value)
    assert type(value).__name__ in repr(value) or isinstance(value, Enum | dict)
    if is_hashable(value):
        assert hash(other) == hash(value)
    else:
        assert isinstance(value, ConsumerRecords | Results | dict) or holds_collection(value)


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def holds_collection(value: Any) -> bool:
    fields = value if isinstance(value, tuple) else vars_of(value)
    return any(isinstance(each, dict | list) or not is_hashable(each) for each in fields)


def vars_of(value: Any) -> list[Any]:
    return [getattr(value, each.name) for each in dataclasses.fields(value)]


def errors() -> Iterator[KafkaError]:
    partition = TopicPartition("t", 1)
    special: dict[str, tuple[Any, ...]] = {
        "DataLossError": ("gone", {partition: 3}),
        "LogTruncationError": ({partition: 3}, {partition: None}),
        "OffsetsOutOfRangeError": ({partition: 3},),
        "RecordDeserializationError": ("key", partition, 3, 4, b"k", b"v", [], ValueError("bad")),
        "UnknownPartitionError": ("t", 9, 3),
    }
    for kind in public_errors():
        arguments = special.get(kind.__name__, ("some text",))
        if issubclass(kind, kclient.errors.UnreadableBatchError):
            arguments = (partition, 3, 5, "broken")
        yield kind(*arguments)


@pytest.mark.parametrize("error", list(errors()), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_errors_survive_copies(error: KafkaError, again: Callable[[Any], Any]) -> None:
    error.possibly_written = True
    error.add_note("a note")
    other = again(error)
    assert type(other) is type(error)
    assert (str(other), other.args) == (str(error), error.args)
    assert {name: repr(each) for name, each in vars(other).items()} == {
        name: repr(each) for name, each in vars(error).items()
    }


def test_clients_refuse_copies_and_show_what_they_are(
    recwarn: pytest.WarningsRecorder,
) -> None:
    producer: Any = Producer(bootstrap_servers=NOWHERE, client_id="p", max_block_ms=0)
    consumer: Any = Consumer(bootstrap_servers=NOWHERE, group_id="g")
    admin = AdminClient(bootstrap_servers=NOWHERE)
    cluster = EmbeddedCluster()
    consumer.subscribe(["b", "a"])
    shown = {
        producer: "<Producer 'p' of 127.0.0.1:1>",
        consumer: "<Consumer of group 'g', subscribe(topics): a, b>",
        admin: "<AdminClient of 127.0.0.1:1>",
        cluster: "<EmbeddedCluster, not running>",
        cluster.faults: "<BrokerFaults: 0 faults, 0 requests seen>",
        FaultProxy(NOWHERE): "<FaultProxy of 127.0.0.1:1, not running>",
        producer.send_many("t", []): "BatchDelivery(0 records, appended)",
        Journey(producer): None,
    }
    for client, text in shown.items():
        assert text in {repr(client), None}
        for again in COPIES.values():
            with pytest.raises(TypeError, match=f"cannot pickle or copy a {type(client).__name__}"):
                again(client)
    for each in (producer, consumer, admin):
        each.close()
        assert repr(each).endswith(", closed>")
    with cluster:
        assert repr(cluster) == f"<EmbeddedCluster at {cluster.bootstrap_servers}>"
        with Producer(bootstrap_servers=cluster.bootstrap_servers) as working:
            future = working.send("t", b"x")
            for again in COPIES.values():
                with pytest.raises(TypeError, match=r"DeliveryFuture: .* send its result\(\)"):
                    again(future)


def test_asyncio_clients_cannot_be_copied() -> None:
    async def test() -> None:
        async with (
            aio.AdminClient(bootstrap_servers=NOWHERE) as admin,
            aio.Producer(bootstrap_servers=NOWHERE, client_id="p") as producer,
            aio.Consumer(
                bootstrap_servers=NOWHERE, group_id="g", enable_auto_commit=False
            ) as consumer,
        ):
            assert repr(admin) == "<aio.AdminClient of 127.0.0.1:1>"
            assert repr(producer) == "<aio.Producer 'p' of 127.0.0.1:1>"
            assert repr(consumer) == "<aio.Consumer of group 'g', nothing subscribed>"
            loop = aio.TransactionalLoop(consumer, lambda: producer, print)
            for client in (admin, producer, consumer, loop):
                for again in COPIES.values():
                    with pytest.raises(TypeError, match="cannot pickle or copy a "):
                        again(client)

    asyncio.run(test())


def test_every_public_class_is_tried() -> None:
    tried = {type(value) for value in values()}
    clients = {Producer, Consumer, AdminClient, EmbeddedCluster, BrokerFaults, FaultProxy, Journey}
    clients |= {aio.Producer, aio.Consumer, aio.AdminClient, aio.TransactionalLoop}
    futures = {"BatchDelivery", "DeliveryFuture"}
    for kind in public_classes():
        is_protocol = getattr(kind, "_is_protocol", False) or isabstract(kind)
        assert (
            kind in tried | clients
            or kind.__name__ in futures
            or issubclass(kind, BaseException)
            or kind in CONTROLS
            or kind in SECRET
            or is_protocol
            or kind.__name__.endswith("Interceptor")
            or kind.__module__ == "kclient.common.types"
        ), kind
