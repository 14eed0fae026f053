"""Members of a consumer group in processes of their own, and the invariants of their group."""

import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kclient import AdminClient, TopicPartition
from tests.support.checks.ledger import Ledger
from tests.support.checks.waiting import wait_until
from tests.support.clients.foreign_record import ForeignRecord
from tests.support.clients.group_member import JOIN, LEAVE, STALL, Membership
from tests.support.processes.child_process import ChildProcess

_END_S = 30.0
_MOST_LATE = 500  # records of one poll, whose commit is refused


class Read(NamedTuple):
    """A record that a member has processed."""

    partition: int
    offset: int
    value: bytes


class MemberProcess(ChildProcess):
    """A process of `group_member`; the end of the block kills it if it still runs.

    Attributes:
        client: Its client.
        name: Its name in failures.
        read: Number of records it has processed, as of the last `look`.
        owned: Its partitions, as of the last `look`.
        refusals: Errors of its commits.
        assignments: Number of assignments, empty ones included.
        begun: Offset at which it started to read each partition after its last assignment.
        generation: The group's generation at the last assignment; -1 if it does not
            report it.
    """

    def __init__(
        self,
        member: Membership,
        topic: str,
        journal: Path,
        *,
        client: str = "kclient",
        program: Path | None = None,
    ) -> None:
        """Start a member.

        Args:
            client: Client of the member: kclient or one of `foreign_group_member`.
            program: Command of a member of any other client.
        """
        self.client = client
        self.read = 0
        self.generation = -1
        self.owned: set[int] = set()
        self.refusals: list[str] = []
        self.assignments = 0
        self.begun: dict[int, int] = {}
        self._expected: dict[int, int] = {}
        self._notified = (0, 0, 0)  # the broker's notifications at its last late record
        self._late = 0  # number of late records since then
        journal.touch()
        self._journal = journal.open("rb")
        self._rest = b""
        module = "group_member" if client == "kclient" else "foreign_group_member"
        command = [sys.executable, "-m", f"tests.support.clients.{module}"]
        command = command if program is None else [str(program)]
        command += [
            "--client",
            client,
            "--topic",
            topic,
            "--journal",
            str(journal),
            *member.arguments(),
        ]
        super().__init__(command, journal.parent, name=f"{client} {journal.stem}")

    def look(self) -> list[Read]:
        """Return what it has processed since the last look; fail if it skipped or repeated."""
        fresh: list[Read] = []
        *lines, self._rest = (self._rest + self._journal.read()).split(b"\n")
        for line in lines:
            what, _, rest = line.partition(b" ")
            if what == b"read":
                partition, offset, value = rest.split(b" ", 2)
                fresh.append(Read(int(partition), int(offset), value))
                self._note(fresh[-1])
            elif what == b"refused":
                self.refusals.append(rest.decode())
            elif what == b"generation":
                self._note_generation(int(rest))
            elif what != b"at":
                self._note_move(what, {int(number) for number in rest.split(b",") if number})
        code = self.exit_code()
        assert code in {None, 0, -signal.SIGKILL}, f"{self.name} ended with {code}: {self.report()}"
        self.read += len(fresh)
        return fresh

    def note_late(self, record: Read) -> None:
        """Accept a record that another member owns: the broker has to notify the member soon."""
        reported = (self.assignments, len(self.refusals), len(self.owned))
        if reported != self._notified:
            self._notified, self._late = reported, 0
        self._late += 1
        assert self._late <= _MOST_LATE, (
            f"{self.name} read {record}, which another group member has"
        )

    def leave(self) -> None:
        """Make it unsubscribe."""
        self.enter(LEAVE)

    def join(self) -> None:
        """Make it subscribe again."""
        self.enter(JOIN)

    def stall(self) -> None:
        """Make it exceed ``max.poll.interval.ms``."""
        self.enter(STALL)

    def close(self) -> None:
        """Make it close its consumer and exit; wait for the exit."""
        self.close_input()
        self.finish(timeout=_END_S)

    def __exit__(self, *error: object) -> None:
        super().__exit__(None, None, None)
        self._journal.close()

    def _note(self, record: Read) -> None:
        partition, offset, _ = record
        assert partition in self.owned, f"{self.name} read {record} of a partition it does not own"
        if partition not in self._expected:
            self.begun[partition] = offset
        expected = self._expected.get(partition, offset)
        assert offset == expected, f"{self.name} read {record}, expected offset {expected}"
        self._expected[partition] = offset + 1

    def _note_generation(self, generation: int) -> None:
        # The same one comes twice if the broker was killed during the leave request.
        before, self.generation = self.generation, generation
        assert generation >= before, f"{self.name}: generation {before}, then {generation}"

    def _note_move(self, what: bytes, partitions: set[int]) -> None:
        if what == b"assigned":
            self.owned |= partitions
            self.assignments += 1
        else:
            assert what in {b"revoked", b"lost"}, f"{self.name}: {what!r}"
            self.owned -= partitions
        for partition in partitions:
            self._expected.pop(partition, None)


class GroupHistory:
    """History of a group, checked at every look; see `Ledger`.

    Attributes:
        members: All members, former ones included.
        reads: All processed records, repetitions included, as of the last `look`; none
            with `keep_reads` false.
        ledger: Processed records and commits, as of the last `look`.
    """

    def __init__(
        self, admin: AdminClient, topic: str, group: str, *, keep_reads: bool = True
    ) -> None:
        self.members: list[MemberProcess] = []
        self.reads: list[Read] = []
        self.ledger = Ledger()
        self._keep_reads = keep_reads
        self._admin = admin
        self._topic = topic
        self._group = group

    def look(self) -> None:
        """Read the commits before the journals, so that the journals are ahead of them."""
        positions = self._admin.list_consumer_group_offsets(self._group)
        for member in self.members:
            fresh = member.look()
            if self._keep_reads:
                self.reads += fresh
            for record in fresh:
                self._note_read(member, record)
        self.ledger.note_committed({one.partition: at.offset for one, at in positions.items()})

    def _note_read(self, member: MemberProcess, record: Read) -> None:
        begun = member.begun[record.partition]
        # Other clients return what they have fetched after the end of their session, if they were
        # not scheduled for that long; the offset at which they begin is the broker's.
        may_be_late = member.client != "kclient" and record.offset != begun
        try:
            if not self.ledger.note_read(*record, may_be_late=may_be_late):
                member.note_late(record)
        except AssertionError as error:
            error.add_note(f"{member.name} read it, and had begun with the partition at {begun}")
            raise

    def once(self) -> list[ForeignRecord]:
        """Return every processed record, once each."""
        places = {(one.partition, one.offset): one.value for one in self.reads}
        return [
            ForeignRecord(value, value.partition(b":")[0], partition=partition, offset=offset)
            for (partition, offset), value in places.items()
        ]

    def await_sharing(
        self, members: Iterable[MemberProcess], partitions: int, timeout: float = 45.0
    ) -> None:
        """Return when these members own all partitions and continue to read."""
        sharing = list(members)
        marks = dict.fromkeys(sharing, -1)

        def shared() -> bool:
            self.look()
            owned = sorted(number for member in sharing for number in member.owned)
            if owned != list(range(partitions)) or not all(member.owned for member in sharing):
                marks.update(dict.fromkeys(sharing, -1))
                return False
            for member in sharing:
                if marks[member] < 0:
                    marks[member] = member.read
            return all(member.read > marks[member] for member in sharing)

        names = [member.name for member in sharing]
        wait_until(shared, f"{names} share {partitions} partitions and read on", timeout)

    def await_end(self, ends: dict[TopicPartition, int], timeout: float = 45.0) -> None:
        """Return when everything up to these offsets is committed."""
        wanted = {place.partition: end for place, end in ends.items() if end}

        def ended() -> bool:
            self.look()
            return self.ledger.committed == wanted

        wait_until(ended, f"everything is committed: {wanted}", timeout)
