"""ListOffsets requests."""

from kclient.common.broker_errors import (
    UnsupportedVersionError,
    code_of,
)
from kclient.protocol.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tests.support.clients.wire import Wire, batch


def list_offset(
    wire: Wire, topic: str, timestamp: int, version: int = 9, isolation: int = 0
) -> tuple[int, int, int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name=topic, partitions=[part])],
    )
    response = wire.ask(request, version, ListOffsetsResponse)
    found = response.topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp


def test_offsets_by_time(wire: Wire, topic: str) -> None:
    for number, timestamp in enumerate([1000, 3000, 2000]):
        assert wire.produce(topic, batch([b"a"], timestamp=timestamp)).base_offset == number
    assert list_offset(wire, topic, -1) == (0, 3, -1)
    assert list_offset(wire, topic, -2) == (0, 0, -1)
    assert list_offset(wire, topic, -3) == (0, 1, 3000)
    assert list_offset(wire, topic, -4) == (0, 0, -1)
    assert list_offset(wire, topic, -5) == (0, -1, -1)
    assert list_offset(wire, topic, 0) == (0, 0, 1000)
    assert list_offset(wire, topic, 1001) == (0, 1, 3000)
    assert list_offset(wire, topic, 3001) == (0, -1, -1)
    assert list_offset(wire, topic, -3, version=6)[0] == code_of(UnsupportedVersionError())


def test_unknown_special_timestamp_is_unsupported(wire: Wire, topic: str) -> None:
    assert list_offset(wire, topic, -7) == (code_of(UnsupportedVersionError), -1, -1)
