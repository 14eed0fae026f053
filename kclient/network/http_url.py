"""URLs of services that clients call over HTTPS."""

import re
from typing import NamedTuple

from kclient.network.endpoint import is_loopback

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_MAX_LENGTH = 4096
_MAX_PORT = 65535


class HttpUrl(NamedTuple):
    """Address of a service.

    Attributes:
        is_encrypted: Whether it is called over HTTPS.
        host: Host name or IP address, without brackets.
        port: Port.
        target: Path and query.
    """

    is_encrypted: bool
    host: str
    port: int
    target: str

    def __str__(self) -> str:
        """Host and port, for messages: a query may have a secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_http_url(text: str) -> HttpUrl:
    """Return the parts of a URL.

    Raises:
        ValueError: It is none, or HTTP without encryption to another machine. The text has no part
            of it.
    """
    found = _URL.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if found is None or "#" in (found["target"] or ""):
        raise ValueError("user, password and fragment are not allowed")
    is_encrypted = found["scheme"].lower() == "https"
    host = found["host"].strip("[]")
    if not is_encrypted and not is_loopback(host):
        raise ValueError("http would send the secret in readable form")
    port = int(found["port"] or (443 if is_encrypted else 80))
    if not 0 < port <= _MAX_PORT:
        raise ValueError(f"the port is not between 1 and {_MAX_PORT}")
    target = found["target"] or "/"
    return HttpUrl(is_encrypted, host, port, target if target.startswith("/") else f"/{target}")
