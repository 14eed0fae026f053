"""Identity of log directories."""

from pathlib import Path
from random import Random

import pytest

from kclient.broker.metadata.meta_properties import (
    MetaProperties,
    MetaPropertiesEnsemble,
    read_meta_properties,
    write_meta_properties,
)
from kclient.common.errors import ConfigError
from kclient.common.system_files import SystemFiles

FILES = SystemFiles()
ID, OTHER_ID = b"\5" * 16, b"\6" * 16


def test_properties_are_read_back(tmp_path: Path) -> None:
    assert read_meta_properties(FILES, tmp_path) is None
    written = MetaProperties("abc=def", 3, ID)
    write_meta_properties(FILES, tmp_path, written)
    assert read_meta_properties(FILES, tmp_path) == written


def test_file_written_by_java(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Nov 23 19:55:38 UTC 2026\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
        "directory.id=BQUFBQUFBQUFBQUFBQUFBQ\nnode.id=3\nversion=1\n"
    )
    expected = MetaProperties("4L6g3nShT-eMCtK--X86sw", 3, ID)
    assert read_meta_properties(FILES, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version=0\nbroker.id=1\n", "cluster with ZooKeeper"),
        ("", "expected cluster.id, directory.id"),
        ("version=2\ncluster.id=a\nnode.id=1\ndirectory.id=BQUFBQUFBQUFBQUFBQUFBQ\n", "version 1"),
        ("version=1\ncluster.id=a\nnode.id=x\ndirectory.id=BQUFBQUFBQUFBQUFBQUFBQ\n", "version 1"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=short\n", "expected"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n", "reserved"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "meta.properties"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_meta_properties(FILES, tmp_path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    """Two formatted directories, and an empty one."""
    found = [tmp_path / name for name in ("a", "b", "c")]
    for directory in found:
        directory.mkdir()
    for directory, directory_id in zip(found, (ID, OTHER_ID), strict=False):
        write_meta_properties(FILES, directory, MetaProperties("cluster", 1, directory_id))
    return found


def test_directories_of_one_node(directories: list[Path]) -> None:
    ensemble = MetaPropertiesEnsemble.load(FILES, directories)
    assert list(ensemble.formatted) == directories[:2]
    assert ensemble.empty == (directories[2],)
    assert ensemble.cluster_id == "cluster"
    for cluster_id in ("cluster", None):
        ensemble.verify(cluster_id, 1)
    assert ensemble.new_directory_id(Random(1)) not in ensemble.directory_ids
    with pytest.raises(ConfigError, match=f"{directories[2]}: no meta.properties"):
        ensemble.require_formatted()
    MetaPropertiesEnsemble.load(FILES, directories[:2]).require_formatted()


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (MetaProperties("cluster", 2, OTHER_ID), "node.id: got 1, but .*/b belongs to broker 2"),
        (MetaProperties("other", 1, OTHER_ID), "cluster.id: got 'cluster', but .*/b belongs to"),
        (MetaProperties("cluster", 1, ID), "directory.id: .*/b has that of .*/a"),
    ],
)
def test_directories_of_different_nodes_are_refused(
    directories: list[Path], second: MetaProperties, problem: str
) -> None:
    write_meta_properties(FILES, directories[1], second)
    with pytest.raises(ConfigError, match=problem):
        MetaPropertiesEnsemble.load(FILES, directories).verify(None, 1)


def test_other_cluster_is_refused(directories: list[Path]) -> None:
    with pytest.raises(ConfigError, match=r"cluster.id: got 'mine', but .*/a belongs"):
        MetaPropertiesEnsemble.load(FILES, directories).verify("mine", 1)
