"""The targets, each in a module of its own, imported when it is asked for.

Late, so that a coverage-guided engine can instrument what a target imports.
"""

from importlib import import_module

from tests.fuzz.target import Target

NAMES = (
    "frames",
    "requests",
    "responses",
    "batches",
    "arrow",
    "compression",
    "groups",
    "cluster_metadata",
    "log_files",
    "recovery",
    "broker",
    "clients",
)
"""Every target, the quick ones first."""


def target(name: str) -> Target:
    """Return a target by name."""
    found: Target = import_module(f"tests.fuzz.targets.{name}").TARGET
    return found
