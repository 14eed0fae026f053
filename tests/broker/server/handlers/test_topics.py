"""Creation and deletion of topics."""

import pytest

from kclient.common.broker_errors import (
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kclient.protocol.messages.committed_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kclient.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch


def create(wire: Wire, *topics: CreatableTopic, validate_only: bool = False) -> list[int]:
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    response = wire.ask(request, 7, CreateTopicsResponse)
    return [topic.error_code for topic in response.topics]


def plain(name: str) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1)


@pytest.mark.fault("B20")
def test_topic_names(wire: Wire) -> None:
    invalid = code_of(InvalidTopicError())
    for name in ("", ".", "..", "../x", "a/b", "nul\0", "x" * 250, "ü"):
        assert create(wire, plain(name)) == [invalid]
    assert create(wire, plain("dotted.name")) == [0]
    assert create(wire, plain("dotted_name")) == [invalid]
    assert create(wire, plain("dotted.name")) == [code_of(TopicExistsError())]


@pytest.mark.fault("B20")
@pytest.mark.parametrize(
    "name", ["../escape", "..", ".", "", "a/b", "/etc/x", "nul\0", "x" * 250, "a\\b", "new\nline"]
)
def test_topic_name_cannot_leave_data_directory(
    wire: Wire, cluster: EmbeddedCluster, name: str
) -> None:
    """In every API with a topic name: creation, use, write, read, commit."""

    def there() -> list[str]:
        return sorted(path.name for path in cluster.data_dir.iterdir())

    before = there()
    invalid, unknown = code_of(InvalidTopicError()), code_of(UnknownTopicOrPartitionError())
    assert create(wire, plain(name)) == [invalid]
    assert wire.metadata(name, create=True).topics[0].error_code == invalid
    assert wire.produce(name, batch([b"a"])).error_code == unknown
    assert wire.fetch(name, 0).error_code == unknown
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    commit = OffsetCommitRequest(
        group_id="escape", topics=[OffsetCommitRequestTopic(name=name, partitions=[part])]
    )
    response = wire.ask(commit, 8, OffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code == unknown
    assert there() == before
    assert not (cluster.data_dir.parent / "escape-0").exists()


def test_rules_for_new_topics(wire: Wire) -> None:
    def refused(**fields: object) -> int:
        given = {"num_partitions": 1, "replication_factor": 1} | fields
        (code,) = create(wire, CreatableTopic(name="never", **given))  # type: ignore[arg-type]
        return code

    assert refused(num_partitions=0) == 37
    assert refused(num_partitions=-2) == 37
    assert refused(num_partitions=10_001) == 44
    assert refused(replication_factor=0) == 38
    assert refused(replication_factor=2) == 38
    assert refused(configs=[CreatableTopicConfig(name="retention.mss", value="1")]) == 40
    assert refused(configs=[CreatableTopicConfig(name="retention.ms", value="soon")]) == 40
    assert refused(configs=[CreatableTopicConfig(name="retention.ms", value=None)]) == 40
    by_hand = {"num_partitions": -1, "replication_factor": -1}
    assign = CreatableReplicaAssignment
    assert refused(assignments=[assign(partition_index=0, broker_ids=[1])]) == 42
    assert refused(assignments=[assign(partition_index=1, broker_ids=[1])], **by_hand) == 39
    assert refused(assignments=[assign(partition_index=0, broker_ids=[9])], **by_hand) == 39
    assert refused(assignments=[assign(partition_index=0, broker_ids=[])], **by_hand) == 39
    assert create(wire, plain("twice"), plain("twice")) == [42]


def test_validate_only_creates_no_topic(wire: Wire) -> None:
    wanted = CreatableTopic(name="validated", num_partitions=3, replication_factor=-1)
    assert create(wire, wanted, validate_only=True) == [0]
    assert create(wire, wanted) == [0]


def test_manual_assignment(wire: Wire) -> None:
    assign = [CreatableReplicaAssignment(partition_index=n, broker_ids=[1]) for n in range(3)]
    wanted = CreatableTopic(
        name="by-hand", num_partitions=-1, replication_factor=-1, assignments=assign
    )
    assert create(wire, wanted) == [0]
    assert len(wire.metadata("by-hand").topics[0].partitions) == 3
