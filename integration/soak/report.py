"""Report of a soak, and its faults."""

from collections.abc import Iterator

from integration.soak.soak import Outcome
from tests.support.processes.vital_signs import Signs, VitalSigns, slope

_MIB = 1 << 20
_BROKER = "broker "

# Growth between warm-up and end that is not a leak: memory kept by allocators varies this much.
_CLIENT_GROWTH = 4 * _MIB
_BROKER_GROWTH = 8 * _MIB
_ENOUGH_S = 300.0  # in a shorter run, growth cannot be distinguished from initialization


def lines_of(outcome: Outcome) -> Iterator[str]:
    """Return the lines of the report."""
    pauses, aways = sorted(outcome.pauses), sorted(outcome.aways)
    yield f"{outcome.acknowledged} records acknowledged: none lost, none duplicated, all in order"
    yield (
        f"{len(pauses)} restarts: away for {aways[len(aways) // 2]:.2f} s (at most "
        f"{aways[-1]:.2f}), longest time of any writer without an acknowledgement "
        f"{pauses[len(pauses) // 2]:.2f} s (at most {pauses[-1]:.2f})"
    )
    for number, (done, repeated) in enumerate(
        zip(outcome.member_events, outcome.repeated, strict=True)
    ):
        shown = ", ".join(f"{what} {count}" for what, count in sorted(done.items()))
        yield (
            f"group {number}: {shown or 'no events'}; "
            f"{repeated} records processed again, none of them committed before"
        )
    yield from client_lines(outcome.signs, outcome.warm)
    lives = _broker_lives(outcome)
    if lives:
        yield (
            "broker, at the end of each life: RSS MiB "
            + " ".join(f"{life.rss / _MIB:.0f}" for life in lives)
            + f"; {_broker_growth(outcome) / _MIB:+.1f} MiB after warm-up"
            + f"; files {min(life.files for life in lives)} to {max(life.files for life in lives)}"
            + f"; threads {min(life.threads for life in lives)}"
            + f" to {max(life.threads for life in lives)}"
        )


def faults_of(outcome: Outcome) -> list[str]:
    """Return the growth of memory, files and threads, if the run was long enough."""
    faults = client_faults(outcome.signs, outcome.warm)
    if _broker_growth(outcome) > _BROKER_GROWTH:
        faults.append(f"the broker grew by {_broker_growth(outcome) / _MIB:.1f} MiB")
    return faults


def client_lines(signs: VitalSigns, warm: float) -> Iterator[str]:
    """Describes the resources of each client process after `warm`, by the monotonic clock."""
    return (signs.growth(name, warm) for name in _clients(signs, warm))


def client_faults(signs: VitalSigns, warm: float) -> list[str]:
    """Returns the resources of client processes that grew after `warm`."""
    faults = []
    for name in _clients(signs, warm):
        course = signs.course(name, warm)
        grown = slope([(one.at, one.rss) for one in course]) * (course[-1].at - course[0].at)
        if course[-1].at - course[0].at < _ENOUGH_S:
            continue
        if grown > _CLIENT_GROWTH:
            faults.append(f"{name} grew by {grown / _MIB:.1f} MiB")
        files = [one.files for one in course]
        quarter = len(course) // 4
        faults += [
            f"{name}: {what} grew from {before} to {after}"
            for what, before, after in (
                ("threads", course[0].threads, course[-1].threads),
                # One more or less is a connection; what is never closed raises the least number.
                ("files", max(files[: 2 * quarter]), min(files[-quarter:])),
            )
            if after > before
        ]
    return faults


def _clients(signs: VitalSigns, warm: float) -> list[str]:
    return [
        name
        for name in signs.names()
        if not name.startswith(_BROKER) and len(signs.course(name, warm)) > 1
    ]


def _broker_lives(outcome: Outcome) -> list[Signs]:
    signs = outcome.signs
    return [signs.course(name)[-1] for name in signs.names() if name.startswith(_BROKER)]


def _broker_growth(outcome: Outcome) -> float:
    """Return the growth in bytes from life to life, each as it was at its end."""
    late = [(life.at, float(life.rss)) for life in _broker_lives(outcome) if life.at > outcome.warm]
    return slope(late) * (late[-1][0] - late[0][0]) if len(late) > 1 else 0.0
