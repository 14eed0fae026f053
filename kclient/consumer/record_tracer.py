"""Interface of a tracer of records through the consumer (`kclient.journey` implements it).

Without a tracer, a poll, a fetch response and a commit cost two comparisons with None each, and a
record none. Records of one poll share their times, so that a tracer traces fetches and polls, and
not single records. It traces those fetches for which `fetched` returns marks.
"""

from collections.abc import Mapping
from typing import Protocol

from kclient.client.client_request import ClientResponse
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.collected import Collected
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.serialization import Deserializer


class RecordTracer(Protocol):
    """Receives the steps of a consumer in the thread that calls it, one at a time."""

    def timed(self, deserializer: Deserializer | None) -> Deserializer | None:
        """Return a deserializer that is called instead, for the records of traced fetches."""
        ...

    def fetched(self, response: ClientResponse) -> object:
        """Return the marks of a response that is traced, else None; see `CompletedFetch.trace`."""
        ...

    def take(self, target: Collected, fetch: CompletedFetch) -> None:
        """Call ``target.take_from(fetch)``, which decodes records of any fetch."""
        ...

    def poll_started(self) -> None:
        """Mark that the application polls: it has processed the records of the last poll."""
        ...

    def poll_returned(self) -> None:
        """Mark that the records taken since `poll_started` are returned to the application."""
        ...

    def commit_queued(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Mark that the application, or an automatic commit, commits offsets."""
        ...

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Mark that the coordinator has acknowledged a commit."""
        ...
