"""Formatting of log directories (Kafka: Formatter, the library of the storage tool)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kclient.broker.log.log_file_utils import METADATA_PARTITION
from kclient.broker.metadata.bootstrap_metadata import bootstrap_records, write_bootstrap
from kclient.broker.metadata.features import KRAFT_VERSION, check_levels, default_levels
from kclient.broker.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesEnsemble,
    write_meta_properties,
)
from kclient.broker.metadata.metadata_version import (
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MINIMUM_VERSION,
    MetadataVersion,
)
from kclient.broker.raft.snapshots import write_bootstrap_snapshot
from kclient.broker.raft.voter_set import (
    Endpoint,
    ReplicaKey,
    SupportedVersions,
    VoterNode,
    VoterSet,
)
from kclient.common.errors import ConfigError, InvalidArgumentError
from kclient.common.runtime import Runtime
from kclient.common.uuids import text_to_uuid
from kclient.protocol.messages.metadata_records import UserScramCredentialRecord

METADATA_DIRECTORY = str(METADATA_PARTITION)
_VOTER_FLAGS = "--standalone, --initial-controllers or --no-initial-controllers"


class DynamicVoter(NamedTuple):
    """Voter of a dynamic quorum at its start.

    Attributes:
        node_id: Id of the controller.
        directory_id: Id of its metadata directory, 16 bytes.
        host: Host of its controller listener.
        port: Port of its controller listener.
    """

    node_id: int
    directory_id: bytes
    host: str
    port: int


def parse_initial_controllers(text: str) -> tuple[DynamicVoter, ...]:
    """Parse ``id@host:port:directory`` separated by commas; an IPv6 address is in brackets.

    Raises:
        ConfigError: The text has another form, or names a node or directory twice.
    """
    voters = tuple(_parse_voter(entry.strip()) for entry in text.split(",") if entry.strip())
    for values in ([each.node_id for each in voters], [each.directory_id for each in voters]):
        if len(set(values)) != len(values):
            raise ConfigError(f"initial controllers: {text!r:.200} repeats a node or directory id")
    if not voters:
        raise ConfigError("initial controllers: got none, expected id@host:port:directory")
    return voters


def _parse_voter(entry: str) -> DynamicVoter:
    name, _, rest = entry.partition("@")
    address, _, directory = rest.rpartition(":")
    host, _, port = address.rpartition(":")
    try:
        if not (name.isdecimal() and host and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise ValueError
        return DynamicVoter(int(name), text_to_uuid(directory), host.strip("[]"), int(port))
    except (ValueError, InvalidArgumentError):
        raise ConfigError(
            f"initial controllers: got {entry!r:.120}, expected id@host:port:directory"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """Options of the storage tool.

    Attributes:
        cluster_id: Cluster id.
        node_id: Id of the node.
        directories: Log directories.
        metadata_directory: The one of them with the metadata log; None for the first.
        release_version: Level of metadata.version, None for the newest.
        features: Levels of features instead of the defaults of the release.
        controller_listener: Name of the voters' listener.
        initial_controllers: First voters of a dynamic quorum, None if they are in the
            configuration or unknown to this node.
        is_dynamic_quorum: Whether the voters can change, even if this node does not know them.
        ignore_formatted: Whether to leave formatted directories as they are.
        credentials: SCRAM credentials.
    """

    cluster_id: str
    node_id: int
    directories: Sequence[Path]
    metadata_directory: Path | None = None
    release_version: MetadataVersion | None = None
    features: Mapping[str, int] = field(default_factory=dict)
    controller_listener: str = "CONTROLLER"
    initial_controllers: Sequence[DynamicVoter] | None = None
    is_dynamic_quorum: bool = False
    ignore_formatted: bool = False
    credentials: Sequence[UserScramCredentialRecord] = ()


class FormatResult(NamedTuple):
    """Outcome of formatting.

    Attributes:
        formatted: Directories that were formatted now; none if all were formatted before.
        levels: Levels of features, kraft.version included.
    """

    formatted: Sequence[Path]
    levels: Mapping[str, int]


def format_storage(runtime: Runtime, options: FormatOptions) -> FormatResult:
    """Format log directories. Nothing is written if any of them is refused.

    Raises:
        ConfigError: A directory is formatted already, or belongs to another cluster or node, or a
            level of a feature does not exist, or has no SCRAM credentials.
        OSError: A directory could not be written.
    """
    levels = _levels(options)
    _check(options)
    _check_credentials(options, levels)
    directories = sorted(set(options.directories))
    ensemble = MetaPropertiesEnsemble.load(runtime.files, directories)
    ensemble.verify(options.cluster_id, options.node_id)
    if ensemble.formatted and not options.ignore_formatted:
        first = next(iter(ensemble.formatted))
        raise ConfigError(
            f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    known = ensemble
    for directory in ensemble.empty:
        properties = _properties(runtime, options, known, directory)
        _format(runtime, options, directory, properties, levels)
        known = known._replace(formatted={**known.formatted, directory: properties})
    return FormatResult(ensemble.empty, levels)


def _check(options: FormatOptions) -> None:
    if not options.directories:
        raise ConfigError("log.dirs: got none, expected at least one directory to format")
    if not options.cluster_id:
        raise ConfigError("cluster.id: got none")
    if options.node_id < 0:
        raise ConfigError(f"node.id: got {options.node_id}, expected >= 0")
    if _metadata_directory(options) not in options.directories:
        raise ConfigError(
            f"metadata.log.dir: got {options.metadata_directory}, expected one of the directories"
        )


def _check_credentials(options: FormatOptions, levels: Mapping[str, int]) -> None:
    version = MetadataVersion.of_level(levels[METADATA_VERSION])
    if options.credentials and not version.has_scram:
        raise ConfigError(
            f"{METADATA_VERSION}: got {version.version}, but SCRAM credentials need 3.5-IV2 or "
            "later"
        )


def _metadata_directory(options: FormatOptions) -> Path:
    return options.metadata_directory or options.directories[0]


def _levels(options: FormatOptions) -> dict[str, int]:
    """Return the levels of all features, kraft.version included."""
    version = _release_version(options)
    dynamic = options.is_dynamic_quorum or options.initial_controllers is not None
    levels = default_levels(version) | {KRAFT_VERSION: int(dynamic)} | dict(options.features)
    if bool(levels[KRAFT_VERSION]) is not dynamic:
        condition = f"if one of {_VOTER_FLAGS} is used" if dynamic else f"without {_VOTER_FLAGS}"
        raise ConfigError(f"Cannot set {KRAFT_VERSION} to {levels[KRAFT_VERSION]} {condition}")
    check_levels(levels)
    return levels


def _release_version(options: FormatOptions) -> MetadataVersion:
    level = options.features.get(METADATA_VERSION)
    if level is None:
        version = options.release_version or LATEST_PRODUCTION
    elif options.release_version is not None:
        raise ConfigError(f"Use --release-version or --feature {METADATA_VERSION}, but not both")
    else:
        version = MetadataVersion.of_level(level)
    if not MINIMUM_VERSION <= version <= LATEST_PRODUCTION:
        raise ConfigError(
            f"{METADATA_VERSION}: got {version.version}, expected {MINIMUM_VERSION.version} to "
            f"{LATEST_PRODUCTION.version}"
        )
    return version


def _properties(
    runtime: Runtime, options: FormatOptions, known: MetaPropertiesEnsemble, directory: Path
) -> MetaProperties:
    directory_id = known.new_directory_id(runtime.random)
    if directory == _metadata_directory(options):
        for voter in options.initial_controllers or ():
            if voter.node_id == options.node_id:
                directory_id = voter.directory_id
    return MetaProperties(options.cluster_id, options.node_id, directory_id)


def _format(
    runtime: Runtime,
    options: FormatOptions,
    directory: Path,
    properties: MetaProperties,
    levels: Mapping[str, int],
) -> None:
    """Format a directory; meta.properties is written last, so that a crash leaves it empty."""
    files, now_ms = runtime.files, runtime.clock.wall_ms()
    files.make_directory(directory)
    records = bootstrap_records(levels, options.credentials)
    write_bootstrap(files, directory, records, now_ms)
    if directory == _metadata_directory(options) and options.initial_controllers is not None:
        metadata = directory / METADATA_DIRECTORY
        files.make_directory(metadata)
        listener = options.controller_listener
        voters = VoterSet.of(
            VoterNode(
                ReplicaKey(voter.node_id, voter.directory_id),
                {listener: Endpoint(voter.host, voter.port)},
                SupportedVersions(),
            )
            for voter in options.initial_controllers
        )
        write_bootstrap_snapshot(files, metadata, voters, now_ms)
    write_meta_properties(files, directory, properties)
