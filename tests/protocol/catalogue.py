"""All messages in all versions, for parametrized tests."""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

import pytest

from kclient.protocol import messages
from kclient.protocol.message import Message


def _all_messages() -> list[type[Message]]:
    found: dict[str, type[Message]] = {}
    for module in iter_modules(messages.__path__):
        for value in vars(import_module(f"{messages.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Message) and value.max_version >= 0:
                found[value.__name__] = value
    return [found[name] for name in sorted(found)]


MESSAGES = _all_messages()
BY_NAME = {message.__name__: message for message in MESSAGES}
MESSAGE_VERSIONS = [
    (message, version)
    for message in MESSAGES
    for version in range(message.min_version, message.max_version + 1)
]
IDS = [f"{message.__name__}-v{version}" for message, version in MESSAGE_VERSIONS]


def in_every_version(
    test: Callable[[type[Message], int], None],
) -> Callable[[type[Message]], None]:
    """Make a test of each message, which runs `test` for all its versions.

    A note on a failure names the version. A test of its own for each version would take longer to
    collect and to report than to run.
    """

    @pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
    def run(message: type[Message]) -> None:
        for version in range(message.min_version, message.max_version + 1):
            try:
                test(message, version)
            except BaseException as error:
                error.add_note(f"{message.__name__} v{version}")
                raise

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run
