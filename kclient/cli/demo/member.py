"""One member of the demonstration's consumer group, as a process of its own.

It writes a line for each record to its journal, flushes the journal to the disk, and then commits.
If it is killed in between, another member reads those records again. None is lost.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from kclient import Consumer, ConsumerRecord
from kclient.cli.config_file import load_config_file
from kclient.consumer.consumer_config import CONSUMER_CONFIG


def main(arguments: list[str] | None = None) -> int:
    """Consume until the input is closed."""
    parser = argparse.ArgumentParser(prog="kclient-demo-member")
    parser.add_argument("--config-file", required=True, type=Path)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--journal", required=True, type=Path)
    options = parser.parse_args(arguments)
    # The parent closes the input when it is done, or when it ends.
    os.set_blocking(sys.stdin.fileno(), False)
    consumer = Consumer(
        {
            **load_config_file(options.config_file).options_for(CONSUMER_CONFIG),
            "group.id": options.group,
            "client.id": options.journal.stem,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
            "max.poll.records": 2_000,
        }
    )
    with consumer, options.journal.open("a", encoding="ascii") as journal:
        consumer.subscribe(options.topic)
        while sys.stdin.buffer.read(1) != b"":
            records = consumer.poll(0.2)
            if not records:
                continue
            journal.writelines(journal_line(record) for record in records)
            journal.flush()
            os.fsync(journal.fileno())
            consumer.commit()
    return 0


def journal_line(record: ConsumerRecord) -> str:
    """Return the journal line of a record: partition, offset, carrier, departure delay."""
    delay = json.loads(record.value or b"{}").get("dep_delay")
    carrier = (record.key or b"").decode()
    return f"{record.partition} {record.offset} {carrier} {'-' if delay is None else delay}\n"


if __name__ == "__main__":
    sys.exit(main())
