"""Requests that change topics, and plans with the metadata records that make the change."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kclient.broker.controller.metadata_image import TopicImage
from kclient.protocol.messages.metadata_records import ConfigRecord, MetadataRecord

_RECORD_SIZE = 120
"""About the bytes of a metadata record without variable parts, in its batch."""


class TopicRequest(NamedTuple):
    """Request to create a topic.

    Attributes:
        name: Topic name.
        num_partitions: Number of partitions, -1 for the broker's default.
        replication_factor: Replication factor, -1 for the broker's default.
        assignments: Broker ids by partition instead of the two numbers; empty for none.
        configs: Settings; a value of None is rejected.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class PartitionsRequest(NamedTuple):
    """Request to add partitions to a topic.

    Attributes:
        name: Topic name.
        total: Number of partitions afterwards.
        assignments: Broker ids of each new partition; None for an automatic assignment.
    """

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


class Plan(Protocol):
    """Planned change."""

    @property
    def records(self) -> Sequence[MetadataRecord]:
        """Records that make the change."""
        ...


class TopicPlan(NamedTuple):
    """Planned creation of a topic."""

    records: Sequence[MetadataRecord]
    request: TopicRequest
    topic_id: bytes
    num_partitions: int
    replication_factor: int


class PartitionsPlan(NamedTuple):
    """Planned partitions of a topic."""

    records: Sequence[MetadataRecord]


class DeletionPlan(NamedTuple):
    """Planned deletion of a topic."""

    records: Sequence[MetadataRecord]
    topic: TopicImage


def estimated_size(plan: Plan) -> int:
    """Return the approximate size in bytes of a plan's records in the metadata log."""
    size = _RECORD_SIZE * len(plan.records)
    for record in plan.records:
        if isinstance(record, ConfigRecord):
            size += len(record.name) + len(record.value or "")
    return size
