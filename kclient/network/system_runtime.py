"""`Runtime` of the operating system: clock, randomness, threads, network and files."""

import random

from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemClock, SystemTasks
from kclient.network.system_net import SystemNet


def system_runtime() -> Runtime:
    """Return the runtime of this machine.

    Random numbers are the operating system's: ids made from them cannot be guessed, and a forked
    child does not repeat those of its parent.
    """
    return Runtime(SystemClock(), random.SystemRandom(), SystemTasks(), SystemNet(), SystemFiles())
