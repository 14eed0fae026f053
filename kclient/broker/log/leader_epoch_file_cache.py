"""Cache of leader epochs and their start offsets (Kafka: LeaderEpochFileCache, KIP-101)."""

from bisect import bisect_right
from typing import NamedTuple

from kclient.broker.log.checkpoint_file import LeaderEpochCheckpointFile
from kclient.common.errors import InvalidArgumentError

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    """Leader epoch and its first offset."""

    epoch: int
    start_offset: int


class LeaderEpochFileCache:
    """Leader epochs in order, with their checkpoint. Guarded by the log's lock."""

    def __init__(self, checkpoint: LeaderEpochCheckpointFile) -> None:
        self._checkpoint = checkpoint
        self._entries: list[EpochEntry] = []
        self._has_unwritten = False

    def load(self) -> None:
        """Read the checkpoint."""
        self._entries = []
        self._has_unwritten = False
        for epoch, start_offset in self._checkpoint.read():
            self._insert(EpochEntry(epoch, start_offset))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add an epoch and its first offset; conflicting entries are removed.

        Raises:
            InvalidArgumentError: The epoch or the offset is negative.
            OSError: The checkpoint could not be written.
        """
        if self._entries and epoch == self._entries[-1].epoch and not self._has_unwritten:
            return  # as for almost every append
        self._check(epoch, start_offset)
        before = self._entries
        if self._insert(EpochEntry(epoch, start_offset)) or self._has_unwritten:
            self._write_or_keep(before)

    def begin(self, epoch: int, start_offset: int) -> None:
        """Add an epoch as `assign` does, without a write: its first append writes it.

        A restart before that append would remove the epoch, since no record has it.

        Raises:
            InvalidArgumentError: The epoch or the offset is negative.
        """
        self._check(epoch, start_offset)
        if self._insert(EpochEntry(epoch, start_offset)):
            self._has_unwritten = True

    @staticmethod
    def _check(epoch: int, start_offset: int) -> None:
        if epoch < 0 or start_offset < 0:
            raise InvalidArgumentError(
                f"leader epoch: got {epoch} from offset {start_offset}, expected both >= 0"
            )

    @property
    def latest_epoch(self) -> int | None:
        """Latest epoch, or None if there is none."""
        return self._entries[-1].epoch if self._entries else None

    @property
    def first_offset(self) -> int | None:
        """Start offset of the first epoch, or None if there is none."""
        return self._entries[0].start_offset if self._entries else None

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        """All epochs in order."""
        return tuple(self._entries)

    def epoch_for_offset(self, offset: int) -> int:
        """Return the leader epoch of an offset, or -1."""
        index = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[index - 1].epoch if index else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the greatest epoch that is at most `epoch`, and its end offset.

        Both are -1 if `epoch` is undefined or later than every epoch of the log.
        """
        if epoch == UNDEFINED_EPOCH or not self._entries:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self._entries[-1].epoch:
            return epoch, log_end_offset
        index = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if index == len(self._entries):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        end_offset = self._entries[index].start_offset
        # For an epoch before the first one, the end offset is the start of the first.
        return (self._entries[index - 1].epoch if index else epoch), end_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at this offset or above."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove the epochs that end at or before this offset, where the first one then starts."""
        index = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        kept = self._entries[index:]
        if index:
            kept = [EpochEntry(self._entries[index - 1].epoch, start_offset), *kept]
        self._replace(kept)

    def clear(self) -> None:
        """Remove all epochs."""
        self._replace([])

    def use_checkpoint(self, checkpoint: LeaderEpochCheckpointFile) -> None:
        """Use the file at its new path after the directory was renamed."""
        self._checkpoint = checkpoint

    def _insert(self, entry: EpochEntry) -> bool:
        if self._entries and entry.epoch == self._entries[-1].epoch:
            return False
        kept = [
            earlier
            for earlier in self._entries
            if earlier.epoch < entry.epoch and earlier.start_offset < entry.start_offset
        ]
        self._entries = [*kept, entry]
        return True

    def _replace(self, kept: list[EpochEntry]) -> None:
        before = self._entries
        if kept != before:
            self._entries = kept
            self._write_or_keep(before)

    def _write_or_keep(self, before: list[EpochEntry]) -> None:
        try:
            self._checkpoint.write(self._entries)
        except OSError:
            self._entries = before
            raise
        self._has_unwritten = False
