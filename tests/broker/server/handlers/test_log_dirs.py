"""DescribeLogDirs requests."""

import shutil

from kclient.protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch


def described(
    wire: Wire, *topics: DescribableLogDirTopic, everything: bool = False
) -> DescribeLogDirsResult:
    request = DescribeLogDirsRequest(topics=None if everything else list(topics))
    (directory,) = wire.ask(request, 4, DescribeLogDirsResponse).results
    return directory


def test_logs_have_their_sizes(wire: Wire, topic: str) -> None:
    record = batch([b"a"])
    wire.produce(topic, record)
    wanted = DescribableLogDirTopic(topic=topic, partitions=[0, 0, 99])
    missing = DescribableLogDirTopic(topic="missing", partitions=[0])
    directory = described(wire, wanted, missing)
    (found,) = directory.topics
    (part,) = found.partitions
    assert (found.name, part.partition_index, part.partition_size) == (topic, 0, len(record))
    assert (directory.error_code, part.offset_lag, part.is_future_key) == (0, 0, False)


def test_volume_of_the_directory_has_its_size(wire: Wire, cluster: EmbeddedCluster) -> None:
    directory = described(wire)
    assert directory.total_bytes == shutil.disk_usage(cluster.data_dir).total
    assert 0 < directory.usable_bytes <= directory.total_bytes


def test_all_logs_are_described(wire: Wire, topic: str) -> None:
    names = {found.name for found in described(wire, everything=True).topics}
    assert topic in names
    assert described(wire).topics == []
