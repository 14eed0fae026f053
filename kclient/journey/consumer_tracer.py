"""Tracer of polls, from the Fetch request to the commit."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kclient.client.client_request import ClientResponse
from kclient.common.converters import DataOnly
from kclient.common.types import OffsetAndMetadata, TopicPartition
from kclient.consumer.collected import Collected
from kclient.consumer.completed_fetch import CompletedFetch
from kclient.serialization import Deserializer

_NS_PER_MS = 1e6
_PAUSE = 20
"""Pause between traced fetches, in times of the deserializers; a clock may cost as much as one."""


class FetchMarks(NamedTuple):
    """Times of a Fetch request.

    Attributes:
        correlation_id: Correlation id of the request.
        sent_ns: The request was created.
        received_ns: The consumer woke up because the response had arrived.
    """

    correlation_id: int
    sent_ns: int
    received_ns: int


@dataclass(slots=True)
class PolledRecords:
    """Records of one partition that one poll returned, and their times; 0 is not reached.

    Attributes:
        partition: Partition.
        first: Offset of the first record.
        end: Offset after the last one; the next poll may reduce it, if it returns them again.
        fetch: Times of the request.
        taken_ns: The poll began to decode the records.
        decoded_ns: They were decoded, if the time in deserializers is left out.
        deserialized_ns: They were deserialized.
        returned_ns: The poll returned.
        processed_ns: The application polled again, or committed.
        committed_ns: A later offset was committed.
    """

    partition: TopicPartition
    first: int
    end: int
    fetch: FetchMarks
    taken_ns: int
    decoded_ns: int
    deserialized_ns: int
    returned_ns: int = 0
    processed_ns: int = 0
    committed_ns: int = 0

    def split(self, offset: int) -> "PolledRecords":
        """Keep the records from an offset on, and return those before it."""
        before = PolledRecords(
            self.partition,
            self.first,
            offset,
            self.fetch,
            self.taken_ns,
            self.decoded_ns,
            self.deserialized_ns,
            self.returned_ns,
        )
        self.first = offset
        return before


class ConsumerTracer:
    """Traces chosen fetches of one consumer (`kclient.consumer.record_tracer.RecordTracer`).

    The records of a partition in a poll have the same times, and one entry. The thread that calls
    the consumer makes all calls, except those of `polled` and `trace_next`.
    """

    def __init__(self, now_ns: Callable[[], int], capacity: int, *, traces_all: bool) -> None:
        self._now_ns = now_ns
        self._capacity = capacity
        self._traces_all = traces_all
        self._trace_next = True
        self._pause_until_ns = 0
        self._deserializing_ns = 0
        self._taken: list[PolledRecords] = []  # by the poll that runs
        self._processing: list[PolledRecords] = []
        self._uncommitted: dict[TopicPartition, deque[PolledRecords]] = {}
        self._last: dict[TopicPartition, PolledRecords] = {}
        self._returned: deque[PolledRecords] = deque(maxlen=capacity)

    # --- calls of the consumer

    def timed(self, deserializer: Deserializer | None) -> Deserializer | None:
        """Return a deserializer whose time is added up."""
        if deserializer is None:
            return None
        now_ns = self._now_ns
        convert: Callable[..., Any] = deserializer
        is_data_only = isinstance(deserializer, DataOnly)
        if isinstance(deserializer, DataOnly):
            convert = deserializer.function

        def timed(*arguments: Any) -> Any:
            started_ns = now_ns()
            result = convert(*arguments)
            self._deserializing_ns += now_ns() - started_ns
            return result

        return DataOnly(timed) if is_data_only else timed

    def fetched(self, response: ClientResponse) -> FetchMarks | None:
        """Return the marks of a fetch response, None if it is not traced."""
        if not self._traces_all:
            if not self._trace_next or self._now_ns() < self._pause_until_ns:
                return None
            self._trace_next = False
        return FetchMarks(
            response.correlation_id,
            round(response.created_ms * _NS_PER_MS),
            round(response.received_ms * _NS_PER_MS),
        )

    def take(self, target: Collected, fetch: CompletedFetch) -> None:
        """Take records from a fetch, and mark those of a traced one."""
        if not isinstance(fetch.trace, FetchMarks):
            target.take_from(fetch)
            return
        self._deserializing_ns = 0
        first = fetch.next_fetch_offset
        taken_ns = self._now_ns()
        target.take_from(fetch)
        ended_ns = self._now_ns()
        pause_ns = _PAUSE * self._deserializing_ns
        self._pause_until_ns = max(self._pause_until_ns, ended_ns) + pause_ns
        end = fetch.next_fetch_offset
        if end > first:
            partition = fetch.state.partition
            decoded_ns = ended_ns - self._deserializing_ns
            self._taken.append(
                PolledRecords(partition, first, end, fetch.trace, taken_ns, decoded_ns, ended_ns)
            )

    def poll_started(self) -> None:
        """End the processing of the records of the last poll."""
        if self._taken:  # by a poll that failed
            self._taken = []
        if self._processing:
            self._end_processing(self._now_ns())

    def poll_returned(self) -> None:
        """Mark the records of this poll as returned."""
        if not self._taken:
            return
        now_ns = self._now_ns()
        for records in self._taken:
            last = self._last.get(records.partition)
            if last is not None and records.first < last.end:  # put back, or after a seek
                last.end = max(last.first, records.first)
            self._last[records.partition] = records
            records.returned_ns = now_ns
        self._returned.extend(self._taken)
        self._processing, self._taken = self._taken, []

    def commit_queued(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """End the processing of the records before the offsets."""
        now_ns = self._now_ns()
        for records in list(self._processing):
            committed = offsets.get(records.partition)
            if committed is None or committed.offset <= records.first:
                continue
            if committed.offset < records.end:
                before = records.split(committed.offset)
                self._returned.append(before)
            else:
                before = records
                self._processing.remove(records)
            self._processed(before, now_ns)

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Mark the processed records before the offsets as committed."""
        now_ns = self._now_ns()
        for partition, committed in offsets.items():
            waiting = self._uncommitted.get(partition)
            while waiting and waiting[0].end <= committed.offset:
                waiting.popleft().committed_ns = now_ns

    # --- calls of the journey

    def trace_next(self) -> None:
        """Trace the next fetch response. For any thread."""
        self._trace_next = True

    def end(self) -> None:
        """End the processing of the last records, which no further poll ends."""
        self._end_processing(self._now_ns())

    def polled(self) -> Iterator[PolledRecords]:
        """Return the records that were processed, in the order of the polls."""
        for records in list(self._returned):
            if records.processed_ns and records.first < records.end:
                yield records

    # --- inside

    def _end_processing(self, now_ns: int) -> None:
        processing, self._processing = self._processing, []
        for records in processing:
            self._processed(records, now_ns)

    def _processed(self, records: PolledRecords, now_ns: int) -> None:
        records.processed_ns = now_ns
        waiting = self._uncommitted.get(records.partition)
        if waiting is None:
            waiting = self._uncommitted[records.partition] = deque(maxlen=self._capacity)
        waiting.append(records)
