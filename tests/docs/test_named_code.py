"""Classes, methods and files that the explanations name."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
PAGES = [
    EXPLANATION / f"{name}.md"
    for name in ("architecture", "companion-broker", "connections", "records-twice")
]
NAME = re.compile(r"`([A-Z][a-z]+[A-Z]\w*)(?:\.(\w+))?(?:\([^`]*\))?`")
FILE = re.compile(r"`((?:kclient|tests|integration)/[\w/.]+)`")


SOURCES = [path.read_text() for path in (ROOT / "kclient").rglob("*.py")]
CLASSES = {name for text in SOURCES for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}
METHODS = {name for text in SOURCES for name in re.findall(r"^    def (\w+)", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_classes_and_methods_exist(page: Path) -> None:
    named = NAME.findall(page.read_text())
    assert [name for name, _ in named if name not in CLASSES] == []
    assert [member for _, member in named if member and member not in METHODS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page: Path) -> None:
    named = FILE.findall(page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []
