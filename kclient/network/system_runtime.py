"""The real world: the machine's clock, randomness, threads, network and files."""

import random

from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.network.system_net import SystemNet


def system_runtime() -> Runtime:
    """Return the doors to this machine.

    Randomness is the operating system's: ids made from it cannot be guessed, and a forked child
    does not repeat its parent's.
    """
    return Runtime(SystemClock(), random.SystemRandom(), SystemTasks(), SystemNet(), SystemFiles())
