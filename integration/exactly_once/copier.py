"""Process that copies the records of a topic, in transactions or at least once.

``python -m integration.exactly_once.copier BOOTSTRAP SOURCE TARGET ID MODE DIES`` copies until it
is ended. With DIES above 0 it kills itself at the DIES-th batch, when the results are written and
the offsets are not committed.
"""

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from kclient import Consumer, OffsetAndMetadata, Producer, TopicPartition
from kclient.consumer import ConsumerRecords
from kclient.transactions import TransactionalLoop

TRANSACTION_TIMEOUT_MS = 3_000
SESSION_TIMEOUT_MS = 2_000
RECORDS_PER_BATCH = 100

Records = ConsumerRecords[Any, Any]


class Copier:
    """Copies each record to the same partition of another topic."""

    def __init__(self, bootstrap: str, target: str, dies_at: int) -> None:
        self.bootstrap = bootstrap
        self._target = target
        self._dies_at = dies_at
        self._batches: Iterator[int] = itertools.count(1)

    def copy(self, records: Records, producer: Producer[Any, Any]) -> None:
        """Send copies; die when they are written, if it is time to."""
        for each in records:
            producer.send(self._target, each.value, partition=each.partition)
        if next(self._batches) == self._dies_at:
            producer.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    def exactly_once(self, consumer: Consumer[Any, Any], name: str) -> None:
        def new_producer() -> Producer[Any, Any]:
            return Producer(
                bootstrap_servers=self.bootstrap,
                transactional_id=name,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            )

        TransactionalLoop(consumer, new_producer, self.copy).run()

    def at_least_once(self, consumer: Consumer[Any, Any]) -> None:
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            while True:
                records = consumer.poll(0.5)
                self.copy(records, producer)
                producer.flush()
                consumer.commit(
                    {
                        TopicPartition(*partition): OffsetAndMetadata(
                            records.records(partition)[-1].offset + 1
                        )
                        for partition in records.partitions()
                    }
                )


def main(bootstrap: str, source: str, target: str, name: str, mode: str, dies_at: str) -> None:
    """Copy until the process is ended."""
    copier = Copier(bootstrap, target, int(dies_at))
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id=f"{target}-copiers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        max_poll_records=RECORDS_PER_BATCH,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=500,
    ) as consumer:
        consumer.subscribe(source)
        if mode == "exactly-once":
            copier.exactly_once(consumer, name)
        else:
            copier.at_least_once(consumer)


if __name__ == "__main__":
    main(*sys.argv[1:])
