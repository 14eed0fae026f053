"""One process of a virtual machine: tasks, network and files that end together."""

import errno
import math
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from kclient.common.runtime import Address, Listener, LookUp, Poller, Runtime, StreamSocket
from kclient.network.name_resolver import NameLookUp
from kclient.testing.virtual.virtual_disk import failure
from kclient.testing.virtual.virtual_files import VirtualFiles
from kclient.testing.virtual.virtual_net import ANY, VirtualHost, VirtualNet
from kclient.testing.virtual.virtual_poller import VirtualPoller
from kclient.testing.virtual.virtual_scheduler import VirtualScheduler
from kclient.testing.virtual.virtual_socket import VirtualListener, VirtualSocket
from kclient.testing.virtual.virtual_task import ProcessKilledError, VirtualTask
from kclient.testing.virtual.virtual_tasks import VirtualTasks

if TYPE_CHECKING:
    from kclient.testing.virtual.virtual_world import VirtualMachine, VirtualWorld


# Of pollers: no descriptor of the system is so large.
_FIRST_DESCRIPTOR = 1 << 30


class VirtualProcessNet:
    """Opens and polls the connections of one process.

    Attributes:
        socket_limit: Number of sockets it may have; more fail with EMFILE. None for no limit.
        resolve_ms: Duration of a name look-up; infinity for a resolver that never responds.
    """

    def __init__(
        self,
        process: "VirtualProcess",
        net: VirtualNet,
        host: VirtualHost,
        scheduler: VirtualScheduler,
    ) -> None:
        self.socket_limit: int | None = None
        self.resolve_ms = 0.0
        self._process = process
        self._net = net
        self._host = host
        self._scheduler = scheduler
        self._sockets: dict[VirtualSocket, None] = {}
        self._listeners: list[VirtualListener] = []

    def resolve(self, host: str, port: int) -> list[Address]:
        """Return every address of a name, in the resolver's order; raise OSError if none."""
        self._process.gate()
        if self.resolve_ms > 0.0:
            self._scheduler.park(self.resolve_ms, f"the address of {host}")
        return self._net.resolve(host, port)

    def look_up(self, host: str, port: int, on_done: Callable[[], None]) -> LookUp:
        """Start a name look-up; an IP address needs no resolver."""
        self._process.gate()
        if self.resolve_ms <= 0.0 or host[:1].isdigit():
            return NameLookUp.ended(host, port, self._outcome(host, port))
        look_up = NameLookUp(host, port)

        def end() -> None:
            if self._process.alive:
                look_up.end(self._outcome(host, port))
                on_done()

        if self.resolve_ms < math.inf:
            self._net.after(self.resolve_ms, end)
        return look_up

    def connect(self, address: Address, send_buffer: int, receive_buffer: int) -> StreamSocket:
        """Start to connect; the socket becomes writable when the attempt has ended."""
        self._process.gate()
        self._check_limit()
        made = self._net.open(self._host, address)
        made.set_buffers(send_buffer, receive_buffer)
        self._own(made)
        return made

    def listen(self, address: Address, backlog: int) -> Listener:
        """Bind and listen; port 0 takes a free port.

        Raises:
            OSError: The address is in use, or not one of this machine's.
        """
        self._process.gate()
        self._check_limit()
        ip, port = address
        bound = (ip, port or self._host.free_port())
        if not self._host.has_address(ip) and ip != ANY:
            raise failure(errno.EADDRNOTAVAIL)
        if self._host.is_taken(bound):
            raise failure(errno.EADDRINUSE)
        made = VirtualListener(self._host, bound, backlog)
        made.gate = self._accept_gate
        made.on_accept = self._own
        self._host.listeners[bound] = made
        self._listeners.append(made)
        self._net.note("listen", repr(made))
        return made

    def poller(self, *, waits: bool = True) -> Poller:
        """Return a new poller."""
        self._process.gate()
        return VirtualPoller(self._process, self._scheduler, waits=waits)

    def sockets(self) -> list[VirtualSocket]:
        """Return the open sockets, the oldest first."""
        return list(self._sockets)

    def end(self, *, notify: bool) -> None:
        """Close all sockets; without power the peers are not notified."""
        for listener in self._listeners:
            if not notify:
                listener.waiting.clear()
            listener.close()
        for end in self.sockets():
            if notify:
                end.reset()
            else:
                end.vanish()

    def _outcome(self, host: str, port: int) -> list[Address] | OSError:
        try:
            return self._net.resolve(host, port)
        except OSError as error:
            return error

    def _accept_gate(self) -> None:
        self._process.gate()
        self._check_limit()

    def _check_limit(self) -> None:
        if self.socket_limit is not None and len(self._sockets) >= self.socket_limit:
            raise failure(errno.EMFILE)

    def _own(self, end: VirtualSocket) -> None:
        self._sockets[end] = None
        end.gate = self._process.gate
        end.on_close = lambda closed: self._sockets.pop(closed, None)


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
        self._pollers: list[VirtualPoller] = []
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

    def spawn_async(
        self, name: str, main: Callable[[], Coroutine[Any, Any, object]]
    ) -> VirtualTask:
        """Run a coroutine function in an asyncio event loop of its own, as `asyncio.run` does.

        Clients of `kclient.aio` in it take the `runtime` of the process. Its clock is virtual: so
        are `asyncio.sleep` and timeouts.
        """
        from kclient.testing.virtual.virtual_event_loop import (  # noqa: PLC0415 (imports asyncio)
            run_in_virtual_loop,
        )

        return self.spawn(name, lambda: run_in_virtual_loop(self, self._scheduler, main()))

    def add_poller(self, poller: VirtualPoller) -> int:
        """Return the descriptor of a new poller."""
        self._pollers.append(poller)
        return _FIRST_DESCRIPTOR + len(self._pollers) - 1

    def poller_of(self, descriptor: int) -> VirtualPoller:
        """Return the poller with a descriptor."""
        return self._pollers[descriptor - _FIRST_DESCRIPTOR]

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
            self._scheduler.leave_for_good()
