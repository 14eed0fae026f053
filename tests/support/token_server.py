"""Token endpoint of an OIDC identity provider, in a thread of the test."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs

from kclient.network.tls.store_loading import pem_file
from kclient.testing.certificate_authority import Identity


class Received(NamedTuple):
    """Request that the endpoint received: path, headers in lower case, fields of the form."""

    path: str
    headers: dict[str, str]
    form: dict[str, list[str]]


class Reply(NamedTuple):
    """Response of the endpoint."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def token_reply(token: str, **others: object) -> Reply:
    """Return a response with a token."""
    return Reply(200, json.dumps({"access_token": token, **others}).encode())


class TokenServer:
    """Endpoint that responds as a function decides.

    Attributes:
        url: Its URL.
        received: Requests so far.
        respond: Returns the response to a request; may be replaced.
    """

    def __init__(self, respond: Callable[[Received], Reply]) -> None:
        self.url = ""
        self.received: list[Received] = []
        self.respond = respond


@contextmanager
def token_server(
    respond: Callable[[Received], Reply], identity: Identity | None = None
) -> Iterator[TokenServer]:
    """Run an endpoint for a block; with TLS if it has a certificate for localhost."""
    server = TokenServer(respond)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.received.append(Received(self.path, headers, parse_qs(body.decode())))
            self._send(server.respond(server.received[-1]))

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.received.append(Received(self.path, headers, {}))
            self._send(server.respond(server.received[-1]))

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore that a client closed the connection."""

    http = Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if identity is not None:
        http.socket = _with_tls(identity).wrap_socket(http.socket, server_side=True)
        scheme = "https"
    server.url = f"{scheme}://localhost:{http.server_address[1]}/token"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def _with_tls(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with pem_file(identity.pem) as path:
        context.load_cert_chain(path)
    return context
