"""The code in our documents."""

import re
from collections import defaultdict
from pathlib import Path

_FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> dict[str, list[str]]:
    """Return the code blocks of a language by the heading they stand under."""
    found: dict[str, list[str]] = defaultdict(list)
    for section in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        for kind, code in _FENCE.findall(text):
            if kind == language:
                found[heading].append(code)
    return found


def all_blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language in their order."""
    return [code for kind, code in _FENCE.findall(page.read_text()) if kind == language]
