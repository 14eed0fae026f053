"""Metadata requests."""

from kclient.common.broker_errors import (
    InvalidTopicError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
)
from kclient.protocol.messages.topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tests.support.clients.wire import Wire, batch


def test_metadata_auto_creates_topics(wire: Wire) -> None:
    unknown = code_of(UnknownTopicOrPartitionError())
    assert wire.metadata("by-use").topics[0].error_code == unknown
    assert wire.metadata("by-use", create=True).topics[0].error_code == unknown
    assert wire.metadata("by-use").topics[0].error_code == 0
    assert wire.metadata("in/valid", create=True).topics[0].error_code == code_of(
        InvalidTopicError()
    )


def test_metadata_of_all_topics_and_of_no_topic(wire: Wire, topic: str) -> None:
    everything = wire.ask(MetadataRequest(topics=None), 12, MetadataResponse)
    assert topic in {found.name for found in everything.topics}
    assert wire.ask(MetadataRequest(topics=[]), 1, MetadataResponse).topics == []
    oldest = wire.ask(MetadataRequest(topics=[]), 0, MetadataResponse)
    assert topic in {found.name for found in oldest.topics}


def test_recreated_topic_has_another_id(wire: Wire) -> None:
    first = wire.create_topic("again")
    wire.produce("again", batch([b"a"]))
    response = wire.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=first)]),
        6,
        DeleteTopicsResponse,
    )
    assert (response.responses[0].error_code, response.responses[0].name) == (0, "again")
    second = wire.create_topic("again")
    assert first != second
    assert wire.fetch("again", 0).high_watermark == 0
