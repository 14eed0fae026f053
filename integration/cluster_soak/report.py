"""Report of a run."""

from collections import Counter
from collections.abc import Iterator

from integration.cluster_soak.campaign import Outcome
from integration.cluster_soak.inspection import GroupFindings
from integration.cluster_soak.verdict import Verdict
from integration.soak.report import client_lines


def lines_of(outcome: Outcome) -> Iterator[str]:
    """Returns the report, a line each."""
    found = outcome.findings
    safe = [one for one in found.writers if not one.may_lose]
    yield (
        f"{sum(outcome.events.values())} events in {outcome.seconds / 60:.1f} minutes: "
        + _counted(outcome.events)
    )
    yield (
        f"acks=all: {sum(one.acknowledged for one in safe)} records acknowledged, "
        f"{sum(one.lost for one in safe)} lost, {sum(one.displaced for one in safe)} at another "
        f"offset, {sum(one.doubled for one in safe if not one.may_double)} doubled and "
        f"{sum(one.reordered for one in safe if not one.may_reorder)} reordered where that is "
        f"promised, {sum(one.wrongly_refused for one in found.writers)} in the log although "
        f"possibly_written was False, {sum(one.unsettled for one in found.writers)} without an "
        "outcome"
    )
    yield f"longest stop while a leader was available: {max(found.stops.values()):.1f} s"
    for writer in found.writers:
        yield f"{_writer(writer)}, longest stop {found.stops[writer.name]:.1f} s"
    yield from (_group(one) for one in found.groups)
    yield (
        f"transactions of confluent-kafka: {_counted(found.transactions)}; "
        f"{found.committed} records read with read_committed"
    )
    if found.recoveries:
        written, read = (max(times) for times in zip(*found.recoveries, strict=True))
        yield (
            f"{len(found.recoveries)} times a topic was recreated: written again within "
            f"{written:.1f} s, read within {read:.1f} s; {_writer(found.recreated)}; "
            f"{found.skipped} records of the last one not read"
        )
    yield (
        f"admin client: {outcome.admin_calls} calls succeeded, failed: "
        f"{_counted(outcome.admin_failures) or 'none'}; the longest took "
        f"{outcome.admin_longest:.1f} s"
    )
    yield from client_lines(outcome.signs, outcome.warm)


def _writer(found: Verdict) -> str:
    allowed = [
        f"{count} {what}, which is not excluded"
        for count, what, may in (
            (found.lost, "lost", found.may_lose),
            (found.doubled, "doubled", found.may_double),
            (found.reordered, "reordered", found.may_reorder),
        )
        if may and count
    ]
    counts = (
        f"{found.name}: {found.acknowledged} acknowledged, {found.failed} failed "
        f"({found.possibly_written} of them possibly written)"
    )
    return ", ".join([counts, *allowed])


def _group(found: GroupFindings) -> str:
    return (
        f"group {found.name}: {found.records} records read, {found.unread} not, {found.repeated} "
        f"read again, with {found.assignments} assignments and {sum(found.refused.values())} "
        f"failed commits ({_counted(found.refused) or 'none'}); longest stop {found.stop:.1f} s"
    )


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))
