"""How a virtual world ends when something is wrong with what runs in it.

None of them is an `Exception`: they pass through the code under test, which must not take them for
errors of its own and go on.
"""

from kclient.common.runtime import EndOfTaskError


class SimulationError(EndOfTaskError):
    """The world cannot go on."""


class DeadlockError(SimulationError):
    """Tasks wait for each other, or for something that never comes."""


class LivelockError(SimulationError):
    """Tasks run and run, and time does not pass."""


class TimeIsUpError(SimulationError):
    """What `VirtualWorld.run` waited for did not come about in time."""


class TaskFailedError(SimulationError):
    """A task ended by an exception while the main program waited; the cause says which."""


class ProcessKilledError(SimulationError):
    """A process that was killed tried to have an effect."""
