"""The catalogue of faults, its page and the marks of tests say the same."""

from tests.faults.catalogue import CASES, IN_SCOPE, PAGE, page, shown_cases


def test_every_mark_names_a_case_that_exists() -> None:
    unknown = {case: tests for case, tests in shown_cases().items() if case not in CASES}
    assert unknown == {}


def test_the_page_is_up_to_date() -> None:
    # To update the page: python -m tests.faults.catalogue --write
    assert PAGE.read_text() == page()


def test_every_case_in_scope_is_shown_by_a_test() -> None:
    shown = shown_cases()
    assert [case for case in IN_SCOPE if case not in shown] == []
