"""Lets go of network clients that an exception has left in the midst of something."""

import logging

from kclient.client.network_client import NetworkClient
from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)


def close_interrupted(clients: list[NetworkClient]) -> None:
    """Close clients whose state cannot be relied on, and take them off the list.

    Called again where it was itself interrupted, it goes on with the rest.
    """
    while clients:
        try:
            clients[-1].close()
        except (KafkaError, LookupError, OSError, ValueError) as error:
            # What is half open is closed when the last reference to it goes.
            _log.info("closing the connections that were interrupted: %s", error)
        clients.pop()
