"""``kclient topics offsets``: offsets of partitions, by position or time (kafka-get-offsets)."""

import argparse

from kclient.admin.admin_client import AdminClient
from kclient.admin.admin_core import ADMIN_CONFIG
from kclient.admin.admin_types import OffsetSpec
from kclient.cli.common_options import client_options
from kclient.cli.examples import add_examples
from kclient.cli.output import show_errors, show_rows, succeeded
from kclient.cli.partition_scope import FORMS, Scope, partitions_of, scope
from kclient.cli.time_option import TIME_FORMS, accept_leading_minus, milliseconds

_POSITIONS = {
    "earliest": OffsetSpec.earliest(),
    "latest": OffsetSpec.latest(),
    "max-timestamp": OffsetSpec.max_timestamp(),
    "earliest-local": OffsetSpec.earliest_local(),
    "latest-tiered": OffsetSpec.latest_tiered(),
}


def add_offsets_action(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient topics offsets``."""
    parser.add_argument(
        "topic",
        nargs="*",
        type=scope,
        metavar="TOPIC[:P,P]",
        help=f"{FORMS} (default: all but internal topics)",
    )
    parser.add_argument(
        "--time",
        type=_spec,
        default=OffsetSpec.latest(),
        metavar="TIME",
        help=f"{', '.join(_POSITIONS)}, or {TIME_FORMS} (default: latest)",
    )
    accept_leading_minus(parser)
    add_examples(
        parser,
        "kclient topics offsets",
        "kclient topics offsets orders",
        "kclient topics offsets orders:0,1 payments --time earliest --json",
        "kclient topics offsets orders --time -2h",
        "kclient topics offsets orders --time 2026-01-31T12:00:00Z",
    )
    parser.set_defaults(run=_run)


def _spec(text: str) -> OffsetSpec:
    return _POSITIONS.get(text) or OffsetSpec.for_timestamp(milliseconds(text))


def _run(options: argparse.Namespace) -> int:
    with AdminClient(client_options(options, ADMIN_CONFIG)) as admin:
        scopes = options.topic or [Scope(each.name, None) for each in admin.list_topics()]
        wanted = dict.fromkeys(partitions_of(admin, scopes), options.time)
        if not wanted:
            return 0
        results = admin.list_offsets(wanted)
    rows = [partition._asdict() | info._asdict() for partition, info in succeeded(results)]
    show_rows(options, ("topic", "partition", "offset", "timestamp"), rows)
    return show_errors("topics", results)
