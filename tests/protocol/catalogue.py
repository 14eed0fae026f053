"""All messages in all versions, for parametrized tests."""

from importlib import import_module
from pkgutil import iter_modules

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
