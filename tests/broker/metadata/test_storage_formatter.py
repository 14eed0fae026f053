"""Formatting of log directories."""

from dataclasses import replace
from pathlib import Path

import pytest

from kclient.broker.metadata.bootstrap_metadata import read_bootstrap
from kclient.broker.metadata.meta_properties import MetaProperties, read_meta_properties
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.broker.metadata.storage_formatter import (
    METADATA_DIRECTORY,
    DynamicVoter,
    FormatOptions,
    format_storage,
    parse_initial_controllers,
)
from kclient.broker.raft.raft_types import BOOTSTRAP_SNAPSHOT
from kclient.broker.raft.snapshots import snapshot_name
from kclient.common.errors import ConfigError
from kclient.common.runtime import Runtime
from kclient.common.uuids import uuid_to_text
from kclient.network.system_runtime import system_runtime
from kclient.protocol.messages.metadata_records import FeatureLevelRecord
from kclient.protocol.messages.quorum_records import KRaftVersionRecord, VotersRecord
from kclient.record import ControlRecordType, read_batches

ID, OTHER_ID = b"\5" * 16, b"\6" * 16
ELR = "eligible.leader.replicas.version"


@pytest.fixture
def runtime() -> Runtime:
    return system_runtime()


@pytest.fixture
def options(tmp_path: Path) -> FormatOptions:
    return FormatOptions(
        cluster_id="cluster",
        node_id=3,
        directories=(tmp_path / "b", tmp_path / "a"),
        release_version=MetadataVersion.IBP_4_0_IV3,
    )


def properties(runtime: Runtime, options: FormatOptions) -> list[MetaProperties | None]:
    return [read_meta_properties(runtime.files, each) for each in options.directories]


def test_every_directory_has_an_id_and_the_first_records(
    runtime: Runtime, options: FormatOptions
) -> None:
    result = format_storage(runtime, options)
    assert set(result.formatted) == set(options.directories)
    assert result.levels == {"metadata.version": 25, "transaction.version": 2, "kraft.version": 0}
    first, second = properties(runtime, options)
    assert first is not None
    assert second is not None
    assert (first.cluster_id, first.node_id) == ("cluster", 3)
    assert first[:2] == second[:2]
    assert first.directory_id != second.directory_id
    for directory in options.directories:
        assert read_bootstrap(runtime.files, directory) == [
            FeatureLevelRecord(name="metadata.version", feature_level=25),
            FeatureLevelRecord(name="transaction.version", feature_level=2),
        ]
        assert sorted(runtime.files.list_directory(directory)) == [
            "bootstrap.checkpoint",
            "meta.properties",
        ]


def test_formatted_directories_are_refused_or_ignored(
    runtime: Runtime, options: FormatOptions
) -> None:
    first, second = options.directories
    format_storage(runtime, replace(options, directories=(second,)))
    before = properties(runtime, options)
    message = f"Log directory {second} is already formatted. Use --ignore-formatted"
    with pytest.raises(ConfigError, match=message):
        format_storage(runtime, options)
    assert not runtime.files.exists(first)
    ignoring = replace(options, ignore_formatted=True)
    assert format_storage(runtime, ignoring).formatted == (first,)
    assert properties(runtime, options)[1] == before[1]
    assert format_storage(runtime, ignoring).formatted == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"cluster_id": "other"}, "cluster.id: got 'other'"), ({"node_id": 4}, "node.id: got 4")],
)
def test_directories_of_others_are_refused(
    runtime: Runtime, options: FormatOptions, change: dict[str, object], problem: str
) -> None:
    first, second = options.directories
    format_storage(runtime, replace(options, directories=(second,)))
    other = FormatOptions(
        cluster_id=str(change.get("cluster_id", "cluster")),
        node_id=4 if "node_id" in change else 3,
        directories=options.directories,
        ignore_formatted=True,
    )
    with pytest.raises(ConfigError, match=f"{problem}, but {second}"):
        format_storage(runtime, other)
    assert not runtime.files.exists(first)


def test_levels_of_features(runtime: Runtime, options: FormatOptions) -> None:
    chosen = replace(options, features={ELR: 1, "group.version": 0})
    assert format_storage(runtime, chosen).levels[ELR] == 1
    assert read_bootstrap(runtime.files, options.directories[0]) == [
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        FeatureLevelRecord(name=ELR, feature_level=1),
        FeatureLevelRecord(name="transaction.version", feature_level=2),
    ]


def test_newest_release_is_the_default(runtime: Runtime, options: FormatOptions) -> None:
    levels = format_storage(runtime, replace(options, release_version=None)).levels
    assert levels == {"metadata.version": 30, "transaction.version": 2, ELR: 1, "kraft.version": 0}


def test_voters_of_a_dynamic_quorum(runtime: Runtime, options: FormatOptions) -> None:
    voters = (DynamicVoter(4, OTHER_ID, "h", 9094), DynamicVoter(3, ID, "::1", 9093))
    format_storage(runtime, replace(options, initial_controllers=voters))
    metadata, other = options.directories
    found = properties(runtime, options)[0]
    assert found is not None
    assert found.directory_id == ID
    assert not runtime.files.exists(other / METADATA_DIRECTORY)
    data = runtime.files.read_bytes(
        metadata / METADATA_DIRECTORY / snapshot_name(BOOTSTRAP_SNAPSHOT)
    )
    first, last = read_batches(data)
    assert first.is_control
    assert last.is_control
    kinds = [ControlRecordType.parse(record.key).name for record in first.records()]
    assert kinds == ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS"]
    _, version, members = (record.value or b"" for record in first.records())
    assert KRaftVersionRecord.decode(version, 0).k_raft_version == 1
    record = VotersRecord.decode(members, 0)
    assert [(each.voter_id, each.voter_directory_id) for each in record.voters] == [
        (3, ID),
        (4, OTHER_ID),
    ]
    (endpoint,) = record.voters[0].endpoints
    assert (endpoint.name, endpoint.host, endpoint.port) == ("CONTROLLER", "::1", 9093)


def test_node_that_joins_a_dynamic_quorum_knows_no_voters(
    runtime: Runtime, options: FormatOptions
) -> None:
    levels = format_storage(runtime, replace(options, is_dynamic_quorum=True)).levels
    assert levels["kraft.version"] == 1
    assert not runtime.files.exists(options.directories[0] / METADATA_DIRECTORY)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"directories": ()}, "log.dirs: got none"),
        ({"cluster_id": ""}, "cluster.id: got none"),
        ({"node_id": -1}, "node.id: got -1"),
        ({"metadata_directory": Path("/elsewhere")}, "metadata.log.dir: got /elsewhere"),
        ({"features": {"metadata.version": 25}}, "but not both"),
        ({"features": {"group.version": 7}}, "group.version: got level 7"),
        ({"features": {"unknown": 1}}, "unknown feature"),
        ({"features": {"kraft.version": 1}}, "Cannot set kraft.version to 1 without"),
        (
            {"features": {"kraft.version": 0}, "is_dynamic_quorum": True},
            "Cannot set kraft.version to 0 if",
        ),
        (
            {"release_version": MetadataVersion.IBP_3_8_IV0, "is_dynamic_quorum": True},
            "depends on metadata.version=21",
        ),
        ({"release_version": MetadataVersion.IBP_4_4_IV0}, "got 4.4-IV0, expected 3.3-IV3 to"),
    ],
)
def test_wrong_options_are_refused(
    runtime: Runtime, options: FormatOptions, wrong: dict[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        format_storage(runtime, replace(options, **wrong))  # type: ignore[arg-type]
    assert problem in str(caught.value)
    assert not any(runtime.files.exists(each) for each in options.directories)


def test_initial_controllers() -> None:
    text = f"1@host:9093:{uuid_to_text(ID)}, 2@[::1]:9094:{uuid_to_text(OTHER_ID)}"
    assert parse_initial_controllers(text) == (
        DynamicVoter(1, ID, "host", 9093),
        DynamicVoter(2, OTHER_ID, "::1", 9094),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1@host:9093",
        "1@host:9093:short",
        f"x@host:9093:{uuid_to_text(ID)}",
        f"1@host:0:{uuid_to_text(ID)}",
        f"1@:9093:{uuid_to_text(ID)}",
        f"1@h:1:{uuid_to_text(ID)},1@h:2:{uuid_to_text(OTHER_ID)}",
        f"1@h:1:{uuid_to_text(ID)},2@h:2:{uuid_to_text(ID)}",
    ],
)
def test_malformed_initial_controllers_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="initial controllers"):
        parse_initial_controllers(text)
