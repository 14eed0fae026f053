"""Printing of records in the formats of ``kclient consume``."""

import argparse
import sys
import time

from kclient.cli.records.progress_line import ProgressLine
from kclient.cli.records.record_json import as_json
from kclient.cli.records.record_range import StopOffsets
from kclient.cli.records.record_template import compile_template
from kclient.cli.records.record_text import TEXT_FORMATS, Format
from kclient.common.errors import InvalidArgumentError
from kclient.consumer.consumer import Consumer
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.record import ConsumerRecord

_IDLE_POLL_S = 0.5
_POLL_BEFORE_STOP_S = 0.1
_NEWLINE = b"\n"


def format_option(text: str) -> str:
    """Check the value of --format."""
    if text not in ("text", *_FORMATS):
        if "%" not in text:
            raise argparse.ArgumentTypeError(
                f"got {text!r:.80}, expected text, json, raw, or a text with tokens such as %s"
            )
        try:
            compile_template(text)
        except InvalidArgumentError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _value(record: ConsumerRecord) -> bytes:
    value: bytes | None = record.value
    return b"" if value is None else value


_FORMATS: dict[str, Format] = {"json": as_json, "raw": _value}


class RecordPrinter:
    """Prints records, and knows when the command is done.

    Attributes:
        count: Records printed, counted by complete polls.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.count = 0
        self._most: int | None = options.max_records
        self._idle_timeout_s: float | None = options.idle_timeout
        self._format, self._delimiter = _output(options)
        self._progress = ProgressLine(sys.stdout, is_quiet=options.quiet)
        self._last_record = time.monotonic()
        self._is_assigned = self._is_at_stop = False

    def set_assigned(self, _partitions: object) -> None:
        """Note that the partitions are assigned, or none to this member of the group."""
        self._is_assigned = True

    def is_over(self) -> bool:
        """Return whether the maximum or the stop is reached, or the idle timeout has passed."""
        if self._is_at_stop or (self._most is not None and self.count >= self._most):
            return True
        idle_s = time.monotonic() - self._last_record
        return self._idle_timeout_s is not None and idle_s >= self._idle_timeout_s

    def poll(self, consumer: Consumer, stops: StopOffsets | None) -> None:
        """Print the records of one poll. If that fails, reset the positions to before them."""
        left = None if self._most is None else self._most - self.count
        timeout_s = _IDLE_POLL_S if stops is None else _POLL_BEFORE_STOP_S
        records = consumer.poll(timeout_s, max_records=left)
        if records:
            self._print(consumer, records, stops)
        if stops is not None and self._is_assigned:
            self._is_at_stop = stops.are_reached(is_idle=not records)

    def _print(
        self,
        consumer: Consumer,
        records: ConsumerRecords[bytes, bytes],
        stops: StopOffsets | None,
    ) -> None:
        self._last_record = time.monotonic()
        try:
            selected = records if stops is None else stops.select(records)
            lines = [
                part for record in selected for part in (self._format(record), self._delimiter)
            ]
            printed = b"".join(lines)
            sys.stdout.buffer.write(printed)
            sys.stdout.flush()
        except BaseException:
            # The commit at close must not include records that were not printed.
            for partition in records.partitions():
                consumer.seek(partition, records.records(partition)[0].offset)
            raise
        self.count += len(selected)
        self._progress.add(len(selected), len(printed))

    def end(self, *, is_reported: bool) -> None:
        """Remove the progress line; report the number of records."""
        self._progress.clear()
        if is_reported:
            print(f"{self.count} {'record' if self.count == 1 else 'records'}", file=sys.stderr)


def _output(options: argparse.Namespace) -> tuple[Format, bytes]:
    """Return the format of a record and the delimiter after it."""
    name: str = options.format
    is_template = name not in ("text", *_FORMATS)
    usual = b"" if is_template else _NEWLINE
    after: bytes = usual if options.delimiter is None else options.delimiter
    if is_template:
        return compile_template(name), after
    return TEXT_FORMATS[options.show] if name == "text" else _FORMATS[name], after
