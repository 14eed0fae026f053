"""Checks of the long runs find planted faults."""

import argparse
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.checks.audit import Audit
from tests.support.checks.ledger import Ledger
from tests.support.clients.group_member import Membership, Program, Report
from tests.support.clients.group_member import Read as ReadRecord
from tests.support.processes.member_process import MemberProcess, Read
from tests.support.processes.vital_signs import slope

GOOD = [(0, 0, b"a:0"), (0, 1, b"a:1"), (1, 0, b"b:0"), (0, 2, b"c:0"), (0, 3, b"a:2")]


def audited(records: list[tuple[int, int, bytes]]) -> Audit:
    audit = Audit()
    for record in records:
        audit.note(*record)
    return audit


def test_audit_accepts_records_in_order() -> None:
    audit = audited(GOOD)
    assert audit.faults == []
    assert (audit.records, audit.ends, audit.counted(b"a")) == (5, {0: 4, 1: 1}, 3)


@pytest.mark.parametrize(
    ("next_record", "fault"),
    [
        ((0, 4, b"a:4"), "lost or late"),
        ((0, 4, b"a:2"), "double or out of order"),
        ((0, 4, b"a:0"), "double or out of order"),
        ((1, 1, b"a:3"), "in partitions 0 and 1"),
        ((0, 5, b"a:3"), "5 follows 4"),
        ((0, 3, b"a:3"), "3 follows 4"),
    ],
)
def test_audit_finds_lost_duplicate_and_misplaced_records(
    next_record: tuple[int, int, bytes], fault: str
) -> None:
    (found,) = audited([*GOOD, next_record]).faults
    assert fault in found


def test_seals_distinguish_offsets() -> None:
    assert audited(GOOD).seals == audited(sorted(GOOD)).seals
    moved = [*GOOD[:-1], (0, 3, b"d:0")]
    assert audited(GOOD).seals[0] != audited(moved).seals[0]
    assert audited(GOOD).seals[1] == audited(moved).seals[1]


def test_ledger_accepts_reads_of_two_members() -> None:
    ledger = Ledger()
    for offset in (0, 1, 4, 5, 2, 3):  # two members, the second one's journal read first
        ledger.note_read(0, offset, b"%d" % offset)
    ledger.note_committed({0: 4})
    ledger.note_read(0, 4, b"4")  # processed, not committed, and so once more
    assert (ledger.done(0), ledger.repeated) == (6, 1)
    ledger.note_committed({0: 6})
    assert not ledger.note_read(
        0, 5, b"5", may_be_late=True
    )  # by a member that does not know yet that it was fenced
    assert (ledger.done(0), ledger.repeated) == (6, 2)
    once = Ledger()
    for offset in range(6):
        once.note_read(0, offset, b"%d" % offset)
    assert ledger.seals == once.seals


def test_ledger_finds_lost_and_repeated_reads() -> None:
    ledger = Ledger()
    for offset in (0, 1, 3):
        ledger.note_read(0, offset, b"v")
    with pytest.raises(AssertionError, match="3 committed, 2 processed"):
        ledger.note_committed({0: 3})
    ledger.note_committed({0: 2})
    with pytest.raises(AssertionError, match="0-1 comes again, but 2 is committed"):
        ledger.note_read(0, 1, b"v")
    with pytest.raises(AssertionError, match="commit back from 2 to 1"):
        ledger.note_committed({0: 1})


def test_member_that_reads_partition_of_another_is_notified(tmp_path: Path) -> None:
    with MemberProcess(
        Membership("127.0.0.1:1", "g"), "t", tmp_path / "late", client="aiokafka"
    ) as member:
        record = Read(0, 1, b"v")
        for _ in range(500):
            member.note_late(record)
        member.refusals.append("UNKNOWN_MEMBER_ID")
        for _ in range(500):
            member.note_late(record)
        with pytest.raises(AssertionError, match="which another group member has"):
            member.note_late(record)


class LastCommitRefused:
    """A client that reads two records, whose commit is refused, and nothing after them."""

    def __init__(self, report: Report, commands: int) -> None:
        self._report = report
        self._commands = commands
        self.commits = 0
        self._polls = 0

    def subscribe(self, topic: str) -> None:
        self._report("assigned", [4])

    def unsubscribe(self) -> None:
        self._report("revoked", [4])

    def poll(self) -> list[ReadRecord]:
        self._polls += 1
        if self._polls == 5:
            os.close(self._commands)
        return [(4, 0, b"a"), (4, 1, b"b")] if self._polls == 1 else []

    def commit(self) -> str | None:
        self.commits += 1
        return "ILLEGAL_GENERATION" if self.commits < 3 else None

    def close(self) -> None:
        pass


def test_member_repeats_a_rejected_commit(tmp_path: Path) -> None:
    journal = tmp_path / "member"
    member = Membership("127.0.0.1:1", "g")
    arguments = argparse.Namespace(client="one", topic="t", journal=journal, **asdict(member))
    reading, writing = os.pipe()
    clients: list[LastCommitRefused] = []

    def client(_: Membership, report: Report) -> LastCommitRefused:
        clients.append(LastCommitRefused(report, writing))
        return clients[0]

    try:
        Program({"one": client}, arguments, reading).run()
    finally:
        os.close(reading)
    assert clients[0].commits == 3
    lines = [line for line in journal.read_text().splitlines() if not line.startswith("at ")]
    assert lines == [
        "assigned 4",
        "read 4 0 a",
        "read 4 1 b",
        "refused ILLEGAL_GENERATION",
        "refused ILLEGAL_GENERATION",
    ]


def test_growth_is_the_slope_of_samples() -> None:
    assert slope([(0.0, 5.0), (1.0, 7.0), (2.0, 9.0)]) == 2.0
    assert slope([(3.0, 5.0)]) == 0.0
