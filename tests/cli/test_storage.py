"""``kclient storage``: formatted directories, and refusals that change nothing."""

import re
from pathlib import Path

import pytest

from kclient.admin import ScramCredentialInfo
from kclient.broker.metadata.bootstrap_metadata import read_bootstrap
from kclient.broker.metadata.meta_properties import META_PROPERTIES, read_meta_properties
from kclient.cli.main import main
from kclient.common.system_files import SystemFiles
from kclient.common.uuids import text_to_uuid
from kclient.protocol.messages.metadata_records import FeatureLevelRecord
from tests.support.clients.clients import Clients, place, read
from tests.support.processes.broker_command import files_of, started_with, write_properties

Captured = pytest.CaptureFixture[str]
RELEASES = r"expected a release from 3\.3-IV3 to 4\.0-IV3; a broker supports no other"


def storage_format(path: Path, *options: str, cluster_id: str = "c") -> int:
    return main(["storage", "format", "-t", cluster_id, "-c", str(path), *options])


def levels(directory: Path) -> dict[str, int]:
    found = read_bootstrap(SystemFiles(), directory) or ()
    return {each.name: each.feature_level for each in found if isinstance(each, FeatureLevelRecord)}


def test_random_uuid_is_one(capsys: Captured) -> None:
    ids = set()
    for _ in range(2):
        assert main(["storage", "random-uuid"]) == 0
        ids.add(text_to_uuid(capsys.readouterr().out.strip()))
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("options", "version", "expected"),
    [
        ((), "4.0-IV3", {"metadata.version": 25, "transaction.version": 2}),
        (("--release-version", "3.9"), "3.9-IV0", {"metadata.version": 21}),
        (
            ("-f", "metadata.version=24"),
            "4.0-IV2",
            {"metadata.version": 24, "transaction.version": 2},
        ),
        (
            ("--feature", "eligible.leader.replicas.version=1"),
            "4.0-IV3",
            {
                "metadata.version": 25,
                "eligible.leader.replicas.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_format_writes_the_levels_of_the_release(
    tmp_path: Path,
    capsys: Captured,
    options: tuple[str, ...],
    version: str,
    expected: dict[str, int],
) -> None:
    assert storage_format(write_properties(tmp_path), *options) == 0
    data = tmp_path / "data"
    line = f"Formatting metadata directory {data} with metadata.version {version}.\n"
    assert capsys.readouterr().out == line
    found = read_meta_properties(SystemFiles(), data)
    assert found is not None
    assert (found.cluster_id, found.node_id) == ("c", 1)
    assert levels(data) == expected


def test_formatted_directory_is_refused_or_ignored_and_unchanged(
    tmp_path: Path, capsys: Captured
) -> None:
    path = write_properties(tmp_path)
    assert storage_format(path) == 0
    capsys.readouterr()
    before = files_of(tmp_path)
    assert storage_format(path) == 1
    assert re.fullmatch(
        r"kclient storage: Log directory .*data is already formatted\. Use --ignore-formatted .*\n",
        capsys.readouterr().err,
    )
    assert storage_format(path, "--ignore-formatted") == 0
    assert capsys.readouterr().out == "All of the log directories are already formatted.\n"
    assert storage_format(path, "-g", cluster_id="d") == 1
    assert "cluster.id: got 'd', but " in capsys.readouterr().err
    path.write_text(path.read_text().replace("node.id=1", "node.id=2").replace("=1@", "=2@"))
    assert storage_format(path, "-g") == 1
    assert "node.id: got 2, but " in capsys.readouterr().err
    assert {file: data for file, data in files_of(tmp_path).items() if file != path} == {
        file: data for file, data in before.items() if file != path
    }


@pytest.mark.parametrize(
    ("options", "cluster_id", "status", "problem"),
    [
        (("-r", "9.9"), "c", 2, rf"--release-version: got '9\.9', {RELEASES}"),
        (("-r", "4.1"), "c", 2, rf"--release-version: got '4\.1', {RELEASES}"),
        (("-r", "4.3-IV0"), "c", 2, rf"--release-version: got '4\.3-IV0', {RELEASES}"),
        (("-r", "3.2"), "c", 2, rf"--release-version: got '3\.2', {RELEASES}"),
        (
            ("-f", "metadata.version=26"),
            "c",
            2,
            r"--feature: got metadata\.version=26, expected 7 ",
        ),
        (("-f", "metadata.version=6"), "c", 2, r"--feature: got metadata\.version=6, expected 7 "),
        (("-f", "x"), "c", 2, r"--feature: got 'x', expected KEY=VALUE"),
        (("-f", "group.version=a"), "c", 2, r"--feature: got 'group.version=a', expected NAME=L"),
        (("-f", "no.such=1"), "c", 1, r"no\.such: unknown feature, expected one of"),
        (("-f", "group.version=7"), "c", 1, r"group\.version: got level 7, expected 0 to 1"),
        (("-r", "3.9", "-f", "metadata.version=25"), "c", 1, r"Use --release-version or"),
        (
            ("-r", "3.5-IV1", "-S", "SCRAM-SHA-256=[name=a,password=canary]"),
            "c",
            1,
            r"metadata\.version: got 3\.5-IV1, but SCRAM credentials need 3\.5-IV2 or later",
        ),
        (("--add-scram", "canary"), "c", 2, "SCRAM credential: got an argument of another form"),
        ((), "a b", 2, r"--cluster-id: got 'a b', expected 1 to 255 characters without"),
        ((), "", 2, r"--cluster-id: got ''"),
    ],
)
def test_invalid_option_is_refused_in_one_line_without_a_directory(
    tmp_path: Path,
    capsys: Captured,
    options: tuple[str, ...],
    cluster_id: str,
    status: int,
    problem: str,
) -> None:
    assert storage_format(write_properties(tmp_path), *options, cluster_id=cluster_id) == status
    error = capsys.readouterr().err
    assert re.fullmatch(rf"kclient storage: .*{problem}.*\n", error)
    assert "canary" not in error
    assert not (tmp_path / "data").exists()


def test_credentials_of_users_are_kept(tmp_path: Path, capsys: Captured) -> None:
    path = write_properties(tmp_path)
    alice = "SCRAM-SHA-256=[name=alice,password=canary,iterations=8192]"
    bob = "SCRAM-SHA-512=[name=bob,saltedpassword=Y2FuYXJ5,salt=c2FsdA==]"
    assert storage_format(path, "--add-scram", alice, "-S", bob) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert "alice" not in shown.out + shown.err
    expected = {
        "alice": (ScramCredentialInfo("SCRAM-SHA-256", 8192),),
        "bob": (ScramCredentialInfo("SCRAM-SHA-512", 4096),),
    }
    for _ in range(2):
        with started_with(tmp_path, ["--properties", str(path)]) as (address, process):
            with Clients(address) as clients:
                assert clients.admin().describe_user_scram_credentials() == expected
            process.terminate()
            process.finish()


def test_cluster_id_of_the_file_must_be_the_same(tmp_path: Path, capsys: Captured) -> None:
    path = write_properties(tmp_path, "cluster.id=d")
    assert storage_format(path) == 2
    assert f"--cluster-id: got 'c', but {path} has cluster.id 'd'" in capsys.readouterr().err


def test_formatted_directory_serves_and_restarts(tmp_path: Path) -> None:
    path = write_properties(tmp_path)
    assert storage_format(path, cluster_id="a=\\b") == 0
    identity = (tmp_path / "data" / META_PROPERTIES).read_bytes()
    for count in (1, 2):
        with started_with(tmp_path, ["--properties", str(path)]) as (address, process):
            with Clients(address) as clients:
                assert clients.admin().describe_cluster().cluster_id == "a=\\b"
                clients.fill("t", 1)
                consumer = clients.consumer()
                consumer.assign([place("t")])
                assert len(read(consumer, count)) == count
            process.terminate()
            process.finish()
    assert (tmp_path / "data" / META_PROPERTIES).read_bytes() == identity
