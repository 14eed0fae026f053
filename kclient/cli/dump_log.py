"""``kclient dump-log``: print the contents of log files, and check them."""

import argparse
import json
import sys
from pathlib import Path

from kclient.broker.log.dump_log import DumpOptions, LogDump, RecordDecoder, decode_as_text
from kclient.cli.examples import add_examples
from kclient.common.errors import KafkaError
from kclient.network.system_runtime import system_runtime
from kclient.protocol.fields import Struct
from kclient.protocol.message import read_version
from kclient.protocol.messages.group_records import (
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_key,
)
from kclient.protocol.messages.metadata_records import MetadataRecord
from kclient.protocol.messages.transaction_records import (
    TransactionLogKey,
    TransactionLogValue,
    decode_transaction_key,
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient dump-log``; options are named as Kafka's tool's."""
    parser.description = __doc__
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="a file of a partition's directory: .log, .index, .timeindex, .txnindex, .snapshot",
    )
    parser.add_argument("--deep-iteration", action="store_true", help="show every record")
    parser.add_argument("--print-data-log", action="store_true", help="show keys and values")
    parser.add_argument(
        "--index-sanity-check", action="store_true", help="only check that indexes are intact"
    )
    parser.add_argument(
        "--verify-index-only", action="store_true", help="only check indexes against their log"
    )
    decoders = parser.add_mutually_exclusive_group()
    decoders.add_argument(
        "--offsets-decoder", action="store_true", help="the log is one of __consumer_offsets"
    )
    decoders.add_argument(
        "--cluster-metadata-decoder", action="store_true", help="the log is __cluster_metadata"
    )
    decoders.add_argument(
        "--transaction-log-decoder",
        action="store_true",
        help="the log is one of __transaction_state",
    )
    add_examples(
        parser,
        "kclient dump-log data/orders-0/00000000000000000000.log",
        "kclient dump-log --print-data-log data/orders-0/00000000000000000000.log",
        "kclient dump-log --offsets-decoder data/__consumer_offsets-*/00000000000000000000.log",
        "kclient dump-log --index-sanity-check data/orders-*/*.index",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print each file; return 1 if a file is damaged."""
    files = system_runtime().files
    decoder = _decoder(options)
    wanted = DumpOptions(
        deep=options.deep_iteration,
        print_data=options.print_data_log or decoder is not decode_as_text,
        index_sanity_check=options.index_sanity_check,
        verify_index_only=options.verify_index_only,
        decoder=decoder,
    )
    problems = []
    for path in options.files:
        dump = LogDump(files, path, wanted)
        for line in dump.lines():
            print(line)
        problems += [f"{path}: {problem}" for problem in dump.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _decoder(options: argparse.Namespace) -> RecordDecoder:
    if options.offsets_decoder:
        return decode_offsets
    if options.transaction_log_decoder:
        return decode_transactions
    return decode_metadata if options.cluster_metadata_decoder else decode_as_text


def decode_metadata(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Return a record of the metadata log as text."""
    if value is None:
        return decode_as_text(key, value)
    try:
        return decode_as_text(key, None)[0], repr(MetadataRecord.decode_framed(value))
    except KafkaError as error:
        return None, f"not a metadata record: {error}"


def decode_offsets(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Return a record of ``__consumer_offsets`` as text."""
    if key is None:
        return None, None
    try:
        shown = decode_group_key(key)
        if value is None:
            return repr(shown), None
        kind = OffsetCommitValue if isinstance(shown, OffsetCommitKey) else GroupMetadataValue
        return repr(shown), repr(kind.decode_versioned(value))
    except KafkaError as error:
        return None, f"not a record of the offsets topic: {error}"


def decode_transactions(key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Return a record of ``__transaction_state`` as JSON (Kafka: TransactionLogMessageParser)."""
    try:
        shown = None if key is None else decode_transaction_key(key)
        if shown is None:
            return None, f"not a record of the transaction log: its key is {key!r:.80}"
        name = _json({"type": str(TransactionLogKey.record_type), "data": _json_fields(shown, 0)})
        if value is None:
            return name, "<DELETE>"
        version = read_version(value, TransactionLogValue.__name__)
        fields = _json_fields(TransactionLogValue.decode_versioned(value), version)
        return name, _json({"version": str(version), "data": fields})
    except KafkaError as error:
        return None, f"not a record of the transaction log: {error}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _json_fields(struct: Struct, version: int) -> dict[str, object]:
    """Return the fields of a struct of strings, integers and arrays (Kafka: its JsonConverter)."""
    shown: dict[str, object] = {}
    for name, field in struct.fields.items():
        value = getattr(struct, name)
        is_absent = field.tag is not None and value == field.default_value()
        if version in field.versions and not is_absent:
            first, *others = name.split("_")
            shown[first + "".join(map(str.capitalize, others))] = _json_value(value, version)
    return shown


def _json_value(value: object, version: int) -> object:
    if isinstance(value, list):
        return [_json_value(each, version) for each in value]
    return _json_fields(value, version) if isinstance(value, Struct) else value
