"""Programs that exit, fork or crash with an open consumer.

`python -m tests.support.processes.consumer_trials TRIAL BOOTSTRAP TOPIC` prints its results as
JSON lines:

die    processes records of three polls, commits the first two, and waits to be killed
exit   joins the group and ends without close
fork   forks while it is a member; the child tries every call and exits, the parent reads on
"""

import json
import os
import sys
from collections.abc import Callable

from kclient import Consumer, TopicPartition
from kclient.common.errors import ForkedClientError

GROUP = "trials"
AT_MOST = 7
FORK_SESSION_MS = 20_000  # long enough for slow machines; a wait for its end is noticed


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def member(
    bootstrap: str, topic: str, *, auto_commit: bool = True, session_ms: int = 1_500
) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
        session_timeout_ms=session_ms,
        max_poll_records=AT_MOST,
        enable_auto_commit=auto_commit,
    )
    consumer.subscribe(topic)
    return consumer


def some(consumer: Consumer) -> list[int]:
    """Return the offsets of the next records."""
    while not (records := consumer.poll(0.2)):
        pass
    return [record.offset for record in records]


def die(bootstrap: str, topic: str) -> None:
    consumer = member(bootstrap, topic, auto_commit=False)
    processed = some(consumer)
    consumer.commit()
    processed += some(consumer)
    consumer.commit()
    committed = len(processed)
    processed += some(consumer)
    say(processed=processed, committed=committed)
    sys.stdin.read()


def leave_open(bootstrap: str, topic: str) -> None:
    consumer = member(bootstrap, topic)
    say(read=some(consumer))
    globals()["kept"] = consumer  # alive until the interpreter exits


def fork(bootstrap: str, topic: str) -> None:
    consumer = member(bootstrap, topic, session_ms=FORK_SESSION_MS)
    first = [next(consumer).offset for _ in range(2)]
    generation = consumer.group_metadata().generation_id
    pid = os.fork()
    if pid == 0:
        say(child={name: _outcome(call) for name, call in _calls(consumer, topic).items()})
        consumer.close()
        sys.exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    rest = [next(consumer).offset for _ in range(20)]
    same = consumer.group_metadata().generation_id == generation
    consumer.close()
    say(parent=first + rest, code=code, same_generation=same)


def _calls(consumer: Consumer, topic: str) -> dict[str, Callable[[], object]]:
    partition = TopicPartition(topic, 0)
    return {
        "next": lambda: next(consumer),
        "poll": lambda: consumer.poll(0),
        "commit": consumer.commit,
        "commit_async": consumer.commit_async,
        "seek": lambda: consumer.seek(partition, 0),
        "position": lambda: consumer.position(partition),
        "pause": lambda: consumer.pause(partition),
        "assignment": consumer.assignment,
        "subscribe": lambda: consumer.subscribe(topic),
        "unsubscribe": consumer.unsubscribe,
        "committed": lambda: consumer.committed([partition]),
        "end_offsets": lambda: consumer.end_offsets([partition]),
        "group_metadata": consumer.group_metadata,
        "metrics": consumer.metrics,
        "wakeup": consumer.wakeup,
    }


def _outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except ForkedClientError as error:
        return str(error)
    return "no error"


if __name__ == "__main__":
    {"die": die, "exit": leave_open, "fork": fork}[sys.argv[1]](*sys.argv[2:4])
