"""Simulation in one thread: real clients and brokers on a simulated network, in virtual time.

All randomness follows from a seed, and nothing blocks: time passes when all tasks wait. The
clients and brokers are those of production; only their `Runtime` is a different one.

    with VirtualWorld(seed=1) as world:
        broker = VirtualBroker(world)
        process = world.machine("app").process("app")
        task = process.spawn("main", lambda: my_application(process.runtime))
        world.run(until=lambda: task.over)

Faults that a test can inject at any time:

- the broker: `kill`, `stop`, `start`, `power_cut`, and `faults` of its responses
- a process: `kill` (kill -9), `pause` and `resume` (SIGSTOP), `exit`; by its own tasks as well
- a machine: `power_cut` (the disk loses what was not flushed) and `power_on`; its wall clock, by
  `clock.wall_shift_ms`
- a link: `net.partition`, `heal`, `slow`, `rechunk`, `refuse`, `cut` (in the middle of bytes in
  flight; reset or end), `half_open`, `hold` (bytes arrive late); each
  direction by `net.link(a, b)`, with its latency and its `damage` (`DamagedBatches`)
- names and addresses: `net.names`, `net.black_holes`; scripted peers: `net.peers`
- limits of a process: `net.socket_limit`, `net.resolve_ms`, `files.open_limit`

A task yields where a thread would wait, and at random at every lock and file operation; the next
task is random. A task that neither waits nor locks is never interrupted: a loop that only reads a
flag or the clock never ends.

`world.run` raises what ended a task. Its own errors, and those about dead processes, derive from
`SimulationError`, which is not an `Exception`, so that the code under test does not catch it. While
the main program (a client that the test calls directly) waits, the simulation continues.
"""

from kclient.testing.virtual.damaged_batches import DamagedBatches
from kclient.testing.virtual.virtual_broker import VirtualBroker
from kclient.testing.virtual.virtual_net import Peer, VirtualNet
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_task import (
    DeadlockError,
    LivelockError,
    ProcessKilledError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
    VirtualTask,
)
from kclient.testing.virtual.virtual_world import VirtualMachine, VirtualWorld

__all__ = [
    "DamagedBatches",
    "DeadlockError",
    "LivelockError",
    "Peer",
    "ProcessKilledError",
    "SimulationError",
    "TaskFailedError",
    "TimeIsUpError",
    "VirtualBroker",
    "VirtualMachine",
    "VirtualNet",
    "VirtualProcess",
    "VirtualTask",
    "VirtualWorld",
]
