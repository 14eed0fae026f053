"""The check: every figure of the report, computed again by pandas over the source."""

import math
from collections.abc import Iterator
from dataclasses import asdict

import pandas as pd

from examples.flights_pipeline.figures import LATE_MINUTES, Cell, Figures, Statistics

TOLERANCE = 1e-9
"""Relative tolerance for means: Spark and pandas add in different order. Others are exact."""


def expected_statistics(flights: pd.DataFrame) -> Statistics:
    """Return the statistics of the source."""
    delay = flights["departure_delay"]
    table = flights.assign(
        day=flights["scheduled"].dt.strftime("%Y-%m-%d"),
        cancelled=delay.isna(),
        late=(delay > LATE_MINUTES).fillna(False).astype(bool),  # noqa: FBT003 (pandas' signature)
    )
    figures = table.groupby(["day", "carrier", "origin"]).agg(
        flights=("id", "size"),
        cancelled=("cancelled", "sum"),
        late=("late", "sum"),
        delay_sum=("departure_delay", "sum"),
        delay_max=("departure_delay", "max"),
        delay_mean=("departure_delay", "mean"),
    )
    return {
        Cell(*key): Figures(
            int(row.flights),
            int(row.cancelled),
            int(row.late),
            int(row.delay_sum),
            None if pd.isna(row.delay_max) else int(row.delay_max),
            None if pd.isna(row.delay_mean) else float(row.delay_mean),
        )
        for key, row in zip(figures.index, figures.itertuples(), strict=True)
    }


def differences(found: Statistics, expected: Statistics) -> list[str]:
    """Return a line for each figure that differs."""
    lines: list[str] = []
    for cell in sorted(found.keys() | expected.keys()):
        name = " ".join(cell)
        if cell not in found:
            lines.append(f"{name}: got nothing, expected {expected[cell].flights} flights")
        elif cell not in expected:
            lines.append(f"{name}: got {found[cell].flights} flights, expected nothing")
        else:
            lines += [f"{name}: {text}" for text in _different(found[cell], expected[cell])]
    return lines


def _different(found: Figures, expected: Figures) -> Iterator[str]:
    expected_figures = asdict(expected)
    for name, figure in asdict(found).items():
        if not _same(figure, expected_figures[name]):
            yield f"{name}: got {figure}, expected {expected_figures[name]}"


def _same(one: float | None, other: float | None) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return one == other
