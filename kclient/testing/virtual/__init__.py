"""A world in one thread: real clients and brokers on a simulated network, in virtual time."""

from kclient.testing.virtual.verdicts import (
    DeadlockError,
    LivelockError,
    ProcessKilledError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
)
from kclient.testing.virtual.virtual_machine import VirtualMachine
from kclient.testing.virtual.virtual_net import Peer, VirtualNet
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_task import VirtualTask
from kclient.testing.virtual.virtual_world import VirtualWorld

__all__ = [
    "DeadlockError",
    "LivelockError",
    "Peer",
    "ProcessKilledError",
    "SimulationError",
    "TaskFailedError",
    "TimeIsUpError",
    "VirtualMachine",
    "VirtualNet",
    "VirtualProcess",
    "VirtualTask",
    "VirtualWorld",
]
