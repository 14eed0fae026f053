"""Injects the faults of a scenario into a world, and removes them."""

import errno
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kclient.testing.virtual.damaged_batches import DamagedBatches
from tests.simulation.application import Application
from tests.simulation.cast import Cast
from tests.simulation.checker import BIT_FLIP, KILL_CLIENT
from tests.simulation.consumer_application import ConsumerApplication
from tests.simulation.history import Fault
from tests.simulation.producer_application import ProducerApplication
from tests.simulation.scenario import (
    BROKER,
    COPIER_SESSION_MS,
    REQUEST_TIMEOUT_MS,
    PlannedFault,
)

_ERRORS = (
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("flush", errno.EIO),
    ("read", errno.EIO),
    ("open", errno.EMFILE),
    ("create", errno.ENOSPC),
    ("rename", errno.EIO),
    ("truncate", errno.EIO),
    ("remove", errno.EIO),
    ("flush", errno.EIO),
)
_SUFFIXES = (*[""] * 6, ".log", ".index", ".timeindex", ".snapshot", "checkpoint")
_LOOK_MS = 200.0
_JUMPS_MS = (1_800_000, 400 * 86_400_000)
"""Largest error of a wall clock."""


class Nemesis:
    """Injector of faults.

    Attributes:
        spoiled_disk: Whether a disk failed, after which a log directory may be offline.
    """

    def __init__(self, cast: Cast) -> None:
        self.spoiled_disk = False
        self._cast = cast
        self._world = cast.stage.world
        self._operator = cast.operator
        self._acts: dict[str, Callable[[PlannedFault, random.Random], None]] = {
            "rechunk": self._rechunk,
            "slow": self._slow,
            "cut": self._cut,
            "lost responses": self._lose_responses,
            "half-open": self._half_open,
            "partition": self._partition,
            "refuse": self._refuse,
            "damage": self._damage,
            "late letters": self._hold_letters,
            "kill broker": self._kill_broker,
            "stop broker": self._stop_broker,
            "power cut": self._cut_power,
            "pause broker": self._pause_broker,
            "disk error": self._spoil_disk,
            "disk full": self._fill_disk,
            "no descriptors": self._take_descriptors,
            "kill producer": self._kill_producer,
            "kill consumer": self._kill_consumer,
            "leave consumer": self._let_leave,
            "join consumer": self._let_join,
            "pause client": self._pause_client,
            "clock jump": self._jump,
            "lost acknowledgements": self._lose_acknowledgements,
            "damaged batches": self._damage_batches,
            "torn batch": self._tear_batch,
            "overloaded producer": self._overload,
            "late commits": self._hold_commits,
            "kill transaction": self._kill_transactional,
            "zombie": self._make_zombie,
            "late requests": self._hold_requests,
            "kill decision": self._kill_at_decision,
        }

    def plan(self) -> None:
        """Schedule the faults of the scenario."""
        for fault in self._cast.stage.scenario.faults:
            self._later(fault.at_ms, partial(self._act, fault))

    def heal(self) -> None:
        """Remove all faults, and keep the broker running."""
        self._world.net.heal()
        self._heal_disk()
        self._operator.faults.heal()
        self._operator.at_next_flush = self._operator.at_next_batch = None
        self._operator.at_decision = None
        if self.spoiled_disk and not self._operator.is_sound:
            self._operator.kill()
        self._operator.start()

    def _act(self, fault: PlannedFault) -> None:
        self._acts[fault.kind](fault, random.Random(fault.lot))

    def _note(self, kind: str, who: str, detail: object = "") -> None:
        self._cast.stage.history.add(Fault(self._world.clock.now_ms, who, kind, str(detail)))

    def _later(self, delay_ms: float, do: Callable[[], None]) -> None:
        self._world.clock.after(delay_ms, do)

    def _client(self, lot: random.Random) -> Application | None:
        running = [each for each in self._cast.applications if not each.over]
        return lot.choice(running) if running else None

    # --- network

    def _on_link(
        self, fault: PlannedFault, lot: random.Random, do: Callable[[str], object]
    ) -> None:
        client = self._client(lot)
        if client is None:
            return
        machine = client.process.machine.name
        self._note(fault.kind, machine, do(machine) or "")
        self._later(fault.lasts_ms, lambda: self._world.net.heal(machine, BROKER))

    def _rechunk(self, fault: PlannedFault, lot: random.Random) -> None:
        most = lot.choice((1, 3, 100, 1000))
        self._on_link(fault, lot, lambda name: self._world.net.rechunk(name, BROKER, 1, most))

    def _slow(self, fault: PlannedFault, lot: random.Random) -> None:
        rate = lot.choice((500.0, 3_000.0, 50_000.0))
        self._on_link(fault, lot, lambda name: self._world.net.slow(name, BROKER, rate))

    def _cut(self, fault: PlannedFault, lot: random.Random) -> None:
        reset = lot.random() < 0.5
        self._on_link(fault, lot, lambda name: self._world.net.cut(name, BROKER, reset=reset))

    def _lose_responses(self, fault: PlannedFault, lot: random.Random) -> None:
        """Pass requests and drop responses, until connections or broker fail."""
        client = self._client(lot)
        if client is None:
            return
        machine = client.process.machine.name
        self._note(fault.kind, machine)
        self._world.net.partition(BROKER, machine, one_way=True)
        deadly = lot.random() < 0.3

        def end() -> None:
            if deadly:
                self._kill_broker(fault, lot)
            self._world.net.cut(machine, BROKER)
            self._world.net.heal(machine, BROKER)

        self._later(fault.lasts_ms / 4.0, end)

    def _lose_acknowledgements(self, fault: PlannedFault, lot: random.Random) -> None:
        """Drop the responses to a producer for a while; then its broker restarts, or its link."""
        client = self._victim(ProducerApplication, lot)
        if client is None:
            return
        machine = client.process.machine.name
        self._note(fault.kind, machine)
        self._world.net.partition(BROKER, machine, one_way=True)
        end = lot.choice((self._kill_broker, self._stop_broker, None))

        def reconnect() -> None:
            if end is not None:
                end(replace(fault, lasts_ms=fault.lasts_ms / 4.0), lot)
            self._world.net.cut(machine, BROKER)
            self._world.net.heal(machine, BROKER)

        self._later(lot.uniform(300.0, REQUEST_TIMEOUT_MS), reconnect)

    def _half_open(self, fault: PlannedFault, lot: random.Random) -> None:
        self._on_link(fault, lot, lambda name: self._world.net.half_open(name, BROKER))

    def _partition(self, fault: PlannedFault, lot: random.Random) -> None:
        one_way = lot.random() < 0.5
        outwards = lot.random() < 0.5

        def part(name: str) -> None:
            ends = (name, BROKER) if outwards else (BROKER, name)
            self._world.net.partition(*ends, one_way=one_way)

        self._on_link(fault, lot, part)

    def _refuse(self, fault: PlannedFault, lot: random.Random) -> None:
        self._on_link(fault, lot, lambda name: self._world.net.refuse(name, BROKER))

    def _damage(self, fault: PlannedFault, lot: random.Random) -> None:
        """Flip bits of batches in transit, undetected by the checksums of TCP."""
        chance = lot.choice((0.1, 0.5, 1.0))
        self._on_link(fault, lot, partial(self._damage_link, lot, chance))

    def _damage_link(self, lot: random.Random, chance: float, machine: str) -> None:
        for ends in ((machine, BROKER), (BROKER, machine)):
            note = partial(self._note, BIT_FLIP, ends[1])
            self._world.net.link(*ends).damage = DamagedBatches(lot, chance, note)

    def _damage_batches(self, fault: PlannedFault, lot: random.Random) -> None:
        """Flip bits of batches to and from all clients."""
        for machine in sorted({each.machine for each in self._cast.applications}):
            self._note(fault.kind, machine)
            self._damage_link(lot, 0.3, machine)
            self._later(fault.lasts_ms, partial(self._world.net.heal, machine, BROKER))

    def _overload(self, fault: PlannedFault, lot: random.Random) -> None:
        """Slow a producer's link down, so that batches expire in the queue and in flight."""
        client = self._victim(ProducerApplication, lot)
        if client is not None:
            machine = client.machine
            self._note(fault.kind, machine)
            self._world.net.slow(machine, BROKER, lot.choice((300.0, 500.0, 1_000.0)))
            self._later(fault.lasts_ms + 1_000.0, partial(self._world.net.heal, machine, BROKER))

    def _hold_letters(self, fault: PlannedFault, lot: random.Random) -> None:
        """Delay a member's commits until the group has a new generation."""
        member = self._victim(ConsumerApplication, lot)
        if not isinstance(member, ConsumerApplication):
            return
        until_ms = REQUEST_TIMEOUT_MS + fault.lasts_ms
        self._hold(fault, member, lot, REQUEST_TIMEOUT_MS * lot.uniform(0.5, 1.5), until_ms)

    def _hold_commits(self, fault: PlannedFault, lot: random.Random) -> None:
        """Delay a member's commits until it has committed again and a rebalance is over."""
        member = self._victim(ConsumerApplication, lot)
        if isinstance(member, ConsumerApplication):
            join_ms = REQUEST_TIMEOUT_MS + lot.uniform(300.0, 800.0)
            self._hold(fault, member, lot, join_ms, join_ms + lot.uniform(1_000.0, 2_500.0))

    def _hold(
        self,
        fault: PlannedFault,
        member: ConsumerApplication,
        lot: random.Random,
        join_ms: float,
        until_ms: float,
    ) -> None:
        machine = member.machine
        self._note(fault.kind, member.name, self._world.net.hold(machine, BROKER))
        self._later(join_ms, partial(self._interfere, member.group, lot))
        self._later(until_ms, lambda: self._world.net.heal(machine, BROKER))

    def _interfere(self, group: str, lot: random.Random) -> None:
        """Trigger a rebalance of a group."""
        self._note("join consumer", group)
        self._cast.add_consumer(f"c-late-{lot.randrange(1000)}", group)

    # --- the broker

    def _kill_broker(self, fault: PlannedFault, _lot: random.Random) -> None:
        self._note("kill broker", BROKER)
        self._operator.kill()
        self._later(fault.lasts_ms, self._operator.start)

    def _kill_at_decision(self, fault: PlannedFault, lot: random.Random) -> None:
        """Kill the broker while it writes the markers of a transaction."""
        steps = iter(range(lot.randint(0, 30)))

        def count() -> None:
            if next(steps, None) is None:
                self._operator.at_decision = None
                self._kill_broker(replace(fault, lasts_ms=fault.lasts_ms / 4.0), lot)

        self._operator.at_decision = count

    def _stop_broker(self, fault: PlannedFault, _lot: random.Random) -> None:
        self._note(fault.kind, BROKER)
        self._operator.stop()
        self._later(fault.lasts_ms, self._start_stopped)

    def _start_stopped(self) -> None:
        if self._operator.stopping:
            self._later(100.0, self._start_stopped)
        else:
            self._operator.start()

    def _cut_power(self, fault: PlannedFault, lot: random.Random) -> None:
        """Cut the power now, or during a write."""

        def cut() -> None:
            self._note(fault.kind, BROKER)
            self._later(fault.lasts_ms, self._operator.start)
            self._operator.power_cut()

        if lot.random() < 0.3:
            cut()
        else:
            self._operator.at_next_flush = cut

    def _tear_batch(self, fault: PlannedFault, _lot: random.Random) -> None:
        """Cut the power while a batch of the topic is written."""

        def cut() -> None:
            self._note(fault.kind, BROKER)
            self._later(fault.lasts_ms / 4.0, self._operator.start)
            self._operator.power_cut()

        self._operator.at_next_batch = cut

    def _pause_broker(self, fault: PlannedFault, _lot: random.Random) -> None:
        process = self._operator.process
        if process is not None and process.alive:
            self._note(fault.kind, BROKER, f"{fault.lasts_ms:.0f} ms")
            process.pause()
            self._later(fault.lasts_ms, process.resume)

    # --- its disk

    def _spoil_disk(self, fault: PlannedFault, lot: random.Random) -> None:
        self.spoiled_disk = True
        for action, code in lot.sample(_ERRORS, lot.choice((1, 2, 5))):
            suffix, chance = lot.choice(_SUFFIXES), lot.choice((0.1, 0.4, 1.0))
            times = lot.choice((1, 5, None))
            self._note(fault.kind, BROKER, f"{action} {suffix} {errno.errorcode[code]} {chance}")
            self._operator.faults.fail(action, suffix, code, chance=chance, times=times)
        self._later(fault.lasts_ms, self._operator.faults.heal)
        if lot.random() < 0.8:
            self._watch_disk(self._world.clock.now_ms + fault.lasts_ms + _LOOK_MS)

    def _watch_disk(self, until_ms: float) -> None:
        """For some time, restart the broker if it takes its log directory offline."""
        self._operator.restart_if_failed()
        if self._world.clock.now_ms < until_ms:
            self._later(_LOOK_MS, partial(self._watch_disk, until_ms))

    def _fill_disk(self, fault: PlannedFault, lot: random.Random) -> None:
        disk = self._operator.machine.disk
        self._note(fault.kind, BROKER)
        self.spoiled_disk = True
        disk.capacity = disk.used + lot.choice((0, 4096, 40_960))
        self._later(fault.lasts_ms, self._heal_disk)

    def _take_descriptors(self, fault: PlannedFault, lot: random.Random) -> None:
        process = self._operator.process
        if process is not None and process.alive:
            self._note(fault.kind, BROKER)
            self.spoiled_disk = True
            process.files.open_limit = len(process.files.open_files()) + lot.randint(0, 2)
            self._later(fault.lasts_ms, self._heal_disk)

    def _heal_disk(self) -> None:
        self._operator.machine.disk.capacity = None
        if self._operator.process is not None:
            self._operator.process.files.open_limit = 1024

    # --- clients

    def _victim(self, kind: type[Application], lot: random.Random) -> Application | None:
        running = [
            each for each in self._cast.applications if isinstance(each, kind) and not each.over
        ]
        return lot.choice(running) if running else None

    def _kill_producer(self, fault: PlannedFault, lot: random.Random) -> None:
        victim = self._victim(ProducerApplication, lot)
        if victim is not None:
            self._note(KILL_CLIENT, victim.name)
            victim.process.kill()
            self._later(fault.lasts_ms, lambda: self._cast.add_producer(victim.machine))

    def _kill_consumer(self, fault: PlannedFault, lot: random.Random) -> None:
        victim = self._victim(ConsumerApplication, lot)
        if isinstance(victim, ConsumerApplication):
            self._note(KILL_CLIENT, victim.name)
            victim.process.kill()
            self._replace(fault, victim)

    def _let_leave(self, fault: PlannedFault, lot: random.Random) -> None:
        victim = self._victim(ConsumerApplication, lot)
        if isinstance(victim, ConsumerApplication):
            self._note(fault.kind, victim.name)
            victim.stopping = True
            self._replace(fault, victim)

    def _replace(self, fault: PlannedFault, victim: ConsumerApplication) -> None:
        machine, group = victim.machine, victim.group
        self._later(fault.lasts_ms, lambda: self._cast.add_consumer(machine, group))

    def _let_join(self, _fault: PlannedFault, lot: random.Random) -> None:
        self._interfere(f"g{lot.randrange(self._cast.stage.scenario.groups)}", lot)

    def _pause_client(self, fault: PlannedFault, lot: random.Random) -> None:
        client = self._client(lot)
        if client is None:
            return
        lasts_ms = fault.lasts_ms * lot.choice((0.2, 1.0, 3.0))
        self._note(fault.kind, client.name, f"{lasts_ms:.0f} ms")
        client.pause()
        self._later(lasts_ms, client.resume)

    def _transactional(self, lot: random.Random) -> Application | None:
        everyone = [*self._cast.writers, *self._cast.copiers]
        running = [each for each in everyone if not each.over]
        return lot.choice(running) if running else None

    def _kill_transactional(self, fault: PlannedFault, lot: random.Random) -> None:
        """Kill a writer or copier; the next process has its transactional id."""
        victim = self._transactional(lot)
        if victim is not None:
            self._note(KILL_CLIENT, victim.name)
            victim.process.kill()
            delay_ms = fault.lasts_ms * lot.choice((0.0, 0.2, 1.0, 5.0))
            self._later(delay_ms, partial(self._cast.add_transactional, victim.machine))

    def _make_zombie(self, fault: PlannedFault, lot: random.Random) -> None:
        """Suspend a writer or copier; start another one with its transactional id, or none."""
        victim = self._transactional(lot)
        everyone = [*self._cast.writers, *self._cast.copiers]
        if victim is None or any(
            each.machine == victim.machine and each is not victim and not each.over
            for each in everyone
        ):
            return  # request rates are those of a machine
        victim.pause()
        lasts_ms = fault.lasts_ms
        if lot.random() < 0.5:
            self._cast.add_transactional(victim.machine)
        else:
            lasts_ms = lot.uniform(1.0, 3.0) * COPIER_SESSION_MS
        self._note(fault.kind, victim.name, f"{lasts_ms:.0f} ms")
        self._later(lasts_ms, victim.resume)

    def _hold_requests(self, fault: PlannedFault, lot: random.Random) -> None:
        """Delay the requests of a writer or copier until it has sent them again."""
        victim = self._transactional(lot)
        if victim is not None:
            machine = victim.machine
            self._note(fault.kind, victim.name, self._world.net.hold(machine, BROKER))
            until_ms = REQUEST_TIMEOUT_MS + fault.lasts_ms
            self._later(until_ms, lambda: self._world.net.heal(machine, BROKER))

    def _jump(self, fault: PlannedFault, lot: random.Random) -> None:
        client = self._client(lot)
        machine = self._operator.machine
        if client is not None and lot.random() < 0.5:
            machine = client.process.machine
        most_ms = lot.choice(_JUMPS_MS)
        shift_ms = lot.randint(-most_ms, most_ms)
        self._note(fault.kind, machine.name, f"{shift_ms} ms")
        machine.clock.wall_shift_ms = shift_ms
