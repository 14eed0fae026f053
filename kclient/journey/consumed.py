"""Traces of consumed records: from `send`, or from the Fetch request, to the commit."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from kclient.common.types import TopicPartition
from kclient.journey.broker_times import BrokerTimes, Points
from kclient.journey.consumer_tracer import FetchMarks, PolledRecords
from kclient.journey.stages import BROKER_IN_ALL, CONSUMER_STAGES, FETCH_STAGES
from kclient.journey.traces import Trace, durations
from kclient.protocol.api_keys import ApiKey

_NAMES = tuple(stage.name for stage in CONSUMER_STAGES)
_FETCH_NAMES = tuple(stage.name for stage in FETCH_STAGES)
_READABLE = "broker remote"
"""Stage of a Produce request at whose end consumers can read the record."""


class ConsumedTraces:
    """Traces of the records that one consumer has processed.

    Args:
        polled: Records of its polls.
        broker: Times of requests in the broker.
        client_id: Client id of the consumer.
    """

    def __init__(
        self, polled: Iterable[PolledRecords], broker: BrokerTimes, client_id: str
    ) -> None:
        self._polled = list(polled)
        self._broker = broker
        self._client_id = client_id

    def from_fetch(self) -> Iterator[Trace]:
        """Return a trace for each partition of a poll, from the Fetch request on."""
        for records in self._polled:
            start = ((), (records.fetch.sent_ns,))
            yield self._trace(*records.partition, records.first, *start, records)

    def from_send(self, sent: Iterable[Trace]) -> Iterator[Trace]:
        """Return the traces of sent records up to the commit, as far as they were consumed."""
        found = _ByOffset(self._polled)
        for trace in sent:
            records = found.get(TopicPartition(trace.topic, trace.partition), trace.offset)
            if records is not None:
                start = _until_readable(trace, records.fetch.received_ns)
                yield self._trace(trace.topic, trace.partition, trace.offset, *start, records)

    def fetches(self) -> Iterator[Trace]:
        """Return the traces of the Fetch requests whose times in the broker are known."""
        for fetch in dict.fromkeys(records.fetch for records in self._polled):
            inside = self._inside(fetch)
            if inside is not None:
                points = (fetch.sent_ns, *inside, fetch.received_ns)
                yield Trace("", -1, -1, points[0], points[-1], durations(_FETCH_NAMES, points))

    def _trace(
        self,
        topic: str,
        partition: int,
        offset: int,
        names: Sequence[str],
        points: Sequence[int],
        records: PolledRecords,
    ) -> Trace:
        fetch = records.fetch
        inside = self._inside(fetch)
        later = [
            fetch.received_ns if inside is None else inside[-1],
            fetch.received_ns,
            records.taken_ns,
            records.decoded_ns,
            records.deserialized_ns,
            records.returned_ns,
            records.processed_ns,
        ]
        if records.committed_ns:
            later.append(records.committed_ns)
        stages = durations([*names, *_NAMES[: len(later)]], [*points, *later])
        if inside is None:
            del stages["wire"]  # the fetch wait includes it
        ended_ns = points[0] + sum(stages.values())
        return Trace(topic, partition, offset, points[0], ended_ns, stages)

    def _inside(self, fetch: FetchMarks) -> Points | None:
        return self._broker.between(
            ApiKey.FETCH, self._client_id, fetch.correlation_id, fetch.sent_ns, fetch.received_ns
        )


class _ByOffset:
    """Records of polls by partition and offset; of records read twice, the later ones."""

    def __init__(self, polled: Iterable[PolledRecords]) -> None:
        self._records: dict[TopicPartition, list[PolledRecords]] = defaultdict(list)
        for records in polled:
            self._records[records.partition].append(records)
        for found in self._records.values():
            found.sort(key=_first)

    def get(self, partition: TopicPartition, offset: int) -> PolledRecords | None:
        """Return the records that include an offset."""
        ascending = self._records.get(partition, ())
        position = bisect_right(ascending, offset, key=_first)
        if not position or ascending[position - 1].end <= offset:
            return None
        return ascending[position - 1]


def _first(records: PolledRecords) -> int:
    return records.first


def _until_readable(sent: Trace, received_ns: int) -> tuple[list[str], list[int]]:
    """Return the stages of a sent record until consumers could read it, and their points.

    If the broker's times are not known, that is its response, or the response to the Fetch request.
    """
    names = list(sent.durations_ns)
    is_exact = _READABLE in sent.durations_ns
    names = names[: names.index(_READABLE if is_exact else BROKER_IN_ALL.name) + 1]
    points = list(accumulate((sent.durations_ns[name] for name in names), initial=sent.started_ns))
    if not is_exact:
        points[-1] = min(points[-1], received_ns)
    return names, points
