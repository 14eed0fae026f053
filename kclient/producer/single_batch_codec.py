"""Encoding of a Produce request with one batch, and decoding of the response that acknowledges it.

Most requests of a producer that waits for each record are of this form. The bytes are those of
`encode_request` and `decode_response_body`, which walk through the fields of a message: for one
batch that takes longer than all else that a request needs.
"""

from functools import lru_cache
from struct import Struct as Layout

from kclient.common.files import WireBytes, WirePart
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import NO_TAGS, encode_request
from kclient.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.protocol.types import OWN_PART_SIZE, encode_uvarint

VERSION = 13
"""Version of the request and of its response: the first with topic ids."""

_FRONT = Layout(">hhi")
_PARTITION = Layout(">Bi")
_ONE = 2  # the length of an array with one element: lengths are one more than their number
_END = NO_TAGS * 3  # of the partition, of the topic, and of the request

# Correlation id and tags; one topic with one partition; their tags, the throttle time, and tags.
_RESPONSE = Layout(">ixB16sBihqqqBBBBiB")
_SIZE = _RESPONSE.size
_TAGS_POSITION = 4
_NO_LEADER = LeaderIdAndEpoch()
_FORM = (0, 1, 0, 0, 0, 0)
"""No error code, no record errors (a length), no error message, and no tags."""


@lru_cache(maxsize=64)
def _after_correlation_id(
    client_id: str | None, transactional_id: str | None, acks: int, timeout_ms: int
) -> bytes:
    """Return what is between the correlation id and the id of the topic."""
    message = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[]
    )
    parts = encode_request(message, VERSION, 0, client_id)
    encoded = b"".join(part for part in parts if isinstance(part, bytes))  # all of them
    empty = b"\x01" + NO_TAGS  # array of topics, and the tags of the request
    return encoded[_FRONT.size : -len(empty)] + bytes([_ONE])


def encode_single(
    correlation_id: int,
    client_id: str | None,
    transactional_id: str | None,
    acks: int,
    timeout_ms: int,
    topic_id: bytes,
    partition: int,
    records: memoryview,
) -> list[WirePart]:
    """Return header and body of a request with one batch in parts, as `encode_request` does."""
    size = len(records)
    front = b"".join(
        (
            _FRONT.pack(ApiKey.PRODUCE, VERSION, correlation_id),
            _after_correlation_id(client_id, transactional_id, acks, timeout_ms),
            topic_id,
            _PARTITION.pack(_ONE, partition),
            encode_uvarint(size + 1),
        )
    )
    if size < OWN_PART_SIZE:
        return [b"".join((front, records, _END))]
    return [front, records, _END]


def decode_single(payload: WireBytes) -> ProduceResponse | None:
    """Decode a response with one partition and no error; return None if it has another form."""
    if len(payload) != _SIZE or payload[_TAGS_POSITION]:
        return None
    (
        _, topics, topic_id, partitions, index, error_code, base_offset, log_append_time_ms,
        log_start_offset, record_errors, message, tags, topic_tags, throttle_time_ms, end,
    ) = _RESPONSE.unpack(payload)  # fmt: skip
    if topics != _ONE or partitions != _ONE:
        return None
    if (error_code, record_errors, message, tags, topic_tags, end) != _FORM:
        return None
    partition = PartitionProduceResponse(
        index=index,
        error_code=error_code,
        base_offset=base_offset,
        log_append_time_ms=log_append_time_ms,
        log_start_offset=log_start_offset,
        current_leader=_NO_LEADER,
    )
    topic = TopicProduceResponse(topic_id=topic_id, partition_responses=[partition])
    return ProduceResponse(responses=[topic], throttle_time_ms=throttle_time_ms)
