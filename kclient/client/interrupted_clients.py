"""Closing of network clients that an exception of a signal handler interrupted."""

import logging

from kclient.client.network_client import NetworkClient
from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)


def close_interrupted(clients: list[NetworkClient]) -> None:
    """Close clients whose state is inconsistent, and remove them from the list.

    After an interruption, the next call continues with the rest.
    """
    while clients:
        try:
            clients[-1].close()
        except (KafkaError, LookupError, OSError, ValueError) as error:
            # The remaining sockets are closed with their last reference.
            _log.info("error while closing interrupted connections: %s", error)
        clients.pop()
