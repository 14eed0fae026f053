"""Participants of a run."""

from tests.simulation.admin_application import AdminApplication
from tests.simulation.application import Application, Stage
from tests.simulation.checker import KILL_CLIENT
from tests.simulation.consumer_application import ConsumerApplication
from tests.simulation.copier_application import CopierApplication
from tests.simulation.dead_joiner import DeadJoiner
from tests.simulation.history import Fault
from tests.simulation.operator import Operator
from tests.simulation.producer_application import ProducerApplication
from tests.simulation.side_topic import SideTopicApplication
from tests.simulation.transaction_readers import TransactionReader
from tests.simulation.writer_application import WriterApplication

_DEAD_JOINER_MS = 2_000.0
"""Time at which the first client that joins is killed and the first member starts."""
_FIRST_MEMBER_MS = 3_000.0
"""Time until more members start: later rebalances wait for the client that was killed."""


class Cast:
    """Operator and applications.

    Attributes:
        stage: State that they share.
        operator: Operator of the broker.
        admin: Application that creates the topic.
        side: Application of a topic that is deleted and recreated, if the scenario has one.
        producers: All producers of the run, also those that ended.
        consumers: All consumers of the run, also those that ended.
        writers: All writers of transactions, also those that ended.
        copiers: All copiers of transactions, also those that ended.
        readers: Readers of what these have written.
        closing: Whether no application may be started.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.operator = Operator(stage)
        self.admin = AdminApplication(stage, "admin", "admin")
        self.side: SideTopicApplication | None = None
        self.producers: list[ProducerApplication] = []
        self.consumers: list[ConsumerApplication] = []
        self.writers: list[WriterApplication] = []
        self.copiers: list[CopierApplication] = []
        self.readers: list[TransactionReader] = []
        self.closing = False
        self._lives = 0
        self._dead_joiner: DeadJoiner | None = None

    @property
    def applications(self) -> list[Application]:
        """Producers and consumers."""
        transactional = [*self.writers, *self.copiers, *self.readers]
        return [*self.producers, *self.consumers, *transactional]

    @property
    def others(self) -> list[Application]:
        """The admin client, and the user of the side topic."""
        return [self.admin] if self.side is None else [self.admin, self.side]

    def enter(self) -> None:
        """Start all producers and consumers of the scenario."""
        scenario = self.stage.scenario
        if scenario.has_side_topic:
            self.side = SideTopicApplication(self.stage, "side", "side")
        for number in range(scenario.producers):
            self.add_producer(f"p{number}")
        self._enter_transactions()
        if scenario.dead_joiner:
            self._dead_joiner = DeadJoiner(self.stage, "dead", "dead-joiner", "g0")
            self.stage.world.clock.after(_DEAD_JOINER_MS, self._kill_dead_joiner)
        for group in range(scenario.dead_joiner, scenario.groups):
            self._enter_group(group)

    def _enter_transactions(self) -> None:
        scenario = self.stage.scenario
        for number in range(scenario.writers):
            self.add_transactional(f"w{number}")
        for number in range(scenario.copiers):
            self.add_transactional(f"k{number}")
        if scenario.writers:
            self.readers = [
                TransactionReader(self.stage, name, name, is_committed=name == "committed")
                for name in ("committed", "uncommitted")
            ]

    def _enter_group(self, group: int, first: int = 0) -> None:
        for number in range(first, self.stage.scenario.consumers):
            self.add_consumer(f"c{group}{number}", f"g{group}")

    def _kill_dead_joiner(self) -> None:
        """Kill the client after its first JoinGroup request; start the members of the group."""
        if self._dead_joiner is not None:
            victim, self._dead_joiner = self._dead_joiner, None
            now_ms = self.stage.world.clock.now_ms
            self.stage.history.add(Fault(now_ms, victim.name, KILL_CLIENT, "dead joiner"))
            victim.process.kill()
            self.add_consumer("c00", "g0")
            self.stage.world.clock.after(_FIRST_MEMBER_MS, lambda: self._enter_group(0, first=1))

    def complete(self) -> None:
        """Start a member for each group without one, then refuse further starts."""
        for number in range(self.stage.scenario.groups):
            group = f"g{number}"
            if all(each.over or each.stopping for each in self.consumers if each.group == group):
                self.add_consumer(f"c{number}-last", group)
        for number in range(self.stage.scenario.copiers):
            if all(each.over for each in self.copiers if each.machine == f"k{number}"):
                self.add_transactional(f"k{number}")
        self.closing = True

    def add_producer(self, machine: str) -> None:
        """Start a producer."""
        if not self.closing:
            self._lives += 1
            name = f"{machine}.{self._lives}"
            self.producers.append(ProducerApplication(self.stage, machine, name))

    def add_consumer(self, machine: str, group: str) -> None:
        """Start a consumer."""
        if not self.closing:
            self._lives += 1
            name = f"{machine}.{self._lives}"
            self.consumers.append(ConsumerApplication(self.stage, machine, name, group))

    def add_transactional(self, machine: str) -> None:
        """Start a writer or a copier, whose transactional id is the name of the machine."""
        if not self.closing:
            self._lives += 1
            name = f"{machine}.{self._lives}"
            if machine.startswith("w"):
                self.writers.append(WriterApplication(self.stage, machine, name))
            else:
                self.copiers.append(CopierApplication(self.stage, machine, name))

    def watch(self) -> None:
        """Check the invariants that hold after each step.

        Raises:
            AssertionError: An invariant is violated.
        """
        self.operator.watch()
        if self._dead_joiner is not None and self.operator.has_pending_members("g0"):
            self._kill_dead_joiner()
        for each in self.producers:
            if not each.over:
                each.watch()
