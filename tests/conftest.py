"""Fixtures and checks of all tests."""

from tests.support.processes.heeded_interrupts import heed_interrupts


def pytest_configure() -> None:
    heed_interrupts()
