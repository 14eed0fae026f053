"""Application that copies records exactly once, in a `TransactionalLoop`."""

from collections.abc import Callable
from typing import Any

from kclient import Consumer, Producer
from kclient.common.broker_errors import CorruptRecordError
from kclient.common.errors import FatalError, KafkaError, KafkaTimeoutError
from kclient.consumer.consumer_records import ConsumerRecords
from kclient.transactions import TransactionalLoop
from tests.simulation.application import SERVERS, BlockingApplication, Stage, is_fenced
from tests.simulation.history import (
    Began,
    CommitWanted,
    Crashed,
    Damaged,
    Fenced,
    ProducerStarted,
    Wrote,
)
from tests.simulation.scenario import COPIERS_GROUP, COPY, INPUT_TOPIC, OUTPUT_TOPIC

_FAILURE_CHANCE = 0.03
_SLOW_CHANCE = 0.04
_RETRY_S = 0.1


class ProcessingError(Exception):
    """The application could not process its records."""


class _SlowProducer(Producer[bytes, bytes]):
    """Producer in a thread that is delayed between sending offsets and the commit.

    Attributes:
        delay: Delays the thread, at times.
    """

    delay: Callable[[], None]

    def send_offsets_to_transaction(self, *given: Any, **options: Any) -> None:
        """Send offsets; then a delay may follow."""
        super().send_offsets_to_transaction(*given, **options)
        self.delay()


class CopierApplication(BlockingApplication):
    """Member of the group of copiers, with the transactional id of its machine.

    A copy is ``<value>><transaction>``, in the partition of the value.
    """

    def __init__(self, stage: Stage, machine: str, name: str) -> None:
        self._count = 0
        self._loop: TransactionalLoop[bytes | None, bytes | None] | None = None
        super().__init__(stage, machine, name)

    def stop(self) -> None:
        """End after the present transaction."""
        self.stopping = True
        if self._loop is not None:
            self._loop.stop()

    def block(self) -> None:
        """Copy until `stop`, or until another process has the transactional id."""
        scenario, runtime = self.stage.scenario, self.process.runtime
        with Consumer(
            {**scenario.consumer, **scenario.copier_consumer},
            bootstrap_servers=SERVERS,
            group_id=COPIERS_GROUP,
            runtime=runtime,
        ) as consumer:
            consumer.subscribe([INPUT_TOPIC])
            self._loop = TransactionalLoop(consumer, self._new_producer, self._copy, runtime)
            while not self.stopping and self._run(self._loop):
                self.process.sleep(_RETRY_S)

    def _run(self, loop: TransactionalLoop[bytes | None, bytes | None]) -> bool:
        """Run the loop; return whether it may run again."""
        try:
            loop.run()
        except ProcessingError:
            return True
        except CorruptRecordError as error:
            self.note(Damaged, self.machine, str(error))
        except FatalError as error:
            if is_fenced(error):
                self.note(Fenced, self.machine, f"{error!r} {error.__cause__!r}", False)
            else:
                self.note(Crashed, f"{type(error).__name__}: {error}")
            return False
        except KafkaTimeoutError as error:
            if not self.stopping:
                self.note(Crashed, f"{type(error).__name__}: {error}")
        except KafkaError as error:
            self.note(Crashed, f"{type(error).__name__}: {error}")
        return True

    def _new_producer(self) -> Producer[bytes, bytes]:
        self.note(ProducerStarted, self.machine)
        producer = _SlowProducer(
            self.stage.scenario.copier,
            bootstrap_servers=SERVERS,
            transactional_id=self.machine,
            runtime=self.process.runtime,
        )
        producer.delay = self._delay
        return producer

    def _delay(self) -> None:
        """Take a time, at random, that may be longer than a session or a transaction."""
        if not self.stage.faults_are_over and self.lot.random() < _SLOW_CHANCE:
            timeout_s = float(str(self.stage.scenario.copier["transaction_timeout_ms"])) / 1000.0
            self.process.sleep(self.lot.uniform(0.0, 1.5) * timeout_s)

    def _copy(
        self, records: ConsumerRecords[bytes | None, bytes | None], producer: Producer[bytes, bytes]
    ) -> None:
        self._count += 1
        transaction = f"{self.name}/{self._count}"
        self.note(Began, transaction)
        for record in records:
            value = f"{bytes(record.value or b'').decode()}{COPY}{transaction}"
            self.note(Wrote, transaction, OUTPUT_TOPIC, record.partition, value)
            producer.send(OUTPUT_TOPIC, value.encode(), partition=record.partition)
            if self.lot.random() < _FAILURE_CHANCE / len(records):
                raise ProcessingError(transaction)
        self._delay()
        self.note(CommitWanted, transaction)
