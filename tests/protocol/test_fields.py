"""Fields of messages: types, defaults, equality, text."""

import copy
from typing import Any, cast, get_args, get_origin

import pytest

from kclient.common.errors import InvalidArgumentError
from kclient.protocol.fields import ArrayOf, Field, Struct, Wire, string
from kclient.protocol.message import Message
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
)
from kclient.protocol.messages.fetch import (
    FetchRequest,
    FetchTopic,
)
from kclient.protocol.messages.group_membership import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord
from kclient.protocol.messages.produce import (
    PartitionProduceData,
)
from kclient.protocol.messages.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from kclient.protocol.messages.user_scram_credentials import ScramCredentialUpsertion
from tests.protocol.catalogue import MESSAGES


def structs_of(kind: type[Struct]) -> dict[str, type[Struct]]:
    found = {f"{kind.__module__}.{kind.__name__}": kind}
    for field in kind.fields.values():
        inner = field.kind.element if isinstance(field.kind, ArrayOf) else field.kind
        if not isinstance(inner, Wire):
            found |= structs_of(inner)
    return found


STRUCTS = {name: kind for message in MESSAGES for name, kind in structs_of(message).items()}


PYTHON_TYPES = {
    Wire.BOOL: bool,
    Wire.FLOAT64: float,
    Wire.STRING: str,
    Wire.UUID: bytes,
    Wire.BYTES: bytes,
}


@pytest.mark.parametrize("kind", STRUCTS.values(), ids=STRUCTS)
def test_annotations_match_wire_types(kind: type[Struct]) -> None:
    for owner in reversed(kind.__mro__):
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            field = kind.fields.get(name)
            if field is None or field.kind is Wire.RECORDS:
                continue
            alternatives = (
                set(get_args(annotation)) if get_origin(annotation) is not list else set()
            )
            assert (type(None) in alternatives) == (str(field.nullable) != "none"), name
            plain = (alternatives - {type(None)}) or {annotation}
            assert plain == {python_type(field)}, name


def python_type(field: Field) -> object:
    if isinstance(field.kind, ArrayOf):
        element = field.kind.element
        inner = PYTHON_TYPES.get(element, int) if isinstance(element, Wire) else element
        return list[inner]  # type: ignore[valid-type]  # a type made at run time
    return PYTHON_TYPES.get(field.kind, int) if isinstance(field.kind, Wire) else field.kind


def test_defaults_are_kafkas_and_not_shared() -> None:
    request = FetchRequest()
    assert (request.replica_id, request.max_bytes, request.session_epoch) == (-1, 0x7FFFFFFF, -1)
    assert request.cluster_id is None
    assert request.topics == []
    request.topics.append(FetchTopic())
    request.replica_state.replica_id = 3
    assert FetchRequest().topics == []
    assert FetchRequest().replica_state.replica_id == -1


def test_null_differs_from_default() -> None:
    assert MetadataRequest(topics=None).topics is None
    assert MetadataRequest().topics == []


def test_fields_are_given_by_name_only() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest("group")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        HeartbeatRequest(group="group")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        HeartbeatRequest().group = "group"  # type: ignore[attr-defined]


def test_equality_is_by_value_and_type() -> None:
    assert HeartbeatRequest(group_id="a") == HeartbeatRequest(group_id="a")
    assert HeartbeatRequest(group_id="a") != HeartbeatRequest(group_id="b")
    assert HeartbeatRequest() != InitProducerIdRequest()
    with pytest.raises(TypeError):
        hash(HeartbeatRequest())


def test_copies_are_deep() -> None:
    request = FetchRequest(topics=[FetchTopic(topic="a")])
    twin = copy.deepcopy(request)
    twin.topics[0].topic = "b"
    assert request.topics[0].topic == "a"


def test_repr_shows_no_payload() -> None:
    data = PartitionProduceData(index=1, records=b"secret")
    assert repr(data) == "PartitionProduceData(index=1, records=<6 bytes>)"
    view = PartitionProduceData(records=memoryview(bytes(9000)))
    assert repr(view) == "PartitionProduceData(index=0, records=<9000 bytes>)"
    assert repr(ConsumerProtocolAssignment(user_data=bytes(33))).endswith("user_data=<33 bytes>)")
    assert repr(ConsumerProtocolAssignment(user_data=b"ab")).endswith("user_data=b'ab')")


def test_repr_hides_secrets() -> None:
    class Login(Message, versions="0"):
        user: str = string()
        password: str = string(secret=True)

    assert repr(Login(user="u", password="p")) == "Login(user='u', password=***)"
    with pytest.raises(InvalidArgumentError) as caught:
        Login(password=cast("Any", b"hunter2")).encode(0)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "secret"),
    [
        (SaslAuthenticateRequest, "auth_bytes"),
        (SaslAuthenticateResponse, "auth_bytes"),
        (ScramCredentialUpsertion, "salt"),
        (ScramCredentialUpsertion, "salted_password"),
        (UserScramCredentialRecord, "salt"),
        (UserScramCredentialRecord, "stored_key"),
        (UserScramCredentialRecord, "server_key"),
    ],
)
def test_repr_of_credentials_hides_secrets(message: type[Struct], secret: str) -> None:
    assert "hunter2" not in repr(message(**{secret: b"hunter2"}))
