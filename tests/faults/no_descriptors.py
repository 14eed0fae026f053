"""Program that runs out of descriptors while its connections are cut.

Talks with the test by lines: says how far it is on stdout, waits for a line on stdin.
"""

import os
import resource
import sys

from kclient import AdminClient, Consumer, Producer, TopicPartition
from kclient.errors import KafkaError
from tests.support.clients.clients import await_topic

_TOPIC = "scarce"


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def allow(descriptors: int) -> None:
    """Let new descriptors have numbers below this one only; those that are open stay."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, most))


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 (for the test that started it)


def new_client_is_refused(servers: str) -> None:
    for kind in (Producer, Consumer, AdminClient):
        try:
            kind(bootstrap_servers=servers)
        except OSError as error:
            say("refused", kind.__name__, error.strerror)


def main(servers: str) -> None:
    usual, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (
        Producer(bootstrap_servers=servers, max_block_ms=250, linger_ms=0) as producer,
        Consumer(
            bootstrap_servers=servers, default_api_timeout_ms=250, enable_auto_commit=False
        ) as consumer,
        AdminClient(bootstrap_servers=servers) as admin,
    ):
        where = TopicPartition(_TOPIC, 0)
        await_topic(producer, _TOPIC)
        producer.send(_TOPIC, b"0").result(10)
        consumer.assign([where])
        consumer.seek(where, 0)
        while not consumer.poll(1.0):
            pass
        admin.list_topics()
        before = open_descriptors()
        allow(3)
        say("full")
        sys.stdin.readline()  # the connections are cut now
        waiting = producer.send(_TOPIC, b"1")
        for ask in (
            lambda: producer.send("unheard-of", b"v"),
            lambda: consumer.end_offsets([where]),
            lambda: admin.list_topics(timeout=0.25),
        ):
            try:
                ask()
            except KafkaError as error:
                say("error", error.retriable, error)
        say("done", waiting.done())
        new_client_is_refused(servers)
        allow(usual)
        say("offset", waiting.result(10).offset)
        say("end", consumer.end_offsets([where], timeout=10)[where])
        say("topics", bool(admin.list_topics(timeout=10)))
        say("value", next(iter(consumer.poll(10.0))).value)
        say("leaked", open_descriptors() - before)


if __name__ == "__main__":
    main(sys.argv[1])
