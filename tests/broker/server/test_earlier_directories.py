"""Directories that earlier versions have written open as they are."""

import shutil
from pathlib import Path

from kclient.broker.log.log_file_utils import METADATA_PARTITION
from kclient.broker.raft.raft_types import LeaderAndEpoch
from kclient.common.types import TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch, records_of

BEFORE_QUORUM = Path(__file__).parent / "directories" / "before_quorum"


def test_directory_from_before_the_quorum_is_opened(tmp_path: Path) -> None:
    """Two topics with records and an offset, a deleted topic; its broker was killed."""
    data_dir = tmp_path / "data"
    shutil.copytree(BEFORE_QUORUM, data_dir)
    with EmbeddedCluster(data_dir=data_dir) as cluster:
        for epoch in (2, 3):
            services = cluster.broker.services
            raft = cluster.broker.storage.raft
            assert raft.client.leader_and_epoch == LeaderAndEpoch(1, epoch)
            assert set(services.metadata.image.topics) == {"orders", "__consumer_offsets"}
            offset = services.groups.fetch_offsets("g")[TopicPartition("orders", 1)]
            assert offset.offset == 5
            with Wire(cluster.bootstrap_servers) as wire:
                found = records_of(wire.fetch("orders", 0).records)
                assert [each.value for each in found] == [b"v0", b"v2", b"v4", b"v6", b"v8"]
            cluster.restart()
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("new")
            assert wire.produce("new", batch([b"v"])).error_code == 0
    assert not [path for path in data_dir.iterdir() if path.name.endswith("-stray")]
    assert (data_dir / str(METADATA_PARTITION) / "quorum-state").exists()
