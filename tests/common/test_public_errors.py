"""`kclient.errors` has every public error."""

import importlib
import pkgutil
from collections.abc import Iterator

import kclient
from kclient import errors, spark
from kclient.common.errors import KafkaError

# Errors of the companion broker are internal; the Spark package has its own list.
_INSIDE = "kclient.broker."
_SPARK = "kclient.spark."


def test_errors_module_has_every_client_error() -> None:
    for module in pkgutil.walk_packages(kclient.__path__, "kclient."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    missing = [
        f"{kind.__module__}.{kind.__name__}"
        for kind in _kinds(KafkaError)
        if kind.__module__.startswith("kclient.")
        and not kind.__module__.startswith((_INSIDE, _SPARK))
        and getattr(errors, kind.__name__, None) is not kind
    ]
    assert missing == []


def test_errors_module_has_every_spark_error() -> None:
    for module in pkgutil.walk_packages(spark.__path__, _SPARK):
        if "error" in module.name:
            importlib.import_module(module.name)
    own = {kind.__name__ for kind in _kinds(KafkaError) if kind.__module__.startswith(_SPARK)}
    assert own
    assert own <= set(spark.__all__)


def _kinds(root: type[KafkaError]) -> Iterator[type[KafkaError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
