"""Records as columns: a topic read into Arrow without a Python object per record.

Run it with ``python examples/columns.py``; it needs pyarrow and brings its own broker.
"""

import pyarrow as pa
import pyarrow.compute as pc

from kclient import AdminClient, Consumer, NewTopic, Producer, TopicPartition
from kclient.testing import EmbeddedCluster

TOPIC = "measurements"
COUNT = 100_000


def main() -> None:
    """Write numbers, read them back as a table, and let Arrow add them up."""
    with EmbeddedCluster() as cluster:
        bootstrap = cluster.bootstrap_servers
        with AdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(
                [NewTopic(TOPIC, num_partitions=1)]
            ).raise_for_errors().raise_for_errors()
        with Producer(bootstrap_servers=bootstrap) as producer:
            sent = producer.send_many(TOPIC, [str(number).encode() for number in range(COUNT)])
            print(f"sent {sent.result(timeout=30):,} records")
        batches: list[pa.RecordBatch] = []
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            while sum(batch.num_rows for batch in batches) < COUNT:
                batches.append(consumer.poll_columns(timeout=1.0, max_records=50_000))
    table = pa.Table.from_batches(batches)
    numbers = pc.cast(pc.cast(table["value"], pa.string()), pa.int64())
    print(f"read {table.num_rows:,} records, sum of the values {pc.sum(numbers).as_py():,}")


if __name__ == "__main__":
    main()
