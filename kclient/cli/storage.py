"""``kclient storage``: formats the directory of a broker (Kafka: kafka-storage)."""

import argparse
import re
from pathlib import Path

from kclient.broker.metadata.metadata_version import (
    LATEST_SERVED,
    METADATA_VERSION,
    MINIMUM_VERSION,
    MetadataVersion,
)
from kclient.broker.metadata.scram_parser import parse_scram_credentials
from kclient.broker.metadata.storage_formatter import FormatOptions, format_storage
from kclient.broker.server.broker_config import BrokerConfig
from kclient.broker.server.server_properties import load_server_properties
from kclient.cli.common_options import key_values
from kclient.cli.examples import add_examples
from kclient.common.errors import ConfigError, IllegalStateError, InvalidArgumentError
from kclient.common.uuids import random_uuid, uuid_to_text
from kclient.network.system_runtime import system_runtime

_CLUSTER_ID = re.compile(r"[!-~]{1,255}")
"""Any text without white space: Kafka's own ids are uuids, but older clusters have others."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient storage``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    formatting = actions.add_parser("format", help="format the directory of a server.properties")
    formatting.add_argument(
        "--cluster-id", "-t", required=True, metavar="ID", help="id of the cluster"
    )
    formatting.add_argument(
        "--config", "-c", required=True, type=Path, metavar="FILE", help="server.properties"
    )
    formatting.add_argument(
        "--release-version",
        "-r",
        metavar="V",
        help=f"release of the cluster's features, from 3.3-IV3 (default: {LATEST_SERVED.version})",
    )
    formatting.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="level of a feature instead of that of the release; may be repeated",
    )
    formatting.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="MECHANISM=[...]",
        help="SCRAM credential of a user, such as 'SCRAM-SHA-512=[name=alice,password=secret]', or "
        "with iterations, salt and saltedpassword in base64; other users of the machine can see "
        "it; may be repeated",
    )
    formatting.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="leave a directory that is formatted as it is",
    )
    add_examples(
        formatting,
        'kclient storage format --cluster-id "$(kclient storage random-uuid)" '
        "--config server.properties",
        "kclient storage format --cluster-id 8Cq1NDUESbG7gQmKzlXqPA --config secured.properties "
        "--add-scram 'SCRAM-SHA-512=[name=node,password=node-secret]'",
    )
    formatting.set_defaults(run=_format)
    drawing = actions.add_parser("random-uuid", help="print a random id for a cluster")
    add_examples(drawing, "kclient storage random-uuid")
    drawing.set_defaults(run=_random_uuid)


def _format(options: argparse.Namespace) -> int:
    config = load_server_properties(options.config, {})
    wanted = _format_options(options, config)
    try:
        result = format_storage(system_runtime(), wanted)
    except ConfigError as error:  # the directory, or a level that does not exist
        raise IllegalStateError(str(error)) from error
    if not result.formatted:
        print("All of the log directories are already formatted.")
    version = MetadataVersion.of_level(result.levels[METADATA_VERSION]).version
    for directory in result.formatted:
        print(f"Formatting metadata directory {directory} with {METADATA_VERSION} {version}.")
    return 0


def _format_options(options: argparse.Namespace, config: BrokerConfig) -> FormatOptions:
    if not _CLUSTER_ID.fullmatch(options.cluster_id):
        raise ConfigError(
            f"--cluster-id: got {options.cluster_id!r:.80}, expected 1 to 255 characters without "
            "white space; kclient storage random-uuid prints one"
        )
    if config.cluster_id not in (None, options.cluster_id):
        raise ConfigError(
            f"--cluster-id: got {options.cluster_id!r:.80}, but {options.config} has cluster.id "
            f"{config.cluster_id!r:.80}"
        )
    features = _levels(options.feature)
    release = _release(options.release_version)
    if release is None and METADATA_VERSION not in features:
        release = LATEST_SERVED
    return FormatOptions(
        cluster_id=options.cluster_id,
        node_id=config.node_id,
        directories=(config.data_dir,),
        release_version=release,
        features=features,
        ignore_formatted=options.ignore_formatted,
        credentials=parse_scram_credentials(options.add_scram),
    )


def _release(given: str | None) -> MetadataVersion | None:
    if given is None:
        return None
    try:
        release = MetadataVersion.parse(given)
    except InvalidArgumentError:
        release = None
    if release is None or not MINIMUM_VERSION <= release <= LATEST_SERVED:
        raise ConfigError(
            f"--release-version: got {given!r:.80}, expected a release from "
            f"{MINIMUM_VERSION.version} to {LATEST_SERVED.version}; a broker supports no other"
        )
    return release


def _levels(pairs: list[str]) -> dict[str, int]:
    levels = {}
    for name, level in key_values("--feature", pairs).items():
        if not str(level).isdecimal():
            raise ConfigError(f"--feature: got {f'{name}={level}'!r:.80}, expected NAME=LEVEL")
        levels[name] = int(str(level))
    level = levels.get(METADATA_VERSION, LATEST_SERVED)
    if not MINIMUM_VERSION <= level <= LATEST_SERVED:
        raise ConfigError(
            f"--feature: got {METADATA_VERSION}={level}, expected {MINIMUM_VERSION:d} "
            f"({MINIMUM_VERSION.version}) to {LATEST_SERVED:d} ({LATEST_SERVED.version}); a broker "
            "supports no other"
        )
    return levels


def _random_uuid(_options: argparse.Namespace) -> int:
    print(uuid_to_text(random_uuid(system_runtime().random)))
    return 0
