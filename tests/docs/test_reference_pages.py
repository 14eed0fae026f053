"""The reference pages say what the code says."""

import pytest

from tests.support.reference_pages import PAGES, REFERENCE


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    # To mend a failure: python -m tests.support.reference_pages
    assert (REFERENCE / name).read_text() == PAGES[name]()
