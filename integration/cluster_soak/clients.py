"""All clients of a run, checked while brokers stop and start."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from integration.cluster_soak.admin_load import AdminLoad
from integration.cluster_soak.fleet import Fleet
from integration.cluster_soak.group_reader import GroupReader
from integration.cluster_soak.plan import (
    PARTITIONS,
    RECREATED,
    SESSION_MS,
    TOPIC,
    TRANSACTION_PARTITIONS,
    TRANSACTIONS,
    Plan,
    recreated_writing,
    writings,
)
from integration.cluster_soak.transactions import TransactionalWriter
from integration.soak.crowd import Crowd
from kclient import TopicPartition
from kclient.common.errors import KafkaError
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import wait_until
from tests.support.clients.clients import Clients
from tests.support.clients.group_member import Membership
from tests.support.clients.writer import Writing
from tests.support.processes.vital_signs import VitalSigns
from tests.support.processes.writer_process import WriterProcess

_SAMPLE_S = 5.0
_READY_S = 120.0
_MAX_POLL_MS = 120_000


class CampaignClients(Closing):
    """Writers and groups on the main topic, transactions, a recreated topic and an admin client.

    The clients whose memory is watched, the writers and the members of the groups on the main
    topic, are processes of their own.

    Attributes:
        bootstrap: Address of the brokers.
        writers: The writers of the main topic, with their configurations.
        crowds: The groups on the main topic, by name.
        transactions: Writes transactions.
        committed: Reads them with read_committed.
        recreated: The writer of the topic that is recreated, with its configuration.
        recreated_reader: A member of a group that reads that topic.
        admin: Calls the methods of an admin client.
        signs: Resources used by the client processes.
        faults: Errors found while they ran.
    """

    def __init__(self, fleet: Fleet, directory: Path, plan: Plan) -> None:
        self.bootstrap = bootstrap = fleet.bootstrap
        self._directory = directory
        self._next_sample = 0.0
        self._abandoned: set[str] = set()
        self.signs = VitalSigns()
        self.faults: list[str] = []
        with ExitStack() as ending:
            self._clients = ending.enter_context(Clients(bootstrap))
            self.writers = [
                (one, self._writer(one, ending)) for one in writings(bootstrap, plan.rate)
            ]
            writing = recreated_writing(bootstrap, plan.rate)
            self.recreated = (writing, self._writer(writing, ending))
            self.crowds = {
                name: ending.enter_context(Crowd(self._clients, TOPIC, name, cast, directory))
                for name, cast in plan.groups.items()
            }
            transactions = TransactionalWriter(
                bootstrap, TRANSACTIONS, TRANSACTION_PARTITIONS, plan.seed
            )
            self.transactions = ending.enter_context(transactions)
            self.committed = self._reader(TRANSACTIONS, "read_committed", ending)
            self.recreated_reader = self._reader(RECREATED, "read_uncommitted", ending)
            self.admin = ending.enter_context(AdminLoad(bootstrap, TOPIC, next(iter(plan.groups))))
            self._ending = ending.pop_all()

    def await_work(self) -> None:
        """Returns when every writer writes and every group reads."""
        wait_until(self._all_work, "every writer writes and every group reads", _READY_S)

    def observe(self) -> None:
        """Checks every client once. An error becomes a fault, and the run continues."""
        for _, writer in [*self.writers, self.recreated]:
            self.guard(writer.name, writer.look)
        for name, crowd in self.crowds.items():
            self.guard(f"group {name}", crowd.history.look)
        for thread in (self.transactions, self.committed, self.recreated_reader, self.admin):
            self.guard(thread.name, thread.check)
        if time.monotonic() > self._next_sample:
            self._next_sample = time.monotonic() + _SAMPLE_S
            self._sample()

    def finish(self) -> None:
        """Ends the writers, and waits until the groups have read and committed everything."""
        for _, writer in [*self.writers, self.recreated]:
            self.guard(writer.name, writer.close)
        self.guard(self.transactions.name, self.transactions.finish)
        places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = self._clients.consumer().end_offsets(places)
        for name, crowd in self.crowds.items():
            self.guard(f"group {name}", partial(crowd.history.await_end, ends, _READY_S))

    def guard(self, what: str, look: Callable[[], object]) -> None:
        """Calls `look` unless it has failed before. An exception becomes a fault."""
        if what in self._abandoned:
            return
        try:
            look()
        except KafkaError:
            return  # of the admin client that looks up commits; the next look repeats the request
        except (AssertionError, OSError, TimeoutError) as error:
            self._abandoned.add(what)
            notes = " ".join(getattr(error, "__notes__", ()))
            self.faults.append(f"{what}: {error} {notes}".strip())

    def journals(self, group: str) -> list[Path]:
        """Returns the journals of all members of a group on the main topic."""
        return sorted(one for one in self._directory.glob(f"{group}-*") if one.suffix != ".log")

    def close(self) -> None:
        self._ending.close()

    def _writer(self, writing: Writing, ending: ExitStack) -> WriterProcess:
        return ending.enter_context(WriterProcess(writing, self._directory, journal=True))

    def _reader(self, topic: str, isolation: str, ending: ExitStack) -> GroupReader:
        member = Membership(
            self._clients.bootstrap,
            f"{topic}-readers",
            SESSION_MS,
            _MAX_POLL_MS,
            isolation=isolation,
        )
        return ending.enter_context(GroupReader(member, topic))

    def _all_work(self) -> bool:
        self.observe()
        assert self.faults == [], self.faults
        return (
            all(writer.acknowledged for _, writer in [*self.writers, self.recreated])
            and all(crowd.history.ledger.committed for crowd in self.crowds.values())
            and bool(self.committed.reads and self.recreated_reader.reads)
        )

    def _sample(self) -> None:
        for name, pid in self._watched():
            self.guard(f"signs of {name}", partial(self.signs.sample, name, pid))

    def _watched(self) -> Iterator[tuple[str, int]]:
        for _, writer in [*self.writers, self.recreated]:
            yield f"writer {writer.name}", writer.pid
        for name, crowd in self.crowds.items():
            for number, member in enumerate(crowd.history.members):
                yield f"member {name}-{number}", member.pid
