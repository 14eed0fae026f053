"""Ctrl-C at every place where a client is made: no thread, socket or file is left."""

import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kclient import AdminClient, Consumer, Producer
from kclient.network.system_net import SystemPoller
from tests.support.interrupts import Interruption, at_every_place
from tests.support.process_stats import open_descriptors
from tests.support.waiting import wait_until

# How many places are passed over; 1 goes to every one, which takes some minutes.
_STEP = int(os.environ.get("KCLIENT_INTERRUPT_STEP", "101"))
_LAST = 30  # places at the end, where threads and connections are made: each is tried

NOBODY = "127.0.0.1:1"

MAKERS: list[Callable[[], Any]] = [
    partial(Producer, bootstrap_servers=NOBODY),
    partial(Consumer, bootstrap_servers=NOBODY, group_id="g"),
    partial(AdminClient, bootstrap_servers=NOBODY),
]


def try_at(make: Callable[[], Any], interruption: Interruption) -> bool:
    threads, descriptors = set(threading.enumerate()), open_descriptors(os.getpid())
    made: list[Any] = []
    struck = interruption.during(lambda: made.append(make()))
    while made:
        made.pop().close()

    def nothing_is_left() -> bool:
        if open_descriptors(os.getpid()) == descriptors and set(threading.enumerate()) <= threads:
            return True
        gc.collect()  # what is half made holds itself by its own callbacks
        return False

    wait_until(nothing_is_left, f"nothing is left by Ctrl-C at {interruption.place}", timeout=20)
    return struck


@pytest.mark.fault("W18")
@pytest.mark.parametrize("make", MAKERS, ids=["producer", "consumer", "admin"])
def test_a_client_that_is_interrupted_while_it_is_made_leaves_nothing(
    make: Callable[[], Any],
) -> None:
    whole = Interruption(1 << 30)
    try_at(make, whole)  # what is imported and kept is so from now on
    assert at_every_place(partial(try_at, make), step=_STEP) > whole.reached // (2 * _STEP)
    assert at_every_place(partial(try_at, make), first=whole.reached - _LAST) >= _LAST // 2


@pytest.mark.fault("W18")
def test_a_bell_that_is_interrupted_while_it_is_made_leaves_nothing() -> None:
    try_at(SystemPoller, Interruption(1 << 30))
    assert at_every_place(partial(try_at, SystemPoller)) >= 5
