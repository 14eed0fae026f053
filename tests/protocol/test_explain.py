"""Error texts of values that cannot be encoded, and of bytes that cannot be decoded."""

from typing import Any

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError, ProtocolError
from kclient.protocol.message import Message
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from kclient.protocol.messages.group_membership import (
    HeartbeatRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.topics import DeleteTopicsRequest


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("", "group_id needs 2 bytes, only 0 remain"),
        ("0001 67 000000", "generation_id needs 4 bytes, only 3 remain"),
        ("0001 67 00000000 00", "member_id needs 2 bytes, only 1 remain"),
        ("0003 67", "group_id needs 3 bytes, only 1 remain"),
        ("ffff", "group_id is null, which this field does not allow"),
        ("fffe", "group_id has length -2"),
        ("0001 ff", r"group_id is not UTF-8 \(invalid start byte\)"),
        ("0001 67 00000000 0001 6d fffe", "group_instance_id has length -2"),
    ],
)
def test_error_of_malformed_bytes_names_field(data: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=f"^HeartbeatRequest v3: {text}"):
        HeartbeatRequest.decode(bytes.fromhex(data), 3)


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("05 0001", r"topics claims 4 elements of at least 18 bytes, only 2 bytes remain"),
        ("02" + "00" * 16, r"topics claims 1 elements"),
        ("02 13" + "00" * 17, r"topics\[0\].name needs 18 bytes, only 17 remain"),
    ],
)
def test_error_of_malformed_array_names_element(data: str, text: str) -> None:
    with pytest.raises(ProtocolError, match=rf"^DeleteTopicsRequest v6: {text}"):
        DeleteTopicsRequest.decode(bytes.fromhex(data), 6)


@pytest.mark.parametrize(
    ("message", "version", "text"),
    [
        (
            HeartbeatRequest(group_instance_id="i"),
            2,
            r"HeartbeatRequest v2: group_instance_id: got 'i' \(str\), which only versions 3\+",
        ),
        (MetadataRequest(topics=None), 0, r"topics may be null in versions 1\+ only"),
        (
            FetchRequest(topics=[FetchTopic(), FetchTopic(partitions=[])], rack_id="r"),
            99,
            "FetchRequest: got version 99, expected 4-18",
        ),
        (FetchRequest(), 3, "FetchRequest: got version 3"),
        (
            FetchResponse(
                responses=[
                    FetchableTopicResponse(),
                    FetchableTopicResponse(
                        partitions=[
                            PartitionData(),
                            PartitionData(current_leader=LeaderIdAndEpoch(leader_id=1)),
                        ]
                    ),
                ]
            ),
            11,
            r"responses\[1\].partitions\[1\].current_leader: got LeaderIdAndEpoch",
        ),
    ],
)
def test_field_missing_in_version_is_refused(message: Message, version: int, text: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=text):
        message.encode(version)


def wrong(value: object) -> Any:
    """Return a value that a type checker would refuse."""
    return value


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            HeartbeatRequest(group_id=wrong(None)),
            r"group_id: got None \(NoneType\), expected string",
        ),
        (HeartbeatRequest(group_id=wrong(b"g")), r"group_id: got 1 bytes, expected string"),
        (HeartbeatRequest(generation_id=1 << 31), r"generation_id: got 2147483648 \(int\)"),
        (
            HeartbeatRequest(generation_id=wrong("7")),
            r"generation_id: got '7' \(str\), expected int32",
        ),
        (HeartbeatRequest(member_id="\ud800"), r"surrogates not allowed"),
        (HeartbeatRequest(member_id="m" * 40000), r"member_id: got 'mmm.* expected string"),
        (
            FetchRequest(topics=[FetchTopic(topic_id=bytes(15))]),
            r"topics\[0\].topic_id: got 15 bytes, expected uuid",
        ),
        (
            DeleteTopicsRequest(topic_names=[wrong(None)]),
            r"topic_names\[0\]: got None \(NoneType\), expected string",
        ),
        (
            DeleteTopicsRequest(topic_names=wrong(7)),
            r"topic_names: got 7 \(int\), expected array of string",
        ),
        (
            FetchRequest(forgotten_topics_data=[ForgottenTopic(partitions=[1, wrong("b")])]),
            r"forgotten_topics_data\[0\].partitions\[1\]: got 'b' \(str\), expected int32",
        ),
        (
            FetchRequest(topics=[wrong("t")]),
            r"topics\[0\]: got 't' \(str\), expected FetchTopic",
        ),
        (FetchRequest(rack_id="r" * 40000), "rack_id: got 'rrr.* expected string"),
        (
            DeleteTopicsRequest(topic_names=["a", wrong(3)]),
            r"topic_names\[1\]: got 3 \(int\), expected string",
        ),
    ],
)
def test_values_that_do_not_fit_are_refused(message: Message, text: str) -> None:
    version = 13 if isinstance(message, FetchRequest) else message.min_version
    with pytest.raises(InvalidArgumentError, match=text):
        message.encode(version)


def test_str_in_place_of_bytes_is_refused() -> None:
    request = SyncGroupRequest(assignments=[SyncGroupRequestAssignment(assignment=wrong("text"))])
    with pytest.raises(
        InvalidArgumentError, match=r"assignments\[0\].assignment: got 'text' .*expected bytes"
    ):
        request.encode(0)
