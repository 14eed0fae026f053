"""Members of a group join, leave, close and are killed under load; no record is skipped."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import TopicPartition
from tests.support.clients.clients import Clients
from tests.support.clients.group_member import MOST, Membership
from tests.support.clients.load import Load, check_intact
from tests.support.processes.member_process import GroupHistory, MemberProcess

PARTITIONS = 6
SESSION_MS = 3_000


class Group:
    """Starts members and keeps their history."""

    def __init__(self, clients: Clients, directory: Path, ending: ExitStack) -> None:
        self.topic = clients.topic(PARTITIONS)
        self.name = clients.group()
        self.history = GroupHistory(clients.admin(), self.topic, self.name)
        self._clients = clients
        self._directory = directory
        self._ending = ending

    def start(self, name: str) -> MemberProcess:
        membership = Membership(self._clients.bootstrap, self.name, SESSION_MS)
        member = MemberProcess(membership, self.topic, self._directory / name)
        self.history.members.append(self._ending.enter_context(member))
        return member


@pytest.fixture
def group(clients: Clients, tmp_path: Path) -> Iterator[Group]:
    with ExitStack() as ending:
        yield Group(clients, tmp_path, ending)


@pytest.mark.campaign
@pytest.mark.fault("R11", "R22")
@pytest.mark.fault("R22")
def test_members_join_leave_close_and_die(clients: Clients, group: Group) -> None:
    history = group.history
    producer = clients.producer(linger_ms=10)
    with Load(producer, group.topic, ahead=30) as load:
        first = group.start("first")
        history.await_sharing([first], PARTITIONS)
        second, third = group.start("second"), group.start("third")
        history.await_sharing([first, second, third], PARTITIONS)
        second.kill()
        history.await_sharing([first, third], PARTITIONS)
        first.leave()
        fourth = group.start("fourth")
        history.await_sharing([third, fourth], PARTITIONS)
        first.join()
        history.await_sharing([first, third, fourth], PARTITIONS)
        third.close()
        history.await_sharing([first, fourth], PARTITIONS)
        fourth.kill()
        history.await_sharing([first], PARTITIONS)
        sent = load.finish()
    ends = clients.consumer().end_offsets(
        [TopicPartition(group.topic, number) for number in range(PARTITIONS)]
    )
    history.await_end(ends)
    first.close()
    assert sum(ends.values()) == len(sent)
    # Only what a killed member had read and not yet committed comes again: one poll at most.
    assert history.ledger.repeated <= 2 * MOST
    assert [member.refusals for member in history.members] == [[], [], [], []]
    check_intact(sent, history.once())
