"""A member of a consumer group as a program, which a test may let go, come back, or kill.

It reads, writes down what it read, and only then commits. Its journal tells, a line each:

    assigned 0,3    revoked 0,3    lost 0,3    read <partition> <offset> <value>    refused <error>

Commands come by standard input, a byte each; at its end the member closes and ends.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol

from kclient import Consumer, TopicPartition
from kclient.common.broker_errors import RebalanceInProgressError
from kclient.common.errors import CommitFailedError

LEAVE, JOIN = b"l", b"j"

POLL_S = 0.1
MOST = 100  # records of one poll, which a crash may repeat


def heartbeat_ms(session_ms: int) -> int:
    return min(500, session_ms // 4)


Read = tuple[int, int, bytes]
Tell = Callable[[str, Iterable[int]], None]


class Client(Protocol):
    """What the program needs of a client."""

    def subscribe(self, topic: str) -> None: ...
    def unsubscribe(self) -> None: ...
    def poll(self) -> list[Read]: ...
    def commit(self) -> str | None:
        """Commit what the last poll returned; return why it was refused, if it was."""

    def close(self) -> None: ...


class Own:
    """kclient."""

    def __init__(self, bootstrap: str, group: str, session_ms: int, tell: Tell) -> None:
        self._tell = tell
        self._consumer = Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=MOST,
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=heartbeat_ms(session_ms),
        )

    def subscribe(self, topic: str) -> None:
        self._consumer.subscribe(
            topic,
            on_assigned=self._teller("assigned"),
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
        except (CommitFailedError, RebalanceInProgressError) as error:
            return type(error).__name__
        return None

    def close(self) -> None:
        self._consumer.close()

    def _teller(self, what: str) -> Callable[[list[TopicPartition]], None]:
        return lambda partitions: self._tell(what, [one.partition for one in partitions])


Clients = Mapping[str, Callable[[str, str, int, Tell], Client]]


class Program:
    """The loop of a member."""

    def __init__(self, clients: Clients, arguments: argparse.Namespace) -> None:
        self._journal = arguments.journal.open("wb")
        self._topic: str = arguments.topic
        self._client = clients[arguments.client](
            arguments.bootstrap, arguments.group, arguments.session_ms, self._tell
        )
        self._joined = True

    def run(self) -> None:
        with self._journal, closing(self._client):
            self._client.subscribe(self._topic)
            while (command := self._command()) != b"":
                if command == LEAVE:
                    self._client.unsubscribe()
                    self._joined = False
                elif command == JOIN:
                    self._client.subscribe(self._topic)
                    self._joined = True
                elif self._joined:
                    self._work()

    def _work(self) -> None:
        read = self._client.poll()
        if not read:
            return
        self._write(b"".join(b"read %d %d %s\n" % one for one in read))
        refused = self._client.commit()
        if refused is not None:
            self._write(b"refused %s\n" % refused.encode())

    def _tell(self, what: str, partitions: Iterable[int]) -> None:
        shown = ",".join(str(number) for number in sorted(partitions))
        self._write(f"{what} {shown}\n".encode())

    def _write(self, lines: bytes) -> None:
        self._journal.write(lines)
        self._journal.flush()

    def _command(self) -> bytes | None:
        """Return a command, b"" at the end of the input, None where there is none at present."""
        os.set_blocking(0, not self._joined)
        try:
            return os.read(0, 1)
        except BlockingIOError:
            return None


def main(clients: Clients) -> None:
    """Run the member that the command line describes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", choices=sorted(clients), required=True)
    parser.add_argument("--session-ms", type=int, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    for name in ("bootstrap", "topic", "group"):
        parser.add_argument(f"--{name}", required=True)
    Program(clients, parser.parse_args()).run()


if __name__ == "__main__":
    main({"kclient": Own})
