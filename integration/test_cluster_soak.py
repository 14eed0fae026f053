"""A short run on three brokers, and tests of its checks."""

from pathlib import Path

import pytest

from integration.cluster_soak.availability import Timeline, longest_stop
from integration.cluster_soak.campaign import Campaign
from integration.cluster_soak.events import BELOW_MIN_ISR, KILL, MOVE, RECREATE, Durations
from integration.cluster_soak.outcomes import read_outcomes, read_times
from integration.cluster_soak.plan import Plan
from integration.cluster_soak.report import lines_of
from integration.cluster_soak.verdict import Verdict, judge, places_of
from integration.harness.discovery import NEWEST
from integration.soak.crowd import Cast
from integration.soak.report import client_faults
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.writer import Writing
from tests.support.processes.vital_signs import Signs, VitalSigns

# The topic is recreated when its partitions have had several leaders: the epochs begin again.
KINDS = (MOVE, KILL, BELOW_MIN_ISR, RECREATE)
SHORT = Durations(away=(0.5, 1.0), below=(5.0, 6.0), missing=(2.0, 3.0))


@pytest.mark.campaign
@pytest.mark.timeout(400)  # on a machine that is busy with other things
@pytest.mark.fault("W2")
def test_cluster_soak_finds_no_violation(
    tmp_path: Path,
) -> None:
    plan = Plan(
        kinds=KINDS,
        durations=SHORT,
        between_s=(1.0, 1.0),
        broker_session_ms=2_500,
        groups={
            "uncommitted": Cast(("kclient",) * 2, max_poll_ms=60_000, work_ms=5),
            "committed": Cast(("kclient",), isolation="read_committed", max_poll_ms=60_000),
        },
    )
    reported: list[str] = []
    outcome = Campaign(tmp_path, NEWEST, plan, reported.append).run()
    assert outcome.faults == []
    assert outcome.events == dict.fromkeys(KINDS, 1), reported
    assert all(one.acknowledged > 0 for one in outcome.findings.writers)
    assert "0 lost" in "\n".join(lines_of(outcome))


# -- the checks

IDEMPOTENT = Writing("", "topic", "w", 1)
PLAIN = Writing("", "topic", "w", 1, idempotence=False)
ORDERED = Writing("", "topic", "w", 1, idempotence=False, in_flight=1)
ONE = Writing("", "topic", "w", 1, idempotence=False, acks="1")

ACKNOWLEDGED = b"acked 1.0 0 3 0\nacked 1.5 20 3 1\nacked 2.5 40 3 2\n"  # of one key
FIRST, SECOND, THIRD = (b"w-key-0:%d" % number for number in range(3))


def verdict(directory: Path, journal: bytes, log: list[bytes], writing: Writing) -> Verdict:
    """Judges a writer of one key, whose records are 0, 20, 40; `log` is what partition 3 holds."""
    others = b"".join(
        b"failed 1.0 %d 1 KafkaTimeoutError\n" % number for number in range(60) if number % 20
    )
    path = directory / "journal"
    path.write_bytes(others + journal)
    records = [ForeignRecord(value, partition=3, offset=offset) for offset, value in enumerate(log)]
    return judge(writing, read_outcomes(path, 60), places_of(records))


@pytest.mark.parametrize("writing", [IDEMPOTENT, PLAIN, ORDERED, ONE])
def test_allowed_outcomes_are_no_faults(tmp_path: Path, writing: Writing) -> None:
    found = verdict(tmp_path, ACKNOWLEDGED, [FIRST, SECOND, THIRD], writing)
    assert (found.acknowledged, found.failed, found.possibly_written) == (3, 57, 57)
    assert found.faults == []


@pytest.mark.parametrize(
    ("journal", "log", "writing", "what"),
    [
        (
            ACKNOWLEDGED,
            [FIRST, SECOND],
            IDEMPOTENT,
            "1 records acknowledged and lost: b'w-key-0:2'",
        ),
        (ACKNOWLEDGED, [FIRST, SECOND], PLAIN, "acknowledged and lost"),
        (ACKNOWLEDGED, [FIRST, SECOND], ONE, ""),
        (ACKNOWLEDGED, [FIRST, b"x", SECOND, THIRD], PLAIN, "2 records not at the reported offset"),
        (ACKNOWLEDGED, [FIRST, SECOND, THIRD, SECOND], IDEMPOTENT, "1 records in the log more"),
        (ACKNOWLEDGED, [FIRST, SECOND, THIRD, SECOND], ORDERED, ""),
        (ACKNOWLEDGED.replace(b" 3 2", b" 3 -1"), [FIRST, SECOND, b"x", THIRD], IDEMPOTENT, ""),
        (
            b"acked 1.0 0 3 0\nacked 1.5 20 3 2\nacked 2.5 40 3 1\n",
            [FIRST, THIRD, SECOND],
            IDEMPOTENT,
            "1 records out of order: b'w-key-0:2'",
        ),
        (
            b"acked 1.0 0 3 0\nacked 1.5 20 3 2\nacked 2.5 40 3 1\n",
            [FIRST, THIRD, SECOND],
            ORDERED,
            "out of order",
        ),
        (
            b"acked 1.0 0 3 0\nacked 1.5 20 3 2\nacked 2.5 40 3 1\n",
            [FIRST, THIRD, SECOND],
            PLAIN,
            "",
        ),
        (
            ACKNOWLEDGED.replace(b"acked 2.5 40 3 2", b"failed 2.5 40 0 E"),
            [FIRST, SECOND, THIRD],
            ONE,
            "1 records in the log although possibly_written is False",
        ),
        (
            ACKNOWLEDGED.replace(b"acked 2.5 40 3 2", b"failed 2.5 40 1 E"),
            [FIRST, SECOND, THIRD],
            IDEMPOTENT,
            "",
        ),
        (
            ACKNOWLEDGED.rpartition(b"acked")[0],
            [FIRST, SECOND],
            ONE,
            "1 records without an outcome",
        ),
        (
            ACKNOWLEDGED + b"failed 2.5 40 1 E\n",
            [FIRST, SECOND, THIRD],
            IDEMPOTENT,
            "1 records without an outcome, or with two",
        ),
    ],
)
def test_wrong_outcomes_are_faults(
    tmp_path: Path, journal: bytes, log: list[bytes], writing: Writing, what: str
) -> None:
    faults = verdict(tmp_path, journal, log, writing).faults
    assert len(faults) == bool(what), faults
    assert what in "".join(faults)


def test_records_of_a_deleted_topic_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"acked 10.0 0 0 7\nacked 20.0 1 0 0\n")
    writing = Writing("", "topic", "w", 1, delivery_ms=1_000)
    outcomes = read_outcomes(path, 2)
    kept = ForeignRecord(b"w-key-1:0", partition=0, offset=0)
    assert judge(writing, outcomes, places_of([kept]), created=15.0).faults == []
    assert judge(writing, outcomes, places_of([]), created=15.0).lost == 1


def test_outage_counts_only_available_partitions() -> None:
    available = Timeline([(0.0, 4.0), (4.0, 10.0), (15.0, 30.0)])
    assert longest_stop([2.0, 9.0, 16.0, 28.0], available, 1.0, 29.0) == 12.0
    assert longest_stop([2.0, 9.0, 16.0, 17.0, 25.0], available, 1.0, 29.0) == 8.0
    assert longest_stop([], available, 5.0, 29.0) == 14.0
    assert longest_stop([9.9, 15.1], available, 9.0, 16.0) == pytest.approx(0.9)


def test_read_times_are_those_of_the_polls(tmp_path: Path) -> None:
    journals = [tmp_path / "a", tmp_path / "b"]
    journals[0].write_bytes(
        b"assigned 0\nat 1.0\nread 0 0 x\nread 0 1 read 7 7\nat 2.0\nread 1 0 y\n"
    )
    journals[1].write_bytes(b"at 3.5\nread 0 2 z\nrefused E\nat 4.0\nread 0 3")
    assert read_times(journals) == {0: [1.0, 3.5], 1: [2.0]}


def signs_with(files: list[int]) -> VitalSigns:
    """Returns the course of a writer with these numbers of open files, one in ten seconds."""
    signs = VitalSigns()
    signs.add("writer", [Signs(10.0 * at, 1 << 20, each, 2) for at, each in enumerate(files)])
    return signs


def test_changing_connections_are_no_leak() -> None:
    assert client_faults(signs_with([8, 9, 7, 9] * 9 + [9, 8, 10, 10]), -1.0) == []


def test_unclosed_files_are_a_leak() -> None:
    leaking = [8 + at % 3 + at // 4 for at in range(40)]
    assert client_faults(signs_with(leaking), -1.0) == ["writer: files grew from 14 to 15"]
