"""Reads everything that is in a topic, as it comes, and holds it to what was promised."""

import threading
from types import TracebackType
from typing import Self

from kclient import Consumer, TopicPartition
from tests.support.audit import Audit
from tests.support.waiting import wait_until


class Auditor:
    """An `Audit` in a thread that lives through everything the brokers do."""

    def __init__(self, bootstrap: str, places: list[TopicPartition]) -> None:
        self.audit = Audit()
        self._consumer = Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._places = places
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="auditor", daemon=True)

    def look(self) -> None:
        """Fail if anything is wrong with the topic."""
        if self._failure is not None:
            raise self._failure
        assert self.audit.faults == [], self.audit.faults

    def await_end(self, ends: dict[TopicPartition, int], timeout: float = 60.0) -> None:
        """Return when it has read up to these offsets."""
        wanted = {place.partition: end for place, end in ends.items() if end}

        def ended() -> bool:
            self.look()
            return self.audit.ends == wanted

        wait_until(ended, f"the auditor has read up to {wanted}", timeout)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "poll() does not return"

    def _run(self) -> None:
        try:
            with self._consumer as consumer:
                consumer.assign(self._places)
                while not self._stopping.is_set():
                    for one in consumer.poll(0.2):
                        self.audit.note(one.partition, one.offset, one.value or b"")
        except BaseException as error:  # noqa: BLE001 (whoever looks raises it)
            self._failure = error
