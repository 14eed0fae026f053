"""Ctrl-C while a client is constructed leaves no thread, socket or file open."""

import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kclient import AdminClient, Consumer, Producer
from tests.support.checks.interrupts import Interruption, at_every_place
from tests.support.checks.waiting import wait_until
from tests.support.processes.process_stats import open_descriptors

CLOSED_PORT = "127.0.0.1:1"


def construct_at(construct: Callable[[], Any], interruption: Interruption) -> bool:
    threads, descriptors = set(threading.enumerate()), open_descriptors(os.getpid())
    clients: list[Any] = []
    struck = interruption.during(lambda: clients.append(construct()))
    while clients:
        clients.pop().close()

    def nothing_is_left() -> bool:
        if open_descriptors(os.getpid()) == descriptors and set(threading.enumerate()) <= threads:
            return True
        gc.collect()  # a client that is half constructed is referenced by its own callbacks
        return False

    wait_until(nothing_is_left, f"nothing is left by Ctrl-C at {interruption.place}", timeout=20)
    return struck


@pytest.mark.fault("W18")
@pytest.mark.parametrize(
    "construct",
    [
        partial(Producer, bootstrap_servers=CLOSED_PORT),
        partial(Consumer, bootstrap_servers=CLOSED_PORT, group_id="g"),
        partial(AdminClient, bootstrap_servers=CLOSED_PORT),
    ],
    ids=["producer", "consumer", "admin"],
)
def test_interrupted_construction_leaves_nothing_open(construct: Callable[[], Any]) -> None:
    construct_at(construct, Interruption(1 << 30))  # imports what clients import later
    assert at_every_place(partial(construct_at, construct)) >= 2
