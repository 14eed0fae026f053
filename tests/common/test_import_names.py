"""Names that programs import from `kclient` by the name of another client, or from elsewhere."""

import subprocess
import sys
from importlib import import_module

import pytest

import kclient
from kclient.import_names import IMPORT_NAMES


@pytest.mark.parametrize("name", [*IMPORT_NAMES, "KafkaError", "DeliveryTimeoutError"])
def test_import_and_attribute_name_what_to_use(name: str) -> None:
    with pytest.raises(ImportError) as imported:
        exec(f"from kclient import {name}")  # noqa: S102 (a statement with each name)
    hint = str(imported.value).partition("; ")[2]
    assert hint
    with pytest.raises(AttributeError) as missing:
        getattr(kclient, name)
    assert str(missing.value) == f"module 'kclient' has no attribute {name!r}; {hint}"
    assert not hasattr(kclient, name)
    module = hint.removeprefix("import it from ")
    if module != hint:
        assert hasattr(import_module(module), name)


def test_unknown_name_has_the_usual_errors() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'kclient' "):
        exec("from kclient import Nothing")  # noqa: S102
    with pytest.raises(AttributeError, match=r"^module 'kclient' has no attribute 'NoError'$"):
        getattr(kclient, "NoError")  # noqa: B009


def test_submodule_is_imported_first() -> None:
    program = "from kclient import errors, serialization; print(errors.KafkaError.__name__)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "KafkaError\n"
