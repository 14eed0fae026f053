"""The results as Markdown, for the terminal and for the documentation."""

from collections.abc import Iterable, Mapping
from typing import Any

from integration.benchmarks.cases import FIGURES, Figure
from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import SINK

Results = Mapping[str, Any]


def head(setup: Results) -> str:
    """Returns the setup as text."""
    settings = setup["settings"]
    clients = ", ".join(f"{name} {number}" for name, number in setup["clients"].items())
    broker = "the sink broker" if setup["broker"] == SINK else f"Apache Kafka {setup['broker']}"
    return (
        f"{clients}; {broker} on the same {setup['cores']} cores, Python {setup['python']},"
        f" {settings['rounds']} rounds. Unless stated otherwise: idempotent producers,"
        f" acks={settings['acks']}, linger {settings['linger_ms']} ms, batches of at most"
        f" {settings['batch_bytes'] >> 10} KiB, four partitions, no keys, CRC checked."
    )


def table(block: Results) -> str:
    """Returns a block: its cases with their goals, then the other contenders."""
    figures = [(name, FIGURES[name]) for name in block["figures"]]
    titles = [title for _, each in figures for title in (each.title, "×")]
    lines = [
        f"| {' | '.join([block['title'], *titles, 'goals'])} |",
        "|" + "---|" * (len(titles) + 2),
    ]
    lines += [_case_line(case, block, figures) for case in block["cases"]]
    cases = {case["cell"] for case in block["cases"]}
    others = [cell for place, cell in enumerate(block["cells"]) if place not in cases]
    lines += [_cell_line(cell, block, figures) for cell in others]
    return "\n".join([*lines, *_unusable(block)])


def _case_line(case: Results, block: Results, figures: list[tuple[str, Figure]]) -> str:
    ours = block["cells"][case["cell"]]
    texts = [case["name"]]
    for name, figure in figures:
        ratio = Spread(**case["ratios"][name])
        texts += [_spread(ours, name, figure), f"{ratio.median:.2f} ({ratio.range_text('.2f')})"]
    texts.append("; ".join(_goal(goal) for goal in case["goals"]))
    return f"| {' | '.join(texts)} |"


def _cell_line(cell: Results, block: Results, figures: list[tuple[str, Figure]]) -> str:
    texts = [_name(cell, block)]
    for name, figure in figures:
        texts += [_spread(cell, name, figure), ""]
    return f"| {' | '.join([*texts, ''])} |"


def _name(cell: Results, block: Results) -> str:
    """Returns the contender and what distinguishes its cells within a block."""
    text = str(cell["contender"])
    forms = {"size": "{:,} B", "partitions": "{:,} partitions", "transaction_ms": "every {:,} ms"}
    for field, form in forms.items():
        if cell[field] and len({each[field] for each in block["cells"]}) > 1:
            text += f", {form.format(cell[field])}"
    return text


def _spread(cell: Results, name: str, figure: Figure) -> str:
    spread = Spread(**cell["figures"][name])
    return f"{spread.median:{figure.form}} ({spread.range_text(figure.form)})"


def _goal(goal: Results) -> str:
    figure = FIGURES[goal["figure"]]
    sign, times = "≤" if figure.less_is_better else "≥", " ×" if figure.relative else ""
    text = f"{goal['figure']} {sign} {goal['limit']:g}{times} {_verdict(goal['met'])}"
    if goal["aim"] is not None:
        text += f", aim {goal['aim']:g}{times} {_verdict(goal['aim_met'])}"
    return text


def _verdict(met: bool) -> str:
    return "met" if met else "**not met**"


def _unusable(block: Results) -> Iterable[str]:
    """Yields the cells in which the broker may have been the limit."""
    for cell in block["cells"]:
        if not cell["usable"]:
            share = f"{cell['broker_share']:.0%} of a core"
            yield f"\n**Unusable**: {_name(cell, block)}: the sink used {share}."


def summary(blocks: Iterable[Results]) -> str:
    """Returns how many goals are met."""
    goals = [goal for block in blocks for case in block["cases"] for goal in case["goals"]]
    return f"{sum(goal['met'] for goal in goals)} of {len(goals)} goals are met."
