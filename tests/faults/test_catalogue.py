"""The catalogue of faults, its page and the marks of tests say the same."""

from tests.faults.catalogue import CASES, IN_SCOPE, PAGE, page, shown_cases


def test_marks_name_existing_cases() -> None:
    unknown = {case: tests for case, tests in shown_cases().items() if case not in CASES}
    assert unknown == {}


def test_page_is_up_to_date() -> None:
    # To update the page: python -m tests.faults.catalogue --write
    assert PAGE.read_text() == page()


def test_cases_in_scope_have_a_test() -> None:
    shown = shown_cases()
    assert [case for case in IN_SCOPE if case not in shown] == []
