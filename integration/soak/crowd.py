"""A group whose members join, leave, stall and are killed during a soak."""

import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Self

from integration.harness.go_programs import FRANZ_GO, franz_go_program
from kclient import TopicPartition
from tests.support.checks.closing import Closing
from tests.support.clients.clients import Clients
from tests.support.clients.group_member import Membership
from tests.support.processes.member_process import GroupHistory, MemberProcess

_SESSION_MS = 6_000


@dataclass(frozen=True, slots=True)
class Cast:
    """Members and settings of a group.

    Attributes:
        clients: The client of each member, by name.
        strategy: The assignor of all of them, by Kafka's name.
        static: Whether each place is a static member.
        isolation: As in the configuration of every consumer.
        max_poll_ms: How long a member may take between two polls.
        work_ms: How long it works on what a poll returned.
    """

    clients: Sequence[str]
    strategy: str = "range"
    static: bool = False
    isolation: str = "read_uncommitted"
    max_poll_ms: int = 8_000
    work_ms: int = 30  # so that some die between reading and committing

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``[strategy][+static]:client,client…``, or the clients alone."""
        head, _, clients = text.rpartition(":")
        words = [word for word in head.split("+") if word]
        strategies = [word for word in words if word != "static"]
        strategy = strategies[0] if strategies else "range"
        return cls(clients.split(","), strategy, static="static" in words)


class Crowd(Closing):
    """A group with a place for each client of its cast; the first member always stays.

    Attributes:
        history: Reads and commits of the group, with their checks.
        done: Counts of the events of its members.
    """

    def __init__(
        self, clients: Clients, topic: str, group: str, cast: Cast, directory: Path
    ) -> None:
        self.history = GroupHistory(clients.admin(), topic, group, keep_reads=False)
        self.done: Counter[str] = Counter()
        self._membership = Membership(
            clients.bootstrap,
            group,
            _SESSION_MS,
            cast.max_poll_ms,
            strategy=cast.strategy,
            work_ms=cast.work_ms,
            isolation=cast.isolation,
        )
        self._topic = topic
        self._cast = cast
        self._directory = directory
        self._numbers = itertools.count()
        self._away: set[int] = set()  # places whose members have unsubscribed
        self._ending = ExitStack()
        self._members = [self._start(place) for place in range(len(cast.clients))]

    @property
    def eldest(self) -> MemberProcess:
        """The member that stays."""
        return self._members[0]

    def trigger_event(self, random: Random) -> str:
        """Stop, suspend or restart a member; return a description."""
        place = random.randrange(1, len(self._members))
        member = self._members[place]
        if place in self._away:
            self._away.remove(place)
            member.join()
            what = "join"
        else:
            what = random.choice(["leave", "close", "kill", "stall"])
            self._carry_out(what, place, member)
        self.done[what] += 1
        return f"{member.name}: {what}"

    def settle(self) -> None:
        """Let all members rejoin."""
        for place in sorted(self._away):
            self._members[place].join()
        self._away.clear()

    def lag(self, ends: dict[TopicPartition, int]) -> int:
        """Return how many records are not committed, as of the last check."""
        committed = self.history.ledger.committed
        return sum(end - committed.get(place.partition, 0) for place, end in ends.items())

    def close(self) -> None:
        self._ending.close()

    def _carry_out(self, what: str, place: int, member: MemberProcess) -> None:
        if what == "leave":
            member.leave()
            self._away.add(place)
        elif what == "stall":
            member.stall()
        else:
            if what == "kill":
                member.kill()
            elif self._cast.static:
                member.close()  # the next one of that name fences it if it is still there
            else:
                member.close_input()
            self._members[place] = self._start(place)

    def _start(self, place: int) -> MemberProcess:
        name = f"{self._membership.group}-{place}-{next(self._numbers):04}"
        instance = f"place-{place}" if self._cast.static else None
        client = self._cast.clients[place]
        member = MemberProcess(
            replace(self._membership, instance=instance),
            self._topic,
            self._directory / name,
            client=client,
            program=franz_go_program("member") if client == FRANZ_GO else None,
        )
        self.history.members.append(self._ending.enter_context(member))
        return member
