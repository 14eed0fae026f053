"""`kclient.errors` is the one place to import errors from: it must know every one of them."""

import importlib
import pkgutil
from collections.abc import Iterator

import kclient
from kclient import errors
from kclient.common.errors import KafkaError

# What the companion broker alone raises stays inside of it.
_INSIDE = "kclient.broker."


def test_every_error_of_the_clients_is_there() -> None:
    for module in pkgutil.walk_packages(kclient.__path__, "kclient."):
        if module.name.endswith(".errors"):
            importlib.import_module(module.name)
    missing = [
        f"{kind.__module__}.{kind.__name__}"
        for kind in _kinds(KafkaError)
        if kind.__module__.startswith("kclient.")
        and not kind.__module__.startswith(_INSIDE)
        and getattr(errors, kind.__name__, None) is not kind
    ]
    assert missing == []


def _kinds(root: type[KafkaError]) -> Iterator[type[KafkaError]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
