"""Reader of a topic that checks each record against the guarantees."""

from kclient import Consumer, TopicPartition
from tests.support.checks.audit import Audit
from tests.support.checks.waiting import wait_until
from tests.support.clients.background_thread import BackgroundThread


class Auditor(BackgroundThread):
    """Reads a topic into an `Audit` while brokers restart."""

    def __init__(self, bootstrap: str, places: list[TopicPartition]) -> None:
        super().__init__("auditor", "poll()")
        self.audit = Audit()
        self._consumer = Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._places = places

    def look(self) -> None:
        """Fail if anything is wrong with the topic."""
        self.check()
        assert self.audit.faults == [], self.audit.faults

    def await_end(self, ends: dict[TopicPartition, int], timeout: float = 60.0) -> None:
        """Return when it has read up to these offsets."""
        wanted = {place.partition: end for place, end in ends.items() if end}

        def ended() -> bool:
            self.look()
            return self.audit.ends == wanted

        wait_until(ended, f"the auditor has read up to {wanted}", timeout)

    def run(self) -> None:
        with self._consumer as consumer:
            consumer.assign(self._places)
            while not self.stopping.is_set():
                for one in consumer.poll(0.2):
                    self.audit.note(one.partition, one.offset, one.value or b"")
