"""Fuzz targets, imported on first use.

So the coverage-guided engine can instrument the modules that a target imports.
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
    "sasl_server",
    "sasl_client",
    "tokens",
    "acls",
    "tls_records",
    "clients",
)
"""Names of all targets, the fastest first."""


def target(name: str) -> Target:
    """Return a target by name."""
    found: Target = import_module(f"tests.fuzz.targets.{name}").TARGET
    return found
