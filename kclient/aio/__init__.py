"""Clients for asyncio: the same options and results as in `kclient`, with calls that are awaited.

A client has no thread: its connections, its sender and its heartbeats run in callbacks of the event
loop of its first call.
"""

from kclient.aio.admin_client import AdminClient
from kclient.aio.consumer import Consumer
from kclient.aio.producer import Producer

__all__ = ["AdminClient", "Consumer", "Producer"]
