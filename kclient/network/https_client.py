"""HTTPS requests of clients and brokers, for short responses; each waits for its response."""

import http.client
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from kclient.common.runtime import Clock
from kclient.network.http_url import HttpUrl

MAX_RESPONSE = 1 << 20
"""Largest body of a response, in bytes."""

_CHUNK = 64 * 1024


class HttpResponse(NamedTuple):
    """Status and body of a response."""

    status: int
    body: bytes


class HttpTimeouts(NamedTuple):
    """Timeouts of a request.

    Attributes:
        connect_ms: For the connection with its TLS handshake.
        read_ms: For the response.
    """

    connect_ms: int
    read_ms: int


class HttpsClient:
    """Sends requests of one client, each on a connection of its own.

    Redirects and proxies of the environment are not followed: credentials go to the configured host
    alone.
    """

    def __init__(self, url: HttpUrl, context: ssl.SSLContext, timeouts: HttpTimeouts, clock: Clock):
        self._url = url
        self._context = context
        self._timeouts = timeouts
        self._clock = clock

    def post(self, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a POST request and return its response, of any status.

        Raises:
            OSError: The host cannot be reached, or did not respond in time.
            http.client.HTTPException: The response is malformed, or too large.
        """
        return self._send("POST", headers, body)

    def get(self, headers: Mapping[str, str]) -> HttpResponse:
        """Send a GET request and return its response, of any status.

        Raises:
            OSError: The host cannot be reached, or did not respond in time.
            http.client.HTTPException: The response is malformed, or too large.
        """
        return self._send("GET", headers, None)

    def _send(self, method: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        connection = self._connection()
        try:
            connection.connect()
            connection.sock.settimeout(self._timeouts.read_ms / 1000)
            deadline_ms = self._clock.monotonic_ms() + self._timeouts.read_ms
            connection.request(method, self._url.target, body, dict(headers))
            response = connection.getresponse()
            return HttpResponse(response.status, self._body(response, deadline_ms))
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host, port, timeout_s = self._url.host, self._url.port, self._timeouts.connect_ms / 1000
        if self._url.is_encrypted:
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._context)
        return http.client.HTTPConnection(host, port, timeout=timeout_s)

    def _body(self, response: http.client.HTTPResponse, deadline_ms: float) -> bytes:
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > MAX_RESPONSE:
                raise ResponseTooLargeError
            if self._clock.monotonic_ms() > deadline_ms:
                raise TimeoutError
        return bytes(body)


class ResponseTooLargeError(http.client.HTTPException):
    """The body of a response has more than `MAX_RESPONSE` bytes."""
