"""Kills a broker repeatedly while records are sent to it, and checks that none is lost.

``python -m tests.support.processes.kill_loop --kills 50 --seed 1``, or ``make crash KILLS=50``.
"""

import argparse
import logging
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kclient import AdminClient, NewTopic, Producer
from kclient.broker.log.dump_log import DumpOptions, LogDump
from kclient.common.system_files import SystemFiles
from tests.support.clients.load import Load, check_intact
from tests.support.clients.own_client import OwnClient
from tests.support.processes.broker_process import BrokerProcess, broker_command
from tests.support.processes.child_process import ChildProcess

TOPIC = "killed"
PARTITIONS = 3
_SETTINGS = ("log.roll.ms=1000", "log.index.interval.bytes=512")
_MOST_BETWEEN = 3000  # records acknowledged from a start to its kill
_LONGEST_START = 1.5  # seconds from the start to a kill during it


@dataclass
class Report:
    """Results of a run of kills.

    Attributes:
        kills: Number of kills of the serving broker.
        early_kills: Number of kills during the start.
        acknowledged: Records acknowledged, each checked to be in the log once, in order.
        batches: Batches in the files, each with a valid checksum and the next offset.
        segments: Their segment files.
    """

    kills: int = 0
    early_kills: int = 0
    acknowledged: int = 0
    batches: int = 0
    segments: int = 0

    def __str__(self) -> str:
        return (
            f"{self.kills} kills under load and {self.early_kills} while starting: "
            f"{self.acknowledged} records acknowledged, 0 lost, 0 doubled, 0 out of order; "
            f"{self.batches} batches in {self.segments} segments sound"
        )


def run(data_dir: Path, kills: int, seed: int) -> Report:
    """Send records, kill the broker at random times, and check everything.

    Raises:
        AssertionError: A record is lost, duplicated, elsewhere than acknowledged, or out of order;
            or a file of the log is damaged.
    """
    rng = random.Random(seed)
    report = Report()
    with serving(data_dir, "127.0.0.1:0") as broker:
        address = broker.bootstrap
        with AdminClient(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)]).raise_for_errors()
    producer = Producer(
        bootstrap_servers=address,
        acks="all",
        enable_idempotence=True,
        linger_ms=1,
        batch_size=2_000,
        delivery_timeout_ms=300_000,
        reconnect_backoff_max_ms=200,
    )
    with producer, Load(producer, TOPIC) as load:
        while report.kills < kills:
            if rng.random() < 0.2:
                kill_while_starting(data_dir, address, rng.uniform(0.0, _LONGEST_START))
                report.early_kills += 1
            with serving(data_dir, address):
                load.await_more(rng.randint(1, _MOST_BETWEEN))
            report.kills += 1
            show(f"kill {report.kills}: {load.acknowledged} records acknowledged")
        with BrokerProcess(data_dir, *_SETTINGS, listen=address) as last:
            sent = load.finish()
            report.acknowledged = len(sent)
            found = OwnClient(address).read_all(TOPIC, timeout=120)
            assert last.stop() == 0
    check_intact(sent, found)
    stored = sorted((one.partition, one.offset, one.value) for one in found)
    assert sorted(load.placed) == stored, "a record is not at its acknowledged offset"
    check_offsets_are_whole(stored)
    check_files(data_dir, report, TOPIC)
    return report


@contextmanager
def serving(data_dir: Path, listen: str) -> Iterator[BrokerProcess]:
    """Run a broker during a block; at its end it is killed."""
    with BrokerProcess(data_dir, *_SETTINGS, listen=listen) as broker:
        yield broker
        broker.kill()


def kill_while_starting(data_dir: Path, listen: str, after: float) -> None:
    """Start a broker and kill it after so many seconds, whether or not it has started."""
    command = broker_command(data_dir, *_SETTINGS, listen=listen)
    with (
        tempfile.TemporaryDirectory(prefix="kclient-kills-") as output,
        ChildProcess(command, Path(output), name="starting broker") as starting,
    ):
        starting.exit_code(after)


def check_offsets_are_whole(stored: list[tuple[int, int, bytes | None]]) -> None:
    """Fail unless the offsets of each partition are consecutive from 0."""
    for number in range(PARTITIONS):
        offsets = [offset for partition, offset, _ in stored if partition == number]
        assert offsets == list(range(len(offsets))), f"partition {number} has a gap"


class FileCounts(Protocol):
    """Counts of checked files."""

    batches: int
    segments: int


def check_files(data_dir: Path, report: FileCounts, topic: str) -> None:
    """Fail unless dump-log finds every file valid and the batches of each partition consecutive."""
    for number in range(PARTITIONS):
        expected = 0
        for path in sorted((data_dir / f"{topic}-{number}").iterdir()):
            if path.suffix not in {".log", ".index", ".timeindex", ".snapshot"}:
                continue
            dump = LogDump(SystemFiles(), path, DumpOptions())
            spans = [_span(line) for line in dump.lines() if line.startswith("baseOffset: ")]
            assert dump.problems == [], f"{path.name}: {dump.problems[:3]}"
            for first, last in spans:
                assert first == expected, f"{path.name}: got a batch at {first}, not at {expected}"
                expected = last + 1
            report.batches += len(spans)
            report.segments += path.suffix == ".log"


def _span(line: str) -> tuple[int, int]:
    """Return the first and the last offset of a batch, as dump-log shows it."""
    words = line.split()
    return int(words[1]), int(words[3])


def show(line: str) -> None:
    """Show the progress on a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{line}")


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=None, help="random if absent")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # broken connections are intended
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    sys.stdout.write(f"seed {seed}\n")
    with tempfile.TemporaryDirectory(prefix="kclient-kills-") as directory:
        report = run(Path(directory), options.kills, seed)
    sys.stdout.write(f"{report}\n")


if __name__ == "__main__":
    main()
