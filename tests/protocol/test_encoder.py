"""Encoding of messages, and the errors of values that do not fit."""

from pathlib import Path
from typing import Any

import pytest

from kclient.common.broker_errors import UnsupportedVersionError
from kclient.common.errors import InvalidArgumentError
from kclient.common.files import FileSlice
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


def test_ignorable_fields_are_dropped() -> None:
    request = FetchRequest(rack_id="r", session_id=3)
    assert FetchRequest.decode(request.encode_bytes(4), 4) == FetchRequest()


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


def test_file_slice_is_one_part() -> None:
    class Reader:
        path = Path("segment")

        def read_at(self, position: int, length: int) -> bytes:
            return bytes(range(position, position + length))

    small = FileSlice(Reader(), 3, 5)  # type: ignore[arg-type]
    partitions = [PartitionData(records=small), PartitionData(records=FileSlice(small.file, 0, 0))]
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    for version in (11, 12):
        parts = response.encode(version)
        assert [type(part).__name__ for part in parts] == ["bytes", "FileSlice", "bytes"]
        assert parts[1] is small
        decoded = FetchResponse.decode(response.encode_bytes(version), version)
        first, second = decoded.responses[0].partitions
        assert first.records == bytes(range(3, 8))
        assert second.records == b""
