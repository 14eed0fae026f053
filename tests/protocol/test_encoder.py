"""Encoding of messages, and the errors of values that do not fit."""

from pathlib import Path

from kclient.common.files import FileSlice
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)


def test_ignorable_fields_are_dropped() -> None:
    request = FetchRequest(rack_id="r", session_id=3)
    assert FetchRequest.decode(request.encode_bytes(4), 4) == FetchRequest()


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
