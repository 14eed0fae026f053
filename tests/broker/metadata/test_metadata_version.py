"""Levels of metadata.version."""

import pytest

from kclient.broker.metadata.metadata_version import (
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MINIMUM_VERSION,
    MetadataVersion,
    finalized_version,
    is_metadata_changed,
)
from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3.3-IV3", 7),
        ("4.0-IV3", 25),
        ("4.0", 25),
        ("4.0.1", 25),
        ("4.1", 27),
        ("4.2-IV0", 28),
        ("4.3.1", 30),
        ("4.4-IV0", 31),
    ],
)
def test_levels_by_name_and_release(text: str, level: int) -> None:
    found = MetadataVersion.parse(text)
    assert found == level
    assert found.version.startswith(text[:3])
    assert MetadataVersion.parse(found.version) is found
    assert MetadataVersion.of_level(level) is found


@pytest.mark.parametrize("text", ["", "4", "3.3-IV2", "3.2", "4.0-IV4", "5.0", "25"])
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected one from"):
        MetadataVersion.parse(text)


def test_levels_follow_each_other() -> None:
    assert list(map(int, MetadataVersion)) == list(range(7, 32))
    assert (MINIMUM_VERSION, LATEST_PRODUCTION) == (7, 30)
    assert finalized_version({}) == 7
    assert finalized_version({METADATA_VERSION: 25}) == 25
    with pytest.raises(InvalidArgumentError, match="level 6"):
        finalized_version({METADATA_VERSION: 6})


@pytest.mark.parametrize(
    ("level", "register", "partition", "change", "fetch", "list_offsets"),
    [
        (7, 1, 0, 1, 13, 7),
        (8, 2, 0, 1, 13, 7),
        (9, 2, 0, 1, 14, 8),
        (10, 2, 0, 1, 15, 8),
        (17, 3, 1, 2, 15, 8),
        (19, 3, 1, 2, 16, 8),
        (21, 3, 1, 2, 17, 9),
        (22, 3, 1, 2, 17, 9),
        (23, 3, 2, 2, 17, 9),
        (25, 3, 2, 2, 17, 10),
        (27, 3, 2, 2, 18, 10),
        (29, 3, 2, 2, 18, 11),
        (30, 4, 2, 3, 18, 11),
    ],
)
def test_versions_of_records_and_requests(
    level: int, register: int, partition: int, change: int, fetch: int, list_offsets: int
) -> None:
    version = MetadataVersion(level)
    records: dict[type[MetadataRecord], int] = {
        RegisterBrokerRecord: register,
        PartitionRecord: partition,
        PartitionChangeRecord: partition,
        BrokerRegistrationChangeRecord: change,
        NoOpRecord: 0,
    }
    assert {kind: version.record_version(kind) for kind in records} == records
    assert (version.fetch_version, version.list_offsets_version) == (fetch, list_offsets)


def test_values_that_a_level_does_not_have_are_refused() -> None:
    partition = PartitionRecord(partition_id=0, replicas=[1], directories=[b"\7" * 16])
    assert MetadataVersion(17).encode(partition)[:3] == b"\1\3\1"
    with pytest.raises(KafkaError):
        MetadataVersion(16).encode(partition)


@pytest.mark.parametrize(
    ("property_name", "first"),
    [
        ("has_zk_migration_state", 8),
        ("has_scram", 11),
        ("has_transactions", 13),
        ("has_delegation_tokens", 14),
        ("has_controller_registration", 15),
        ("has_directories", 17),
        ("has_elr", 23),
        ("has_cordoned_directories", 30),
    ],
)
def test_what_a_level_adds(property_name: str, first: int) -> None:
    having = [level for level in MetadataVersion if getattr(level, property_name)]
    assert having == [level for level in MetadataVersion if level >= first]


def test_isr_shrink_raises_the_leader_epoch_before_3_6() -> None:
    assert MetadataVersion(11).raises_leader_epoch_on_isr_shrink
    assert not MetadataVersion(12).raises_leader_epoch_on_isr_shrink


@pytest.mark.parametrize(
    ("low", "high", "changed"),
    [(25, 29, False), (23, 25, False), (22, 23, True), (29, 30, True), (18, 22, False)],
)
def test_levels_that_change_metadata(low: int, high: int, *, changed: bool) -> None:
    first, second = MetadataVersion(low), MetadataVersion(high)
    assert is_metadata_changed(first, second) is is_metadata_changed(second, first) is changed
