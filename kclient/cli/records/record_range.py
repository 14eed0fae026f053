"""Range of records that a command reads, and whether its end is reached."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.record import ConsumerRecord

_END = 2**63 - 1
_NAMED = {"beginning": 0, "end": _END}

Offsets = Mapping[TopicPartition, int]


def offset_option(text: str) -> int:
    """Parse an offset: a number, ``beginning`` or ``end``, or -N for N offsets before the end.

    Raises:
        argparse.ArgumentTypeError: The text is none of these.
    """
    try:
        offset = _NAMED[text] if text in _NAMED else int(text)
    except ValueError:
        offset = _END + 1
    if abs(offset) > _END:
        raise argparse.ArgumentTypeError(
            f"got {text!r:.80}, expected beginning, end, an offset, or -N for N before the end"
        )
    return offset


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Start and stop as given on the command line.

    Attributes:
        offset: First offset, negative if it is relative to the end; None for the position that
            ``auto.offset.reset`` or the group determines.
        from_time_ms: Instead of `offset`: time of the first record.
        to_time_ms: Stop before the first record of this time.
        until_end: Stop at the end of the log as it is at the start.
    """

    offset: int | None = None
    from_time_ms: int | None = None
    to_time_ms: int | None = None
    until_end: bool = False

    @property
    def has_start(self) -> bool:
        """Whether a first offset or time is given."""
        return self.offset is not None or self.from_time_ms is not None

    @property
    def has_stop(self) -> bool:
        """Whether the range has an end."""
        return self.until_end or self.to_time_ms is not None

    def starts(
        self, consumer: Consumer, partitions: Sequence[TopicPartition], ends: Offsets
    ) -> Offsets:
        """Return the first offsets; they are between the beginning of the log and its end."""
        if self.from_time_ms is not None:
            return _offsets_at(consumer, self.from_time_ms, ends)
        offset = self.offset or 0
        first = consumer.beginning_offsets(partitions)
        wanted = {place: offset + (ends[place] if offset < 0 else 0) for place in partitions}
        return {place: min(max(wanted[place], first[place]), ends[place]) for place in partitions}

    def stops(self, consumer: Consumer, ends: Offsets) -> Offsets:
        """Return the offsets before which to stop, at most `ends`."""
        if self.to_time_ms is None:
            return ends
        return _offsets_at(consumer, self.to_time_ms, ends)


def _offsets_at(consumer: Consumer, time_ms: int, ends: Offsets) -> Offsets:
    """Return the offset of the first record of a time in each partition, at most its end."""
    found = consumer.offsets_for_times(dict.fromkeys(ends, time_ms))
    return {
        place: end if (first := found[place]) is None else min(first.offset, end)
        for place, end in ends.items()
    }


class StopOffsets:
    """Selects the records before the stop offsets, and knows when all of them were read.

    Offsets without a record, as of compacted records, aborted transactions and control records,
    count as read when the position has passed them.
    """

    def __init__(self, consumer: Consumer, stops: Offsets) -> None:
        self._consumer = consumer
        self._stops = stops

    def _stop(self, place: TopicPartition) -> int:
        return self._stops.get(place, 0)  # 0 for a partition that was added later

    def select(self, records: ConsumerRecords[bytes, bytes]) -> list[ConsumerRecord[bytes, bytes]]:
        """Return the records before the stop; the position of a partition stays at its stop."""
        selected: list[ConsumerRecord[bytes, bytes]] = []
        for place in records.partitions():
            found = records.records(place)
            stop = self._stop(place)
            if found[-1].offset >= stop:
                found = [record for record in found if record.offset < stop]
                self._consumer.seek(place, stop)
                self._consumer.pause(place)
            selected += found
        return selected

    def are_reached(self, *, is_idle: bool) -> bool:
        """Return whether the position of each assigned partition is at its stop, or at its end.

        Args:
            is_idle: Whether the last poll returned nothing. Then the ends are looked up, since a
                log may have become shorter, by a new leader or as another topic of the same name.

        Raises:
            KafkaTimeoutError: The brokers do not respond.
        """
        positions = {place: self._consumer.position(place) for place in self._consumer.assignment()}
        behind = {place: at for place, at in positions.items() if at < self._stop(place)}
        if behind and is_idle:
            ends = self._consumer.end_offsets(list(behind))
            behind = {place: at for place, at in behind.items() if at < ends[place]}
        return not behind
