"""A world in one thread: real clients and brokers on a simulated network, in virtual time.

Nothing in it is random but by the seed, and nothing waits: time passes when all tasks wait. The
clients and brokers are those of production; only their `Runtime` is another.

    with VirtualWorld(seed=1) as world:
        broker = VirtualBroker(world)
        process = world.machine("app").process("app")
        task = process.spawn("main", lambda: my_application(process.runtime))
        world.run(until=lambda: task.over)

What may go wrong, whenever you like:

- the broker: `kill`, `stop`, `start`, `power_cut`, and `faults` of its answers
- a process: `kill` (kill -9), `pause` and `resume` (SIGSTOP), `exit`; from within, too
- a machine: `power_cut` (its disk forgets what was not flushed) and `power_on`; its calendar, by
  `clock.wall_shift_ms`
- a link: `net.partition`, `heal`, `slow`, `rechunk`, `refuse`, `cut` (in the middle of what is on
  its way; reset or end), `half_open`, `hold` (what it carries arrives late); each
  direction by `net.link(a, b)`, with its latency and its `damage` (`DamagedBatches`)
- names and addresses: `net.names`, `net.black_holes`; scripted peers: `net.peers`
- limits of a process: `net.socket_limit`, `net.resolve_ms`, `files.open_limit`

A task gives way where a thread would wait, and by lot at every lock and file operation; which one
goes on is drawn by lot. A task that neither waits nor locks is never interrupted: a loop that
only looks at a flag or at the clock never ends.

`world.run` raises what ended a task. Its own verdicts, and those about dead processes, derive from
`SimulationError`, which is no `Exception`: the code under test does not swallow it. Waiting in the
main program (a client called directly by the test) lets the world go on meanwhile.
"""

from kclient.testing.virtual.damaged_batches import DamagedBatches
from kclient.testing.virtual.verdicts import (
    DeadlockError,
    LivelockError,
    ProcessKilledError,
    SimulationError,
    TaskFailedError,
    TimeIsUpError,
)
from kclient.testing.virtual.virtual_broker import VirtualBroker
from kclient.testing.virtual.virtual_machine import VirtualMachine
from kclient.testing.virtual.virtual_net import Peer, VirtualNet
from kclient.testing.virtual.virtual_process import VirtualProcess
from kclient.testing.virtual.virtual_task import VirtualTask
from kclient.testing.virtual.virtual_world import VirtualWorld

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
