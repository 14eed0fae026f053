"""Orders through a topic: a producer that learns every outcome, a group that commits by hand.

Run it with ``python examples/orders.py``; it brings its own broker. Give an address, as in
``python examples/orders.py localhost:9092``, to use another one.
"""

import sys
from collections import Counter

from kclient import Consumer, Producer, RecordMetadata
from kclient.common.errors import KafkaError
from kclient.serialization import (
    json_deserializer,
    json_serializer,
    string_deserializer,
    string_serializer,
)
from kclient.testing import EmbeddedCluster

TOPIC = "orders"
COUNT = 1_000
CUSTOMERS = ("ada", "grace", "barbara", "frances")


def send_orders(bootstrap: str) -> None:
    """Send orders, keyed by customer so that each customer's stay in order."""
    failures: list[KafkaError] = []

    def outcome(_: RecordMetadata | None, error: KafkaError | None) -> None:
        if error is not None:
            failures.append(error)

    with Producer(
        bootstrap_servers=bootstrap,
        key_serializer=string_serializer,
        value_serializer=json_serializer,
        compression_type="lz4",
    ) as producer:
        for number in range(COUNT):
            customer = CUSTOMERS[number % len(CUSTOMERS)]
            order = {"number": number, "cents": 100 + number}
            producer.send(TOPIC, order, key=customer, on_delivery=outcome)
        producer.flush(timeout=30)
    if failures:
        raise failures[0]


def bill_orders(bootstrap: str) -> Counter[str]:
    """Add up what each customer owes, committing after each batch of work."""
    owed: Counter[str] = Counter()
    seen = 0
    with Consumer(
        bootstrap_servers=bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        key_deserializer=string_deserializer,
        value_deserializer=json_deserializer,
    ) as consumer:
        consumer.subscribe(TOPIC)
        while seen < COUNT:
            for record in consumer.poll(timeout=1.0):
                if record.key is not None and record.value is not None:
                    owed[record.key] += record.value["cents"]
                seen += 1
            consumer.commit()
    return owed


def run(bootstrap: str) -> None:
    """Send, bill, print."""
    send_orders(bootstrap)
    for customer, cents in sorted(bill_orders(bootstrap).items()):
        print(f"{customer:<8} {cents / 100:>9.2f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        with EmbeddedCluster() as cluster:
            run(cluster.bootstrap_servers)
