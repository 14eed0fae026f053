"""Requests that no connection sent, and the sink of their responses."""

import threading

from kclient.broker.network.request_channel import (
    ConnectionContext,
    Request,
    Response,
)
from kclient.network.authenticator import ANONYMOUS
from kclient.network.memory_pool import SimpleMemoryPool
from kclient.network.network_receive import NetworkReceive
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader


class Sink:
    def __init__(self) -> None:
        self.responses: list[Response] = []

    def enqueue_response(self, response: Response) -> None:
        self.responses.append(response)


def request(sink: Sink | None = None, version: int = 1) -> Request:
    header = RequestHeader(ApiKey.LIST_OFFSETS, version, 7, "test")
    receive = NetworkReceive("connection", 100, SimpleMemoryPool(100, threading.RLock()))
    connection = ConnectionContext("connection", "127.0.0.1", "PLAINTEXT", ANONYMOUS)
    return Request(sink or Sink(), receive, connection, header, None)
