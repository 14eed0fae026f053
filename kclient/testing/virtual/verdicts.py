"""Errors that end a simulation.

None of them is an `Exception`, so that the code under test does not handle them as errors of its
own.
"""

from kclient.common.runtime import EndOfTaskError


class SimulationError(EndOfTaskError):
    """The simulation cannot continue."""


class DeadlockError(SimulationError):
    """Tasks wait for each other, or for an event that never happens."""


class LivelockError(SimulationError):
    """Tasks run without end while time does not pass."""


class TimeIsUpError(SimulationError):
    """The condition that `VirtualWorld.run` waited for did not hold in time."""


class TaskFailedError(SimulationError):
    """An exception ended a task while the main program waited; it is the cause."""


class ProcessKilledError(SimulationError):
    """A killed process tried to have an effect."""
