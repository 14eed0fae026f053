"""The generated reference pages equal the code's."""

import pytest

from tests.support.checks.error_advice import ADVICE
from tests.support.checks.reference_pages import PAGES, REFERENCE, own_errors


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    # To update the pages: python -m tests.support.checks.reference_pages
    assert (REFERENCE / name).read_text() == PAGES[name]()


def test_each_client_error_has_advice() -> None:
    assert {kind.__name__ for kind in own_errors()} == set(ADVICE)
