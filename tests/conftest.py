"""Fixtures and checks of all tests."""

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.processes.heeded_interrupts import heed_interrupts


def pytest_configure() -> None:
    heed_interrupts()
    # No test may fail because the machine is busy.
    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without garbage collection, and exclude them from it from then on.

    They are several hundred thousand objects that live until the end of the run. Each full
    collection would visit them: a fifth of the CPU time of short tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
