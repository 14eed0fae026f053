"""``kclient transactions``: shows and ends transactions, also those that hang."""

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import ProducerState
from kclient.admin.hanging_transaction_calls import DEFAULT_MAX_TIMEOUT_MS
from kclient.admin.transaction_types import TransactionDescription, TransactionState
from kclient.cli.common_options import (
    add_connection_options,
    client_options,
    whole_number,
)
from kclient.cli.examples import add_examples
from kclient.cli.output import add_json_option, number, show
from kclient.common.broker_errors import TransactionalIdNotFoundError
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition

_MINUTE_MS = 60_000
_long = whole_number(0, 2**63 - 1)
_STATES = tuple(state.value for state in TransactionState if state is not TransactionState.UNKNOWN)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient transactions``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_list(actions.add_parser("list", help="list transactional ids with their states"))
    describing = actions.add_parser("describe", help="show state, start and partitions")
    describing.add_argument("transactional_id", nargs="+")
    add_examples(describing, "kclient transactions describe order-writer")
    describing.set_defaults(run=_describe)
    producers = actions.add_parser("describe-producers", help="show producers of a partition")
    _add_partition(producers)
    producers.add_argument(
        "--broker-id", type=whole_number(0), help="replica to ask (default: the leader)"
    )
    add_examples(producers, "kclient transactions describe-producers --topic orders --partition 0")
    producers.set_defaults(run=_describe_producers)
    _add_find(actions.add_parser("find-hanging", help="find transactions that nothing will end"))
    _add_abort(actions.add_parser("abort", help="abort a hanging transaction in a partition"))
    terminating = actions.add_parser(
        "force-terminate", help="abort the transaction of a transactional id, fence its producers"
    )
    terminating.add_argument("transactional_id")
    add_examples(terminating, "kclient transactions force-terminate order-writer")
    terminating.set_defaults(run=_force_terminate)
    for action in actions.choices.values():
        add_json_option(action)
        add_connection_options(action)


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        action="append",
        choices=_STATES,
        help="list transactions in this state only; may be repeated",
    )
    parser.add_argument(
        "--producer-id",
        action="append",
        type=_long,
        help="list the transactions of this producer id only; may be repeated",
    )
    parser.add_argument(
        "--duration-filter",
        type=_long,
        metavar="MS",
        help="list transactions that have been open for longer only, in milliseconds",
    )
    parser.add_argument(
        "--transactional-id-pattern",
        metavar="REGEX",
        help="list transactional ids that match as a whole only",
    )
    add_examples(
        parser,
        "kclient transactions list",
        "kclient transactions list --state Ongoing --duration-filter 60000 --json",
    )
    parser.set_defaults(run=_list)


def _add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, help="topic of the partition")
    parser.add_argument(
        "--partition", type=whole_number(0), required=True, help="number of the partition"
    )


def _add_find(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topic", action="append", help="search this topic only; may be repeated (default: all)"
    )
    parser.add_argument(
        "--broker-id",
        action="append",
        type=whole_number(0),
        help="search partitions with a replica on this broker only; may be repeated",
    )
    parser.add_argument(
        "--max-transaction-timeout",
        type=whole_number(0),
        default=DEFAULT_MAX_TIMEOUT_MS // _MINUTE_MS,
        metavar="MINUTES",
        help="the brokers' transaction.max.timeout.ms, in minutes (default: %(default)s)",
    )
    add_examples(
        parser,
        "kclient transactions find-hanging",
        "kclient transactions find-hanging --topic orders --json",
    )
    parser.set_defaults(run=_find_hanging)


def _add_abort(parser: argparse.ArgumentParser) -> None:
    _add_partition(parser)
    parser.add_argument("--start-offset", type=_long, help="first offset of the transaction")
    parser.add_argument("--producer-id", type=_long, help="producer of the transaction")
    parser.add_argument("--producer-epoch", type=whole_number(0), help="epoch of the producer")
    parser.add_argument(
        "--coordinator-epoch", type=whole_number(0), help="coordinator epoch (default: 0)"
    )
    add_examples(parser, "kclient transactions abort --topic orders --partition 0 --start-offset 5")
    parser.set_defaults(run=_abort)


def _list(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        found = admin.list_transactions(
            states=options.state,
            producer_ids=options.producer_id,
            duration_ms=options.duration_filter,
            transactional_id_pattern=options.transactional_id_pattern,
        )
    for each in sorted(found):
        text = f"{each.transactional_id}  state {each.state}  producer {each.producer_id}"
        show(options, text, each)
    return 0


def _describe(options: argparse.Namespace) -> int:
    missing = 0
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        for name in dict.fromkeys(options.transactional_id):
            try:
                found = admin.describe_transactions(name)[name]
            except TransactionalIdNotFoundError as error:
                print(f"kclient transactions: {error}", file=sys.stderr)
                missing += 1
            else:
                _show_description(options, found)
    return 1 if missing else 0


def _show_description(options: argparse.Namespace, found: TransactionDescription) -> None:
    partitions = sorted(found.topic_partitions)
    head = (
        f"transactional id {found.transactional_id}  state {found.state}"
        f"  producer {found.producer_id}  epoch {found.producer_epoch}"
        f"  timeout {found.transaction_timeout_ms} ms"
        f"  started {_time(found.transaction_start_time_ms)}  coordinator {found.coordinator}"
    )
    show(options, "\n  ".join([head, *map(str, partitions)]), found)


def _describe_producers(options: argparse.Namespace) -> int:
    partition = TopicPartition(options.topic, options.partition)
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        states = admin.describe_producers(partition, broker_id=options.broker_id)[partition]
    _show_producers(options, ((partition, state) for state in states))
    return 0


def _find_hanging(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        found = admin.find_hanging_transactions(
            broker_ids=options.broker_id,
            topics=options.topic,
            max_transaction_timeout_ms=options.max_transaction_timeout * _MINUTE_MS,
        )
    _show_producers(options, found)
    return 0


def _show_producers(
    options: argparse.Namespace, producers: Iterable[tuple[TopicPartition, ProducerState]]
) -> None:
    for partition, state in producers:
        text = (
            f"{partition}  producer {state.producer_id}  epoch {state.producer_epoch}"
            f"  coordinator epoch {number(state.coordinator_epoch)}"
            f"  start offset {number(state.current_transaction_start_offset)}"
            f"  last sequence {state.last_sequence}  last batch {_time(state.last_timestamp)}"
        )
        show(options, text, partition._asdict() | state._asdict())


def _abort(options: argparse.Namespace) -> int:
    partition = TopicPartition(options.topic, options.partition)
    by_offset = options.start_offset is not None
    by_producer = options.producer_id is not None and options.producer_epoch is not None
    given = (options.producer_id, options.producer_epoch, options.coordinator_epoch)
    if by_offset == by_producer or (by_offset and given != (None, None, None)):
        raise ConfigError("abort: expected --start-offset, or --producer-id with --producer-epoch")
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        producer = _producer_at(admin, partition, options.start_offset) if by_offset else given
        if producer is None:
            what = f"{partition}: no open transaction starts at offset {options.start_offset}"
            print(f"kclient transactions: {what}", file=sys.stderr)
            return 1
        admin.abort_transaction(partition, *producer)
    text = f"aborted the transaction of producer {producer[0]} in {partition}"
    fields = {"producer_id": producer[0], "producer_epoch": producer[1]}
    show(options, text, partition._asdict() | fields)
    return 0


def _producer_at(
    admin: AdminClient, partition: TopicPartition, start_offset: int
) -> tuple[int, int, int | None] | None:
    """Return id, epoch and coordinator epoch of the producer whose transaction starts there."""
    for state in admin.describe_producers(partition)[partition]:
        if state.current_transaction_start_offset == start_offset:
            return state.producer_id, state.producer_epoch, state.coordinator_epoch
    return None


def _force_terminate(options: argparse.Namespace) -> int:
    name: str = options.transactional_id
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        admin.force_terminate_transaction(name)
    show(options, f"terminated the transaction of {name}", {"transactional_id": name})
    return 0


def _time(time_ms: int | None) -> str:
    """Return a time in ms since 1970 as text in UTC, or as a number if no calendar has it."""
    if time_ms is None or time_ms < 0:
        return "-"
    try:
        time = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(time_ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
