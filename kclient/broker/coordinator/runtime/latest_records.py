"""Last record of each key in a coordinator's log."""

from collections.abc import Iterator

from kclient.broker.coordinator.runtime.partition_log import LogBatch
from kclient.common.files import WireBytes
from kclient.record import NO_PRODUCER_ID

LoadedRecord = tuple[bytes, bytes | None, int, int]
"""Key, value, offset, and the producer id of the transaction that is open yet, else -1."""

_Versions = dict[bytes, tuple[int, bytes | None]]
"""Offset and value of the last record of each key, in the order of the log."""


class LatestRecords:
    """Last record of each key that no transaction holds open, and those of open transactions.

    A commit marker applies a record of its transaction unless a later one of the key is applied
    already. A tombstone also removes what open transactions have of its key.
    """

    def __init__(self) -> None:
        self._applied: _Versions = {}
        self._open: dict[int, _Versions] = {}
        self._returned: set[int] = set()  # producers whose open records were returned
        self._ended: dict[int, bool] = {}

    @property
    def has_any(self) -> bool:
        """Whether there are records or ends of transactions that are not taken yet."""
        return bool(self._applied or self._open or self._ended)

    def add(self, batch: LogBatch) -> None:
        """Add the next batch of the log."""
        if batch.committed is not None:
            self._end(batch.producer_id, committed=batch.committed)
            return
        is_plain = batch.producer_id == NO_PRODUCER_ID
        if is_plain and not self._open:
            self._add_plain(batch)
            return
        for record in batch.records:
            if record.key is None:
                continue
            key, value = bytes(record.key), record.value
            if is_plain or value is None:
                _put(self._applied, key, record.offset, value)
                if value is None and self._open:
                    self._drop_open(key)
            else:
                _put(self._open.setdefault(batch.producer_id, {}), key, record.offset, value)

    def _add_plain(self, batch: LogBatch) -> None:
        """Add a batch while no transaction is open, as nearly all are; without a call for each."""
        applied = self._applied
        for record in batch.records:
            raw_key, value = record.key, record.value
            if raw_key is not None:
                key = bytes(raw_key)
                applied.pop(key, None)  # keeps the order of the log
                applied[key] = (record.offset, None if value is None else bytes(value))

    def _drop_open(self, key: bytes) -> None:
        for versions in self._open.values():
            versions.pop(key, None)

    def _end(self, producer_id: int, *, committed: bool) -> None:
        if producer_id in self._returned:
            self._returned.discard(producer_id)
            self._ended[producer_id] = committed
        versions = self._open.pop(producer_id, {})
        if committed:
            for key, (offset, value) in versions.items():
                applied = self._applied.get(key)
                if applied is None or applied[0] < offset:
                    _put(self._applied, key, offset, value)

    def take_ended(self) -> dict[int, bool]:
        """Remove and return which transactions have ended, and whether they are committed.

        They are those whose records `take_records` has returned as open. They are applied before
        the next records, which follow them in the log.
        """
        ended, self._ended = self._ended, {}
        return ended

    def take_records(self) -> Iterator[LoadedRecord]:
        """Remove the records; return those that are applied, then those of open transactions."""
        applied, self._applied = self._applied, {}
        still_open, self._open = self._open, {}
        self._returned |= still_open.keys()
        return _records(applied, still_open)


def _records(applied: _Versions, still_open: dict[int, _Versions]) -> Iterator[LoadedRecord]:
    for key, (offset, value) in applied.items():
        yield key, value, offset, NO_PRODUCER_ID
    for producer_id, versions in still_open.items():
        for key, (offset, value) in versions.items():
            yield key, value, offset, producer_id


def _put(versions: _Versions, key: bytes, offset: int, value: WireBytes | None) -> None:
    versions.pop(key, None)  # keeps the order of the log
    versions[key] = (offset, None if value is None else bytes(value))
