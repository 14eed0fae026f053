"""Worker that books payments exactly once: reads them, and writes one booking for each.

The bookings and the offsets of the payments are one transaction. If the worker dies, the worker
that is started next with its number fences it and continues at the committed offsets. SIGTERM and
Ctrl-C stop it after the present transaction.

Run it with ``python examples/booking_worker.py localhost:9092 1``; start more workers with other
numbers to share the work. Readers of the bookings need ``isolation_level="read_committed"``.
"""

import signal
import sys

from kclient import Consumer, Producer
from kclient.consumer import ConsumerRecords
from kclient.serialization import json_deserializer, json_serializer
from kclient.transactions import TransactionalLoop

PAYMENTS, BOOKINGS = "payments", "bookings"

Records = ConsumerRecords[bytes | None, dict[str, int] | None]


def book(records: Records, producer: Producer[bytes | None, object]) -> None:
    """Write a booking for each payment."""
    for payment in records:
        if payment.value is None:
            continue
        booking = {"amount": payment.value["amount"], "payment": payment.offset}
        producer.send(BOOKINGS, booking, payment.key)
    print(f"booking {len(records)} payments", flush=True)


def main(bootstrap: str, number: str) -> None:
    """Book until SIGTERM or Ctrl-C."""

    def new_producer() -> Producer[bytes | None, object]:
        return Producer(
            bootstrap_servers=bootstrap,
            transactional_id=f"booking-{number}",
            value_serializer=json_serializer,
        )

    with Consumer(
        bootstrap_servers=bootstrap,
        group_id="booking",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=6_000,  # time after which others take over from a worker that has died
        value_deserializer=json_deserializer,
    ) as consumer:
        consumer.subscribe(PAYMENTS)
        loop = TransactionalLoop(consumer, new_producer, book)
        for number_of_signal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number_of_signal, lambda *_: loop.stop())
        loop.run()
    print("stopped")


if __name__ == "__main__":
    main(*sys.argv[1:])
