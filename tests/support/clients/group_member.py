"""Program of a group member, which a test can make leave, rejoin, stall, or kill.

It reads, journals what it read, and only then commits. The lines of its journal:

    assigned 0,3    revoked 0,3    lost 0,3    read <partition> <offset> <value>    refused <error>
    generation 5    (with each assignment, of clients that report it)
    at <time>       (before the records of a poll: its end, by the monotonic clock, in seconds)

Commands come by standard input, a byte each; at its end the member closes and exits.
"""

import argparse
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kclient import Consumer, TopicPartition
from kclient.common.broker_errors import RebalanceInProgressError, UnknownTopicOrPartitionError
from kclient.common.errors import CommitFailedError, KafkaTimeoutError

LEAVE, JOIN, STALL = b"l", b"j", b"s"

POLL_S = 0.1
_READ_UNCOMMITTED = "read_uncommitted"
MOST = 100  # records of one poll, which a crash may repeat

# Errors of a commit during a rebalance, without brokers, or after deletion of the topic.
_REFUSALS = (
    CommitFailedError,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
    KafkaTimeoutError,
)

Read = tuple[int, int, bytes]
Report = Callable[[str, Iterable[int]], None]


@dataclass(frozen=True, slots=True)
class Membership:
    """Options of a member.

    Attributes:
        instance: ``group.instance.id`` of a static member.
        strategy: The assignor, by Kafka's name.
        max_poll_ms: ``max.poll.interval.ms``.
        work_ms: Processing time of the records of a poll, before the commit.
        isolation: As in the consumer's configuration.
    """

    bootstrap: str
    group: str
    session_ms: int = 6_000
    max_poll_ms: int = 300_000
    instance: str | None = None
    strategy: str = "range"
    work_ms: int = 0
    isolation: str = _READ_UNCOMMITTED

    @property
    def heartbeat_ms(self) -> int:
        return min(500, self.session_ms // 4)

    def arguments(self) -> list[str]:
        """Return the arguments that `main` parses."""
        given = ["--bootstrap", self.bootstrap, "--group", self.group, "--strategy", self.strategy]
        given += ["--session-ms", str(self.session_ms), "--max-poll-ms", str(self.max_poll_ms)]
        given += ["--work-ms", str(self.work_ms)]
        if self.isolation != _READ_UNCOMMITTED:
            given += ["--isolation", self.isolation]
        return given if self.instance is None else [*given, "--instance", self.instance]


class Client(Protocol):
    """Operations of a client that the program uses."""

    def subscribe(self, topic: str) -> None: ...
    def unsubscribe(self) -> None: ...
    def poll(self) -> list[Read]: ...
    def commit(self) -> str | None:
        """Commit the position of each owned partition; return why it was refused, or None."""

    def close(self) -> None: ...


class Own:
    """kclient."""

    def __init__(self, member: Membership, report: Report) -> None:
        self._report = report
        optional: dict[str, Any] = {}
        if member.instance is not None:
            optional["group_instance_id"] = member.instance
        strategy: Any = member.strategy
        isolation: Any = member.isolation
        self._consumer = Consumer(
            bootstrap_servers=member.bootstrap,
            group_id=member.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=MOST,
            session_timeout_ms=member.session_ms,
            heartbeat_interval_ms=member.heartbeat_ms,
            max_poll_interval_ms=member.max_poll_ms,
            partition_assignment_strategy=strategy,
            isolation_level=isolation,
            **optional,
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe(
            topic,
            on_assigned=self._assigned,
            on_revoked=self._teller("revoked"),
            on_lost=self._teller("lost"),
        )

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def poll(self) -> list[Read]:
        return [
            (one.partition, one.offset, one.value or b"") for one in self._consumer.poll(POLL_S)
        ]

    def commit(self) -> str | None:
        try:
            self._consumer.commit()
        except _REFUSALS as error:
            return type(error).__name__
        return None

    def close(self) -> None:
        self._consumer.close()

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._report("generation", [self._consumer.group_metadata().generation_id])
        self._report("assigned", [one.partition for one in partitions])

    def _teller(self, what: str) -> Callable[[list[TopicPartition]], None]:
        return lambda partitions: self._report(what, [one.partition for one in partitions])


Clients = Mapping[str, Callable[[Membership, Report], Client]]


class Program:
    """The loop of a member."""

    def __init__(self, clients: Clients, arguments: argparse.Namespace, commands: int = 0) -> None:
        """Create a member.

        Args:
            commands: The file descriptor of the commands.
        """
        self._commands = commands
        self._journal = arguments.journal.open("wb")
        self._topic: str = arguments.topic
        member = Membership(
            arguments.bootstrap,
            arguments.group,
            arguments.session_ms,
            arguments.max_poll_ms,
            arguments.instance,
            arguments.strategy,
            arguments.work_ms,
            arguments.isolation,
        )
        self._client = clients[arguments.client](member, self._report)
        self._stall_s = member.max_poll_ms / 1000 + 2 * POLL_S
        self._work_s = member.work_ms / 1000
        self._pause = threading.Event()
        self._joined = True
        self._refused = False

    def run(self) -> None:
        with self._journal, closing(self._client):
            self._client.subscribe(self._topic)
            while (command := self._command()) != b"":
                if command == LEAVE:
                    self._client.unsubscribe()
                    self._joined = self._refused = False
                elif command == JOIN:
                    self._client.subscribe(self._topic)
                    self._joined = True
                elif command == STALL:
                    self._pause.wait(self._stall_s)
                elif self._joined:
                    self._work()

    def _work(self) -> None:
        read = self._client.poll()
        if read:
            self._write(b"at %.3f\n" % time.monotonic())
            self._write(b"".join(b"read %d %d %s\n" % one for one in read))
            self._pause.wait(self._work_s)
        elif not self._refused:
            return
        # A member that keeps its partitions in a rebalance does not get those records again, and
        # after the last of them no read would make it commit what the rebalance refused.
        refused = self._client.commit()
        self._refused = refused is not None
        if refused is not None:
            self._write(b"refused %s\n" % refused.encode())

    def _report(self, what: str, partitions: Iterable[int]) -> None:
        shown = ",".join(str(number) for number in sorted(partitions))
        self._write(f"{what} {shown}\n".encode())

    def _write(self, lines: bytes) -> None:
        self._journal.write(lines)
        self._journal.flush()

    def _command(self) -> bytes | None:
        """Return a command, b"" at the end of the input, None if there is none now."""
        os.set_blocking(self._commands, not self._joined)
        try:
            return os.read(self._commands, 1)
        except BlockingIOError:
            return None


def main(clients: Clients) -> None:
    """Run the member that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", choices=sorted(clients), required=True)
    parser.add_argument("--journal", type=Path, required=True)
    for name in ("bootstrap", "topic", "group", "strategy"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instance")
    parser.add_argument("--isolation", default=_READ_UNCOMMITTED)
    for name in ("session-ms", "max-poll-ms", "work-ms"):
        parser.add_argument(f"--{name}", type=int, required=True)
    Program(clients, parser.parse_args()).run()


if __name__ == "__main__":
    main({"kclient": Own})
