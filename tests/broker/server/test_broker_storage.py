"""Identity of a data directory."""

from pathlib import Path

import pytest

from kclient.broker.metadata.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from kclient.broker.server.broker_config import BROKER_CONFIG
from kclient.broker.server.broker_storage import log_manager, open_storage
from kclient.broker.server.quorum_voters import quorum_voters
from kclient.common.errors import ConfigError
from kclient.common.system_files import SystemFiles
from kclient.network.system_runtime import system_runtime


def opened(data_dir: Path, **settings: object) -> MetaProperties:
    """Open a data directory; return its identity."""
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    config = BROKER_CONFIG.parse({"log.dir": str(data_dir), **keys})
    runtime = system_runtime()
    logs = log_manager(config, runtime)
    voters = quorum_voters(config.controller_quorum_voters, config.node_id, ())
    try:
        logs.start()
        return open_storage(config, runtime, logs, voters, None).identity
    finally:
        logs.close(clean=False)


def test_new_directory_is_formatted(tmp_path: Path) -> None:
    identity = opened(tmp_path, node_id=3)
    assert identity.node_id == 3
    assert read_meta_properties(SystemFiles(), tmp_path) == identity
    assert opened(tmp_path, node_id=3) == identity


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"node_id": 4}, r"node\.id: got 4, but .* belongs to broker 3"),
        ({"node_id": 3, "cluster_id": "mine"}, r"cluster\.id: got 'mine', but .* belongs to"),
    ],
)
def test_directory_of_another_broker_is_refused(
    tmp_path: Path, settings: dict[str, object], problem: str
) -> None:
    write_meta_properties(SystemFiles(), tmp_path, MetaProperties("other", 3, b"\5" * 16))
    with pytest.raises(ConfigError, match=problem):
        opened(tmp_path, **settings)
