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
    """A process; pass its `runtime` to the clients and brokers that run in it.

    Attributes:
        name: Its name, for messages.
        id: Its process id, unique in the simulation.
        machine: Its machine.
        alive: Whether it is running.
        runtime: Its clock, tasks, network and files.
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
        """Wait in the calling task."""
        self.gate()
        self._scheduler.park(max(0.0, seconds * 1000.0), f"{seconds} s to pass")

    def kill(self) -> None:
        """End it at once, as kill -9 does: nothing in it runs again, and its sockets are reset.

        Does not return to a caller that is one of its own tasks.
        """
        self.die(notify=True)
        self.leave()

    def exit(self) -> None:
        """End it like a Python program: run its exit callbacks, then `kill`.

        Only a task or the main program may call it, since the callbacks may wait.
        """
        self._tasks.run_exits()
        self.kill()

    def pause(self) -> None:
        """Stop it, as SIGSTOP does, until `resume`; its peers are not notified."""
        self._paused = True
        for task in self._live:
            self._scheduler.pause(task)

    def resume(self) -> None:
        """Continue it after `pause`; timers that became due meanwhile run now."""
        self._paused = False
        for task in self._live:
            self._scheduler.resume(task)

    def owns(self, task: VirtualTask) -> bool:
        """Return whether a task belongs to this process."""
        return task in self._live

    def gate(self) -> None:
        """Raise if the process is dead, so that it has no effect.

        Raises:
            ProcessKilledError: It is dead.
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

    def die(self, *, notify: bool) -> None:
        """End it; `notify` selects whether its sockets are reset."""
        if not self.alive:
            return
        self.alive = False
        self._world.note("die", self.name)
        for task in self._live:
            task.kill()
        self.net.end(notify=notify)
        self.files.end()
        self._world.bury(self._live)

    def leave(self) -> None:
        """Never return to a task of a dead process."""
        if self._scheduler.current in self._live:
            self._scheduler.hub.switch()
