"""Name look-ups in background threads, some of which hang."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from kclient.common.runtime import Address
from kclient.network.name_resolver import NameResolver
from kclient.network.system_net import SystemNet

WAIT_S = 20.0


class Resolver:
    """System resolver that blocks on names that begin with ``hang`` until it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.began = threading.Semaphore(0)
        self.hosts: list[str] = []

    def __call__(self, host: str, port: int) -> list[Address]:
        self.hosts.append(host)
        self.began.release()
        if host.startswith("hang"):
            assert self.released.wait(WAIT_S)
        if host == "unknown":
            raise OSError(-2, "Name or service not known")
        return [("10.0.0.1", port)]


@pytest.fixture
def system() -> Iterator[Resolver]:
    made = Resolver()
    yield made
    made.released.set()
    for thread in threading.enumerate():
        if thread.name == "kclient-resolver":
            thread.join(WAIT_S)
            assert not thread.is_alive()


def bell() -> tuple[threading.Event, Callable[[], None]]:
    rung = threading.Event()
    return rung, rung.set


def test_name_is_looked_up_in_background(system: Resolver) -> None:
    rung, ring = bell()
    look_up = NameResolver(system).look_up("kafka", 9092, ring)
    assert rung.wait(WAIT_S)
    assert look_up.done()
    assert look_up.addresses() == [("10.0.0.1", 9092)]


def test_failed_look_up_raises_resolver_error(system: Resolver) -> None:
    rung, ring = bell()
    look_up = NameResolver(system).look_up("unknown", 9092, ring)
    assert rung.wait(WAIT_S)
    with pytest.raises(OSError, match="not known"):
        look_up.addresses()


def test_hanging_look_up_holds_one_thread(system: Resolver) -> None:
    resolver = NameResolver(system)
    looked_up = [resolver.look_up("hang", 9092, lambda: None) for _ in range(100)]
    assert system.began.acquire(timeout=WAIT_S)
    assert system.hosts == ["hang"]
    assert not any(each.done() for each in looked_up)
    rung, ring = bell()
    other = resolver.look_up("kafka", 9092, ring)
    assert rung.wait(WAIT_S)
    assert other.done()
    rung, ring = bell()
    resolver.look_up("hang", 9092, ring)
    system.released.set()
    assert rung.wait(WAIT_S)
    assert looked_up[0].addresses() == [("10.0.0.1", 9092)]
    rung, ring = bell()
    resolver.look_up("hang", 9092, ring)
    assert rung.wait(WAIT_S)
    assert system.hosts == ["hang", "kafka", "hang"], "the outcome is not cached"


def test_look_ups_are_queued_when_all_threads_are_busy(system: Resolver) -> None:
    resolver = NameResolver(system, max_threads=2)
    for number in range(5):
        resolver.look_up(f"hang {number}", 9092, lambda: None)
    for _ in range(2):
        assert system.began.acquire(timeout=WAIT_S)
    rung, ring = bell()
    resolver.look_up("kafka", 9092, ring)
    assert not system.began.acquire(timeout=0.2)
    assert sorted(system.hosts) == ["hang 0", "hang 1"]
    system.released.set()
    assert rung.wait(WAIT_S)
    assert len(system.hosts) == 6


def test_eight_hanging_names_do_not_delay_others(system: Resolver) -> None:
    resolver = NameResolver(system)
    for number in range(8):
        resolver.look_up(f"hang {number}", 9092, lambda: None)
    for _ in range(8):
        assert system.began.acquire(timeout=WAIT_S)
    rung, ring = bell()
    look_up = resolver.look_up("kafka", 9092, ring)
    assert rung.wait(WAIT_S)
    assert look_up.addresses() == [("10.0.0.1", 9092)]


def test_look_up_fails_when_no_thread_can_start(
    system: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = NameResolver(system)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(OSError, match="no thread for the look-up of kafka"):
            resolver.look_up("kafka", 9092, lambda: None)
    rung, ring = bell()
    look_up = resolver.look_up("kafka", 9092, ring)
    assert rung.wait(WAIT_S)
    assert look_up.done()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_ip_address_needs_no_thread(host: str) -> None:
    rung, ring = bell()
    look_up = SystemNet().look_up(host, 9092, ring)
    assert look_up.done()
    assert look_up.addresses() == [(host, 9092)]
    assert not rung.is_set()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 65_536), ("a" * 70 + ".example", 1)])
def test_invalid_address_fails_without_look_up(host: str, port: int) -> None:
    look_up = SystemNet().look_up(host, port, lambda: None)
    assert look_up.done()
    with pytest.raises(OSError, match=r"expected 0 to 65535|not a host name"):
        look_up.addresses()


PROGRAM = """
import socket, threading
from kclient import Consumer, Producer
from kclient.common.errors import KafkaError

real = socket.getaddrinfo
def hang(host, port, *args, flags=0, **options):
    if host == "kafka.example" and not flags & socket.AI_NUMERICHOST:
        threading.Event().wait()
    return real(host, port, *args, flags=flags, **options)
socket.getaddrinfo = hang

def attempt(call):
    try:
        call()
    except KafkaError as error:
        print(error)

options = {
    "bootstrap_servers": "kafka.example:9092",
    "socket_connection_setup_timeout_ms": 200,
}
consumer = Consumer(group_id="g", **options)
consumer.subscribe("t")
producer = Producer(max_block_ms=600, **options)
attempt(lambda: consumer.poll(0.5))
attempt(lambda: producer.send("t", b"x"))
attempt(lambda: producer.close(0.5))
attempt(lambda: consumer.close(0.5))
print("done")
"""


def test_hanging_resolver_delays_neither_calls_nor_process_exit() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "could not look up kafka.example within" in ran.stdout
    assert ran.stdout.endswith("done\n")
