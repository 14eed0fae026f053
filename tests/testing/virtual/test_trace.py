"""Trace of a simulation."""

from kclient.testing.virtual import (
    VirtualWorld,
)
from kclient.testing.virtual.trace import Trace
from tests.support.virtual.world_parts import finish


def test_trace_keeps_lines_on_request() -> None:
    def lines(seed: int) -> list[str]:
        with VirtualWorld(seed, keep_lines=True) as world:
            process = world.machine("m").process("p")
            finish(world, lambda: process.sleep(0.5), lambda: process.sleep(0.5))
            assert world.trace.events == 0  # nothing went over the network
            return world.trace.lines

    assert lines(1)[0].startswith("1000.000000 turn p/task ")
    assert lines(1) == lines(1)


def test_digest_depends_on_every_part_of_an_event() -> None:
    def digest(now_ms: float, kind: str, who: str, data: bytes) -> str:
        trace = Trace()
        trace.note(now_ms, kind, who, data)
        assert (trace.events, trace.lines) == (1, [])
        return trace.digest()

    events = [
        (1.0, "sent", "a", b"x"),
        (2.0, "sent", "a", b"x"),
        (1.0, "arrived", "a", b"x"),
        (1.0, "sent", "b", b"x"),
        (1.0, "sent", "a", b"y"),
        (1.0, "sent", "a", b""),
    ]
    assert len({digest(*event) for event in events}) == len(events)
    assert digest(*events[0]) == digest(*events[0])


def test_turns_of_tasks_change_the_digest_and_count_as_no_event() -> None:
    first, second = Trace(keep_lines=True), Trace(keep_lines=True)
    first.turn(1.0, 2, "task")
    second.turn(1.0, 3, "task")
    assert first.digest() != second.digest()
    assert (first.events, first.lines) == (0, ["1.000000 turn task"])


def test_lines_show_sizes_and_not_contents() -> None:
    trace = Trace(keep_lines=True)
    trace.note(1.5, "sent", "a", b"secret")
    trace.note(2.0, "end", "a")
    assert trace.lines == ["1.500000 sent a (6 bytes)", "2.000000 end a"]
