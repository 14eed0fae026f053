"""Tests that the pages name as evidence exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVIDENCE = re.compile(r"`((?:tests|integration)/[\w/]+\.py)::(\w+)`")
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if EVIDENCE.search(path.read_text()))


def definitions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_guarantees_page_names_evidence() -> None:
    assert ROOT / "docs" / "explanation" / "guarantees.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_named_test_exists(page: Path) -> None:
    named = EVIDENCE.findall(page.read_text())
    missing = [f"{place}::{name}" for place, name in named if name not in definitions(ROOT / place)]
    assert missing == []
