"""One process of a virtual machine: tasks, sockets and files that end together."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient.common.runtime import Runtime
from kclient.testing.virtual.verdicts import ProcessKilledError
from kclient.testing.virtual.virtual_files import VirtualFiles
from kclient.testing.virtual.virtual_process_net import VirtualProcessNet
from kclient.testing.virtual.virtual_task import VirtualTask
from kclient.testing.virtual.virtual_tasks import VirtualTasks

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_machine import VirtualMachine
    from kclient.testing.virtual.virtual_world import VirtualWorld


class VirtualProcess:
    """A process: give `runtime` to the clients and brokers that are to live in it.

    Attributes:
        name: For people.
        id: Unique in the world, unlike the name.
        machine: Where it runs.
        alive: Whether it runs.
        runtime: Its doors to the world.
        net: Its network, to set limits and delays.
        files: Its files.
    """

    def __init__(self, world: "VirtualWorld", machine: "VirtualMachine", name: str) -> None:
        self.name = name
        self.id = world.next_process_id()
        self.machine = machine
        self.alive = True
        self._world = world
        self._scheduler = world.scheduler
        self._live: dict[VirtualTask, None] = {}
        self._paused = False
        self._tasks = VirtualTasks(self, world.scheduler)
        self.net = VirtualProcessNet(self, world.net, machine.host, world.scheduler)
        self.files = VirtualFiles(machine.disk, self._file_gate)
        self.runtime = Runtime(
            machine.clock,
            world.random(f"process {name} {self.id}"),
            self._tasks,
            self.net,
            self.files,
        )

    def __repr__(self) -> str:
        return f"<process {self.name} of {self.machine.name}>"

    def spawn(self, name: str, run: Callable[[], object]) -> VirtualTask:
        """Run a function in a task of its own; it may wait wherever kclient does.

        An exception that leaves it is raised by `VirtualWorld.run`.
        """
        self.gate()
        task: VirtualTask

        def run_and_forget() -> object:
            try:
                return run()
            finally:
                self._live.pop(task, None)

        task = self._scheduler.spawn(f"{self.name}/{name}", run_and_forget)
        self._live[task] = None
        if self._paused:
            self._scheduler.pause(task)
        return task

    def sleep(self, seconds: float) -> None:
        """Let the calling task do nothing for a while."""
        self.gate()
        self._scheduler.park(max(0.0, seconds * 1000.0), f"{seconds} s to pass")

    def kill(self) -> None:
        """End it at once, as kill -9 does: nothing in it runs again, and its sockets are reset.

        Does not return to a caller that is one of its own tasks.
        """
        self.die(told=True)
        self.leave()

    def exit(self) -> None:
        """End it as a Python program ends: first what was to be done at the exit, then `kill`.

        It has to be called by a task, or by the main program, since that may wait.
        """
        self._tasks.run_exits()
        self.kill()

    def pause(self) -> None:
        """Stop it, as SIGSTOP does, until `resume`: its peers see nothing but silence."""
        self._paused = True
        for task in self._live:
            self._scheduler.pause(task)

    def resume(self) -> None:
        """Let it go on after `pause`; whatever was due meanwhile is due now."""
        self._paused = False
        for task in self._live:
            self._scheduler.resume(task)

    def owns(self, task: VirtualTask) -> bool:
        """Return whether a task belongs to this process."""
        return task in self._live

    def gate(self) -> None:
        """Let an effect pass while the process is alive.

        Raises:
            ProcessKilledError: It is not.
        """
        if not self.alive:
            self.refuse()

    def _file_gate(self) -> None:
        if not self.alive:
            self.refuse()
        self._scheduler.pass_by()

    def refuse(self) -> None:
        """Raise that the process is dead."""
        raise ProcessKilledError(f"{self!r} was killed")

    def die(self, *, told: bool) -> None:
        """End it; `told` says whether its peers hear of it."""
        if not self.alive:
            return
        self.alive = False
        self._world.note("die", self.name)
        for task in self._live:
            task.kill()
        self.net.end(told=told)
        self.files.end()
        self._world.bury(self._live)

    def leave(self) -> None:
        """Never return to a task of a dead process."""
        if self._scheduler.current in self._live:
            self._scheduler.hub.switch()
