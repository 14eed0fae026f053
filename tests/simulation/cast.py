"""Who takes part in a run."""

from tests.simulation.admin_application import AdminApplication
from tests.simulation.application import Application, Stage
from tests.simulation.consumer_application import ConsumerApplication
from tests.simulation.operator import Operator
from tests.simulation.producer_application import ProducerApplication


class Cast:
    """Everybody.

    Attributes:
        stage: Where they play.
        operator: In charge of the broker.
        admin: Makes the topic.
        producers: Every producer there ever was.
        consumers: Every consumer there ever was.
        closing: Whether nobody new is to come.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.operator = Operator(stage)
        self.admin = AdminApplication(stage, "admin", "admin")
        self.producers: list[ProducerApplication] = []
        self.consumers: list[ConsumerApplication] = []
        self.closing = False
        self._lives = 0

    @property
    def applications(self) -> list[Application]:
        """Producers and consumers."""
        return [*self.producers, *self.consumers]

    def enter(self) -> None:
        """Start all producers and consumers of the scenario."""
        scenario = self.stage.scenario
        for number in range(scenario.producers):
            self.add_producer(f"p{number}")
        for group in range(scenario.groups):
            for number in range(scenario.consumers):
                self.add_consumer(f"c{group}{number}", f"g{group}")

    def complete(self) -> None:
        """See to it that every group has somebody, and let nobody else enter."""
        for number in range(self.stage.scenario.groups):
            group = f"g{number}"
            if all(each.over or each.stopping for each in self.consumers if each.group == group):
                self.add_consumer(f"c{number}-last", group)
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

    def watch(self) -> None:
        """Check what must hold after each step.

        Raises:
            AssertionError: It does not.
        """
        self.operator.watch()
        for each in self.producers:
            if not each.over:
                each.watch()
