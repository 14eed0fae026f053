"""Examples of test-in-virtual-time.md."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.checks.document_blocks import blocks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-in-virtual-time.md"
EXAMPLES = {heading: code for heading, (code,) in blocks(PAGE, "python").items()}
SEEDS = range(3)  # the page has fifty


@pytest.mark.parametrize("heading", EXAMPLES)
def test_example(heading: str) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[heading], names)  # noqa: S102 (our own document)
    (example,) = (value for name, value in names.items() if name.startswith("test_"))
    if "parametrize" in EXAMPLES[heading]:
        for seed in SEEDS:
            example(seed)
    else:
        example()
