"""Clients for asyncio: the same options and results as in `kclient`, with calls that are awaited.

A client has no thread: its connections, its sender and its heartbeats run in callbacks of the event
loop of its first call. As in `kclient`, each client is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kclient.aio.admin_client import AdminClient
    from kclient.aio.consumer import Consumer
    from kclient.aio.producer import Producer
    from kclient.aio.transactional_loop import TransactionalLoop
else:
    _MODULES = {
        "AdminClient": "kclient.aio.admin_client",
        "Consumer": "kclient.aio.consumer",
        "Producer": "kclient.aio.producer",
        "TransactionalLoop": "kclient.aio.transactional_loop",
    }

    def __getattr__(name: str) -> object:
        """Import a client when it is first used (PEP 562)."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))

    def __dir__() -> list[str]:
        """Return the public names, imported or not."""
        return sorted({*globals(), *__all__})


__all__ = ["AdminClient", "Consumer", "Producer", "TransactionalLoop"]
