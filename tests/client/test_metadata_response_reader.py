"""Leader epochs, topic ids and errors in metadata responses."""

import pytest

from tests.client.metadata_world import ID_1, ID_2, MetadataWorld, topic


@pytest.mark.fault("P12")
def test_older_leader_epoch_is_ignored(known: MetadataWorld) -> None:
    known.update(topic(leader=2, epoch=5))
    known.update(topic(leader=1, epoch=4))
    assert known.leader() == (2, 5)
    known.update(topic(leader=1, epoch=6))
    assert known.leader() == (1, 6)


@pytest.mark.fault("P12")
def test_older_leader_epoch_is_ignored_after_topic_was_missing(known: MetadataWorld) -> None:
    known.update(topic(leader=2, epoch=5))
    known.update(topic(error=3))
    assert known.leader() == (None, -1)
    known.update(topic(leader=1, epoch=4))
    assert known.leader() == (None, 5)
    assert known.metadata.cluster().partition_count("orders") == 1
    assert known.metadata.time_to_next_update(known.now_ms) < 10_000
    known.update(topic(leader=1, epoch=5))
    assert known.leader() == (1, 5)


@pytest.mark.fault("P12")
def test_new_topic_id_resets_leader_epochs(known: MetadataWorld) -> None:
    known.update(topic(leader=2, epoch=5, topic_id=ID_1, partitions=4))
    known.update(topic(leader=1, epoch=0, topic_id=ID_2, partitions=2))
    assert known.leader() == (1, 0)
    assert known.metadata.cluster().partition_count("orders") == 2
    assert known.metadata.cluster().topic_id("orders") == ID_2


@pytest.mark.fault("P12")
@pytest.mark.parametrize("epoch", [0, 2, 5, 7])
def test_recreated_topic_resets_leader_epochs_after_it_was_missing(
    known: MetadataWorld, epoch: int
) -> None:
    known.update(topic(leader=2, epoch=5, topic_id=ID_1, partitions=4))
    known.update(topic(error=3, topic_id=bytes(16)))
    known.update(topic(error=3, topic_id=bytes(16)))
    known.update(topic(leader=1, epoch=epoch, topic_id=ID_2, partitions=2))
    assert known.leader() == (1, epoch)
    known.update(topic(leader=2, epoch=epoch + 1, topic_id=ID_2, partitions=2))
    assert known.leader() == (2, epoch + 1)
    known.update(topic(leader=1, epoch=epoch, topic_id=ID_2, partitions=2))
    assert known.leader() == (2, epoch + 1), "a broker that lags is still not believed"


@pytest.mark.fault("P12")
def test_recreated_topic_without_id_has_leader(
    known: MetadataWorld,
) -> None:
    none = bytes(16)
    known.update(topic(leader=2, epoch=5, topic_id=none))
    known.update(topic(leader=1, epoch=4, topic_id=none))
    assert known.leader() == (2, 5)
    known.update(topic(error=3, topic_id=none))
    known.update(topic(leader=1, epoch=0, topic_id=none))
    assert known.leader() == (1, 0)


@pytest.mark.fault("P12")
@pytest.mark.parametrize("error", [5, 0])
def test_topic_without_leader_keeps_known_partitions(known: MetadataWorld, error: int) -> None:
    known.update(topic(leader=2, epoch=5, partitions=3))
    known.update(topic(error=error, partitions=0))
    assert known.metadata.cluster().partition_count("orders") == 3
    assert known.metadata.time_to_next_update(known.now_ms) < 500


@pytest.mark.fault("P12")
@pytest.mark.parametrize("numbers", [(1, 2), (0, 2), (-1, 0), (0, 2**31 - 1)])
def test_response_with_partition_gaps_is_not_applied(
    known: MetadataWorld, numbers: tuple[int, int]
) -> None:
    """Callers that count partitions number them from 0."""
    odd = topic(partitions=2)
    for partition, number in zip(odd.partitions, numbers, strict=True):
        partition.partition_index = number
    known.update(odd)
    assert known.metadata.cluster().partitions_for("orders") == []
    assert "expected 0 to 1" in str(known.metadata.topic_error("orders"))
    assert known.metadata.time_to_next_update(known.now_ms) < 500
    known.update(topic(partitions=3))
    known.update(odd)
    assert known.metadata.cluster().partition_count("orders") == 3
