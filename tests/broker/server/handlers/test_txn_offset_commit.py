"""TxnOffsetCommit requests, and what OffsetFetch returns of them."""

import pytest

from kclient.common.broker_errors import (
    NONE,
    IllegalGenerationError,
    InvalidProducerEpochError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    code_of,
)
from kclient.protocol.messages.committed_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tests.broker.server.handlers.test_committed_offsets import commit
from tests.support.clients.transactions import (
    commit_in_transaction,
    end_group_transaction,
    fetch_offset,
)
from tests.support.clients.wire import Wire

PID = 4000
UNSTABLE = code_of(UnstableOffsetCommitError)


@pytest.fixture
def group(wire: Wire, topic: str) -> str:
    """A group with committed offset 1 of partition 0 of the topic of that name."""
    assert commit(wire, topic, 8, (0, 1), topic=topic) == [NONE]
    return topic


@pytest.mark.parametrize("version", range(5))
def test_offset_takes_effect_with_the_commit(wire: Wire, group: str, version: int) -> None:
    assert commit_in_transaction(wire, group, group, 7, PID, version=version) == [NONE]
    assert fetch_offset(wire, group, group) == (1, NONE)
    assert fetch_offset(wire, group, group, require_stable=True) == (-1, UNSTABLE)
    assert end_group_transaction(wire, group, PID) == NONE
    assert fetch_offset(wire, group, group, require_stable=True) == (7, NONE)


def test_aborted_offset_has_no_effect(wire: Wire, group: str) -> None:
    assert commit_in_transaction(wire, group, group, 7, PID) == [NONE]
    assert end_group_transaction(wire, group, PID, commit=False) == NONE
    assert fetch_offset(wire, group, group, require_stable=True) == (1, NONE)


def test_partition_without_committed_offset_is_unstable(wire: Wire, topic: str) -> None:
    wire.metadata("__consumer_offsets", create=True)
    assert commit_in_transaction(wire, topic, topic, 7, PID) == [NONE]
    assert fetch_offset(wire, topic, topic) == (-1, NONE)
    assert fetch_offset(wire, topic, topic, require_stable=True) == (-1, UNSTABLE)


def test_versions_with_one_group_return_unstable_partitions(wire: Wire, group: str) -> None:
    assert commit_in_transaction(wire, group, group, 7, PID) == [NONE]
    for topics in (None, [OffsetFetchRequestTopic(name=group, partition_indexes=[0, 1])]):
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=True)
        (found,) = wire.ask(request, 7, OffsetFetchResponse).topics
        first, *others = [(part.committed_offset, part.error_code) for part in found.partitions]
        assert first == (-1, UNSTABLE)
        assert others == ([] if topics is None else [(-1, NONE)])


def test_epochs_of_markers_and_offsets_are_checked(wire: Wire, group: str) -> None:
    stale = code_of(InvalidProducerEpochError)
    assert commit_in_transaction(wire, group, group, 7, PID, epoch=3) == [NONE]
    assert commit_in_transaction(wire, group, group, 8, PID, epoch=2) == [stale]
    assert end_group_transaction(wire, group, PID, epoch=2) == stale
    assert fetch_offset(wire, group, group, require_stable=True) == (-1, UNSTABLE)
    assert end_group_transaction(wire, group, PID, epoch=3, transaction_version=2) == stale
    assert end_group_transaction(wire, group, PID, epoch=4, transaction_version=2) == NONE
    assert end_group_transaction(wire, group, PID, epoch=4, transaction_version=2) == NONE
    assert fetch_offset(wire, group, group, require_stable=True) == (7, NONE)


def test_refused_offsets_have_a_code_each(wire: Wire, group: str) -> None:
    unknown = code_of(UnknownTopicOrPartitionError)
    assert commit_in_transaction(wire, group, "absent", 7, PID) == [unknown]
    assert commit_in_transaction(wire, group, group, 7, PID, generation=3) == [25]
    illegal = commit_in_transaction(wire, group + "-absent", group, 7, PID, generation=3)
    assert illegal == [code_of(IllegalGenerationError)]
    invalid = commit_in_transaction(wire, group, group, 7, -1)
    assert invalid == [code_of(InvalidRequestError)]
