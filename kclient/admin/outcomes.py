"""One call, several items, an outcome for each."""

from collections.abc import Mapping

from kclient.common.broker_errors import error_for_code
from kclient.common.errors import KafkaError


def item_error(what: str, code: int, message: str | None) -> KafkaError | None:
    """Return the error of one item, named in its text, or None if it went well."""
    error = error_for_code(code, message)
    if error is None:
        return None
    return type(error)(f"{what}: {error}")


def raise_failures(failures: Mapping[str, KafkaError]) -> None:
    """Raise the first item's error; where more than one failed, its notes name the others."""
    if not failures:
        return
    first, *others = failures.values()
    for other in others:
        first.add_note(f"also failed: {other}")
    raise first
