"""The runtime of this machine."""

import os
import random
from pathlib import Path

from kclient.network.system_runtime import system_runtime


def test_system_runtime_is_complete() -> None:
    runtime = system_runtime()
    assert runtime.clock.wall_ms() > 1_700_000_000_000
    assert 0 <= runtime.random.random() < 1
    assert runtime.files.exists(Path("/"))


def test_random_numbers_of_a_forked_child_differ_from_its_parent() -> None:
    runtime = system_runtime()
    assert isinstance(runtime.random, random.SystemRandom)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, runtime.random.randbytes(16))
        os._exit(0)
    own = runtime.random.randbytes(16)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 16) != own
    os.close(reader)
    os.close(writer)
