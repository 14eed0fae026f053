"""What the long runs are judged by finds what is planted."""

from pathlib import Path

import pytest

from tests.support.audit import Audit
from tests.support.group_member import Membership
from tests.support.ledger import Ledger
from tests.support.member_process import MemberProcess, Read
from tests.support.vital_signs import slope

GOOD = [(0, 0, b"a:0"), (0, 1, b"a:1"), (1, 0, b"b:0"), (0, 2, b"c:0"), (0, 3, b"a:2")]


def audited(records: list[tuple[int, int, bytes]]) -> Audit:
    audit = Audit()
    for record in records:
        audit.note(*record)
    return audit


def test_an_audit_of_what_is_right() -> None:
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
def test_an_audit_finds_what_is_wrong(next_record: tuple[int, int, bytes], fault: str) -> None:
    (found,) = audited([*GOOD, next_record]).faults
    assert fault in found


def test_seals_tell_places_apart() -> None:
    assert audited(GOOD).seals == audited(sorted(GOOD)).seals
    moved = [*GOOD[:-1], (0, 3, b"d:0")]
    assert audited(GOOD).seals[0] != audited(moved).seals[0]
    assert audited(GOOD).seals[1] == audited(moved).seals[1]


def test_a_ledger_takes_what_is_expected() -> None:
    ledger = Ledger()
    for offset in (0, 1, 4, 5, 2, 3):  # two members, the second one's journal read first
        ledger.note_read(0, offset, b"%d" % offset)
    ledger.note_committed({0: 4})
    ledger.note_read(0, 4, b"4")  # processed, not committed, and so once more
    assert (ledger.done(0), ledger.repeated) == (6, 1)
    ledger.note_committed({0: 6})
    assert not ledger.note_read(
        0, 5, b"5", may_be_late=True
    )  # by a member that has not heard of its end
    assert (ledger.done(0), ledger.repeated) == (6, 2)
    once = Ledger()
    for offset in range(6):
        once.note_read(0, offset, b"%d" % offset)
    assert ledger.seals == once.seals


def test_a_ledger_finds_what_is_wrong() -> None:
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


def test_a_member_that_reads_what_is_anothers_is_told_in_time(tmp_path: Path) -> None:
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


def test_growth_is_the_slope_of_the_samples() -> None:
    assert slope([(0.0, 5.0), (1.0, 7.0), (2.0, 9.0)]) == 2.0
    assert slope([(3.0, 5.0)]) == 0.0
