r"""``kclient produce``: send lines of standard input or of a file as records.

A line is a value, by default without a key; an empty line is an empty value. With --format json a
line is an object as 'kclient consume --format json' prints it: value, key, headers (a list of
[name, value]) and timestamp (milliseconds); only value is required. Values are strings, null or
{"base64": "..."}. Its topic, partition and offset are ignored.

A line that cannot be sent is reported with its number, and the others are sent. The numbers of
records are printed on standard error; the exit status is 1 if one was not acknowledged. Options of
the producer are given by -X, such as -X compression.type=zstd. With -X transactional.id=NAME all
records are sent in one transaction, which is aborted if one of them fails.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import cast

from kclient.cli.common_options import (
    add_connection_options,
    positive_number,
    producer_options,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.records.input_lines import Input, read_file, read_lines
from kclient.cli.records.pace import Pace
from kclient.cli.records.progress_line import ProgressLine
from kclient.cli.records.record_input import ProducedRecord, TextInput
from kclient.cli.records.record_json import parse_json
from kclient.cli.records.record_outcomes import RecordOutcomes
from kclient.cli.records.record_text import separator
from kclient.cli.time_option import TIME_FORMS, accept_leading_minus, milliseconds
from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import ConfigError, InvalidArgumentError
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.producer import Producer
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.record.record import Header

_ABORTED = "nothing was committed: the transaction was aborted since a record failed"
_HIGHEST_RATE = 10_000_000.0
_LARGEST_EXPANSION = 8
"""Upper limit of the size of a line that describes a record to that of the record: an escape
sequence takes up to six characters for a byte."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient produce``."""
    parser.description = __doc__
    parser.add_argument("topic", help="topic to write to")
    _add_input(parser)
    _add_record(parser)
    parser.add_argument(
        "--rate",
        type=positive_number(_HIGHEST_RATE, "records per second"),
        metavar="N",
        help="send N records per second",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="do not print the counts if all records were sent"
    )
    add_connection_options(parser)
    accept_leading_minus(parser)
    add_examples(
        parser,
        "kclient produce orders --key-separator : <<< 'customer-7:two shirts'",
        "kclient produce orders --key customer-7 --header source=shop <<< 'two shirts'",
        "kclient produce orders --key customer-7 --null-value NULL <<< NULL",
        'kclient produce orders --format json <<< \'{"value": "two shirts"}\'',
        "kclient consume orders --until-end --format json | kclient produce copy --format json",
    )
    parser.set_defaults(run=_run, refuse=parser.error)


def _add_input(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--lines", type=Path, metavar="FILE", help="read this file instead of standard input"
    )
    source.add_argument(
        "--file",
        type=Path,
        action="append",
        metavar="FILE",
        help="send this file as one record; may be repeated",
    )
    parser.add_argument(
        "--format",
        default="text",
        choices=("text", "json"),
        help="form of a line (default: %(default)s)",
    )
    parser.add_argument(
        "--delimiter",
        type=separator,
        default=b"\n",
        metavar="TEXT",
        help=r"what ends a line, such as \x00 (default: \n, also \r\n)",
    )
    parser.add_argument(
        "--escaped",
        action="store_true",
        help=r"lines are in the form that 'kclient consume' prints: \t, \n, \xNN, \N for null",
    )
    parser.add_argument(
        "--null-value",
        metavar="TEXT",
        type=str.encode,
        help="send lines with this value as null, which deletes the key of a compacted topic",
    )


def _add_record(parser: argparse.ArgumentParser) -> None:
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--key", metavar="TEXT", type=str.encode, help="key of every record")
    key.add_argument(
        "--key-separator",
        metavar="TEXT",
        type=separator,
        help=r"text between key and value of a line, \t for a tab; a line without it has no key",
    )
    parser.add_argument(
        "--header",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="header of every record; may be repeated",
    )
    parser.add_argument(
        "--partition", type=whole_number(0), help="send every record to this partition"
    )
    parser.add_argument(
        "--timestamp",
        type=milliseconds,
        metavar="TIME",
        help=f"timestamp of every record: {TIME_FORMS} (default: now)",
    )


def _header(text: str) -> Header:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"got {text!r:.80}, expected NAME=VALUE")
    return name, value.encode()


_OF_TEXT = ("key", "key_separator", "header", "timestamp", "escaped", "null_value")
_OF_LINES = ("key_separator", "escaped", "null_value")


def _run(options: argparse.Namespace) -> int:
    if options.format == "json":
        _refuse_given(options, _OF_TEXT, "--format json, whose lines name all of a record")
    if options.file:
        _refuse_given(options, _OF_LINES, "--file, which is one record")
        if options.format == "json":
            options.refuse("argument --file: not allowed with --format json")
    settings = producer_options(options, PRODUCER_CONFIG)
    config = PRODUCER_CONFIG.parse(settings)
    most = config.max_request_size
    is_committed = True
    with _opened(options) as lines:
        source = _source(options, lines, most)
        outcomes = RecordOutcomes(source.name_of)
        created = Producer(settings)
        try:
            # The end of the block waits for the outcome of every record, also after Ctrl-C.
            with created as producer:
                send = partial(producer.send, options.topic, partition=options.partition)
                send_all = partial(_send_all, source, send, outcomes, options)
                if config.transactional_id is None:
                    send_all()
                else:
                    is_committed = _send_in_transaction(producer, send_all, outcomes)
        finally:
            outcomes.report(is_quiet=options.quiet)
    if not is_committed:
        print(_ABORTED, file=sys.stderr)
    return 1 if outcomes.failed else 0


def _refuse_given(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    for name in names:
        given = getattr(options, name)
        if given is not None and given is not False and given != []:
            options.refuse(f"argument --{name.replace('_', '-')}: not allowed with {why}")


@dataclass(frozen=True, slots=True)
class _Source:
    """What is to be sent.

    Attributes:
        batches: Lines or files as they arrive; None for one that is too long.
        parse: Returns the record of a line, None if there is none.
        most: Maximum size of a line.
        name_of: Name of a line or file in errors, by its number from 1.
    """

    batches: Iterable[Sequence[bytes | None]]
    parse: Callable[[bytes], ProducedRecord | None]
    most: int
    name_of: Callable[[int], str]


def _source(options: argparse.Namespace, lines: Input, most: int) -> _Source:
    """Return what is to be sent, files or lines; `most` is the maximum size of a record.

    Raises:
        OSError: A file cannot be read.
    """
    text = TextInput(
        key=options.key,
        key_separator=options.key_separator,
        is_escaped=options.escaped,
        null_value=options.null_value,
        headers=options.header,
        timestamp_ms=options.timestamp,
    )
    files: list[Path] | None = options.file
    if files:
        for path in files:
            path.open("rb").close()  # nothing is sent if one is missing
        contents = ([read_file(path, most)] for path in files)
        return _Source(contents, text.whole, most, lambda number: f"file {files[number - 1]}")
    is_json = options.format == "json"
    if is_json or options.escaped:
        most *= _LARGEST_EXPANSION
    batches = read_lines(lines, options.delimiter, most)
    return _Source(batches, parse_json if is_json else text.parse, most, "line {}".format)


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[Input]:
    """Open the file of lines, or standard input if there is none.

    Raises:
        OSError: It cannot be opened.
        ConfigError: Standard input is closed.
    """
    if options.file:
        yield BytesIO()  # not read
    elif options.lines is not None:
        with options.lines.open("rb") as file:
            yield file
    elif sys.stdin is None:
        raise ConfigError("standard input: got a closed one, expected lines; see --lines")
    else:
        yield cast("Input", sys.stdin.buffer)  # typeshed does not know its read1()


def _send_all(
    source: _Source,
    send: Callable[..., DeliveryFuture],
    outcomes: RecordOutcomes,
    options: argparse.Namespace,
) -> None:
    pace = None if options.rate is None else Pace(options.rate)
    progress = ProgressLine(sys.stdin, is_quiet=options.quiet)
    try:
        for lines in source.batches:
            for line in lines:
                if pace is not None:
                    pace.wait()
                    progress.add(1, len(line or b""))
                outcomes.read += 1
                _send_line(source, line, send, outcomes)
            if pace is None:
                progress.add(len(lines), sum(map(len, filter(None, lines))))
            outcomes.settle_many()
    finally:
        progress.clear()


def _send_in_transaction(
    producer: "Producer[bytes, bytes]", send_all: Callable[[], None], outcomes: RecordOutcomes
) -> bool:
    """Send everything in one transaction; return False if it was aborted for a failed record."""
    producer.init_transactions()
    producer.begin_transaction()
    try:
        send_all()
        producer.flush()
        outcomes.settle()
    except BaseException:
        producer.abort_transaction()
        raise
    if outcomes.failed:
        producer.abort_transaction()
        return False
    producer.commit_transaction()
    return True


def _send_line(
    source: _Source,
    line: bytes | None,
    send: Callable[..., DeliveryFuture],
    outcomes: RecordOutcomes,
) -> None:
    try:
        if line is None:
            raise RecordTooLargeError(
                f"got more than {source.most} bytes, expected less; max.request.size limits it"
            )
        record = source.parse(line)
    except (InvalidArgumentError, RecordTooLargeError) as error:
        outcomes.fail(outcomes.read, error)
        return
    if record is None:
        outcomes.empty += 1
        return
    key, value, headers, timestamp_ms = record
    try:
        future = send(value, key, headers=headers, timestamp_ms=timestamp_ms)
    except RecordTooLargeError as error:  # others, such as a missing topic, are of every record
        outcomes.fail(outcomes.read, error)
    else:
        outcomes.pending.append((outcomes.read, future))
