"""Asyncio worker: processes the records of a topic concurrently, with a bound, and commits them.

The records of each `poll` are processed at the same time, at most `CONCURRENCY` of them, and their
offsets are committed when all are done. SIGTERM and Ctrl-C stop the worker after the present
records: it commits them and leaves its group, so that other workers continue there at once. If the
processing of a record fails, the worker ends without a commit, and the records are processed again.

Run it with ``python examples/order_worker.py localhost:9092``, in several processes if one is not
enough.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from kclient import ConsumerRecord
from kclient.aio import Consumer
from kclient.errors import CommitFailedError

TOPIC = "jobs"
CONCURRENCY = 20

Record = ConsumerRecord[bytes | None, bytes | None]


async def process(record: Record) -> None:
    """Process a record; in place of a request to another service."""
    await asyncio.sleep(0.01)
    print(f"processed {record.partition}-{record.offset}", flush=True)


async def work(
    consumer: Consumer[bytes | None, bytes | None],
    process: Callable[[Record], Awaitable[None]],
    stop: asyncio.Event,
) -> None:
    """Process and commit records until `stop` is set."""
    free = asyncio.Semaphore(CONCURRENCY)

    async def process_one(record: Record) -> None:
        async with free:
            await process(record)

    while not stop.is_set():
        records = await consumer.poll(timeout=1.0)
        if not records:
            continue
        async with asyncio.TaskGroup() as tasks:
            for record in records:
                tasks.create_task(process_one(record))
        try:
            await consumer.commit()
        except CommitFailedError as error:  # the partitions have another owner by now
            print(f"these records are processed again: {error}", file=sys.stderr)


async def main(bootstrap: str) -> None:
    """Work until SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with Consumer(
        bootstrap_servers=bootstrap,
        group_id="workers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=100,  # all of them are processed before the worker stops
    ) as consumer:
        consumer.subscribe(TOPIC)
        await work(consumer, process, stop)
    print("stopped")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
