"""Sources of the keys that tokens are signed by: a file, or a URL of the identity provider."""

import http.client
import logging
import os
from pathlib import Path
from typing import Protocol

from kclient.common.errors import ProtocolError
from kclient.common.runtime import Clock, Runtime, Task
from kclient.network.http_url import HttpUrl
from kclient.network.https_client import HttpsClient
from kclient.network.sasl.json_web_keys import VerificationKey, parse_keys

_log = logging.getLogger(__name__)

_MAX_FILE = 1 << 20
_FILE_INTERVAL_MS = 1000.0
_URL_INTERVAL_MS = 10_000.0
_SUCCESS = 200


class KeySet(Protocol):
    """Source of keys for one network thread."""

    @property
    def name(self) -> str:
        """Path, or host and port, for messages."""
        ...

    def load(self) -> list[VerificationKey]:
        """Return the keys; it may block.

        Raises:
            OSError: The source cannot be read.
            http.client.HTTPException: Its response is malformed, or too large.
            ValueError: It has no keys.
            ProtocolError: A key is malformed.
        """
        ...

    def changed(self, *, is_incomplete: bool) -> list[VerificationKey] | None:
        """Return the keys if they have changed, else None; it does not block.

        Args:
            is_incomplete: Whether a token names a key that the present ones do not have.
        """
        ...


class KeySetFile:
    """JSON Web Key Set in a file.

    If a token names an unknown key, the file is read again, if it has changed, at most once a
    second: identity providers change their keys. A file that cannot be read leaves the old ones.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.name = path
        self._clock = clock
        self._next_check_ms = 0.0
        self._version: tuple[int, int, int] | None = None

    def load(self) -> list[VerificationKey]:
        """Read the file."""
        self._version = self._version_of_file()
        with Path(self.name).open("rb") as file:
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ValueError(f"it is larger than {_MAX_FILE} bytes")
        return parse_keys(data)

    def changed(self, *, is_incomplete: bool) -> list[VerificationKey] | None:
        """Read the file again if a key is unknown and the file has changed."""
        now_ms = self._clock.monotonic_ms()
        if not is_incomplete or now_ms < self._next_check_ms:
            return None
        self._next_check_ms = now_ms + _FILE_INTERVAL_MS
        before = self._version
        try:
            return None if self._version_of_file() == before else self.load()
        except (OSError, ValueError, ProtocolError):
            self._version = before
            return None

    def _version_of_file(self) -> tuple[int, int, int]:
        status = os.stat(self.name)
        return status.st_mtime_ns, status.st_ino, status.st_size


class KeySetUrl:
    """JSON Web Key Set of an identity provider (Kafka: RefreshingHttpsJwks).

    A thread fetches the keys again after the refresh interval and, at most every ten seconds, when
    a token names an unknown key; that token is refused. If it fails, the old keys are kept.
    """

    def __init__(
        self, url: HttpUrl, client: HttpsClient, runtime: Runtime, refresh_ms: float
    ) -> None:
        """Create a source; nothing is fetched yet.

        Args:
            url: URL of the keys, for messages.
            client: Client of this URL.
            runtime: Clock and threads.
            refresh_ms: ``sasl.oauthbearer.jwks.endpoint.refresh.ms``.
        """
        self.name = str(url)
        self._client = client
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._refresh_ms = refresh_ms
        self._fetched: list[VerificationKey] | None = None  # written by the other thread
        self._task: Task | None = None
        self._next_refresh_ms = self._next_retry_ms = 0.0

    def load(self) -> list[VerificationKey]:
        """Fetch the keys."""
        self._count_request()
        response = self._client.get({"Accept": "application/json"})
        if response.status != _SUCCESS:
            raise ValueError(f"it responded {response.status}")
        return parse_keys(response.body)

    def changed(self, *, is_incomplete: bool) -> list[VerificationKey] | None:
        """Return the keys that the thread has fetched, and start it if that is due."""
        fetched = self._fetched
        if fetched is not None:
            self._fetched = None
            return fetched
        now_ms = self._clock.monotonic_ms()
        due_ms = self._next_retry_ms if is_incomplete else self._next_refresh_ms
        is_running = self._task is not None and self._task.is_alive()
        if now_ms >= due_ms and not is_running:
            self._count_request()
            self._task = self._tasks.spawn("kclient-jwks", self._fetch)
        return None

    def _count_request(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._next_refresh_ms = now_ms + self._refresh_ms
        self._next_retry_ms = now_ms + _URL_INTERVAL_MS

    def _fetch(self) -> bool:
        try:
            self._fetched = self.load()
        except (OSError, http.client.HTTPException, ValueError, ProtocolError) as error:
            self._next_refresh_ms = self._next_retry_ms
            _log.warning("keys of %s could not be fetched: %s", self.name, described(error))
        return False


def described(error: Exception) -> str:
    """Return the cause as text; that of an HTTPException may have a part of the response."""
    if isinstance(error, http.client.HTTPException):
        return type(error).__name__
    return str(error) or type(error).__name__
