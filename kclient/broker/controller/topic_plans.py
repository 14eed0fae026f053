"""Requests for topics and partitions, and the metadata records that carry them out."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.controller.metadata_image import TopicImage
from kclient.protocol.messages.metadata_records import ConfigRecord, MetadataRecord

_RECORD_SIZE = 120
"""About the bytes of a metadata record without variable parts, in its batch."""


class TopicRequest(NamedTuple):
    """A topic to be created.

    Attributes:
        name: Topic name.
        num_partitions: Number of partitions, -1 for the broker's default.
        replication_factor: Copies, -1 for the broker's default.
        assignments: Broker ids by partition instead of the two counts; empty for none.
        configs: Settings; None is no value that is accepted.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class PartitionsRequest(NamedTuple):
    """More partitions for a topic.

    Attributes:
        name: Topic name.
        total: Number of partitions afterwards.
        assignments: Broker ids of each new partition; None leaves them to the controller.
    """

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


class Plan(Protocol):
    """A change that may be made."""

    @property
    def records(self) -> Sequence[MetadataRecord]:
        """The records that make it."""
        ...


class TopicPlan(NamedTuple):
    """A topic that may be created: its records, and what they amount to."""

    records: Sequence[MetadataRecord]
    request: TopicRequest
    topic_id: bytes
    num_partitions: int
    replication_factor: int


class PartitionsPlan(NamedTuple):
    """Partitions that may be added to a topic."""

    records: Sequence[MetadataRecord]


class DeletionPlan(NamedTuple):
    """A topic that may be deleted."""

    records: Sequence[MetadataRecord]
    topic: TopicImage


def estimated_size(plan: Plan) -> int:
    """Return about how many bytes a plan's records take in the metadata log."""
    size = _RECORD_SIZE * len(plan.records)
    for record in plan.records:
        if isinstance(record, ConfigRecord):
            size += len(record.name) + len(record.value or "")
    return size
