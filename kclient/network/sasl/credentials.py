"""Credentials of a client: fixed ones, and ones that are loaded when they are needed."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from kclient.common.errors import KafkaError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.secret import Secret

_REFRESHED = 0.8  # share of a token's life, as in Kafka: sasl.login.refresh.window.factor
_LEAST_LIFE_S = 60.0  # a token with less is refused by brokers whose clock is ahead


_LONGEST_TOKEN = 256 * 1024
_RESERVED_EXTENSION = "auth"

TOKEN_FORM = f"a non-empty str of visible ASCII characters, at most {_LONGEST_TOKEN}"
"""Form that `is_token` checks."""


def is_token(token: str) -> bool:
    """Return whether text can be sent as a token."""
    return (
        token.isascii()
        and token.isprintable()
        and " " not in token
        and (0 < len(token) <= _LONGEST_TOKEN)
    )


def is_extension(name: object, value: object) -> bool:
    """Return whether name and value can be sent as a SASL extension (RFC 7628, section 3.1)."""
    is_name = isinstance(name, str) and name.isascii() and name.isalpha()
    is_value = isinstance(value, str) and value.isascii() and value.isprintable()
    return is_name and is_value and name != _RESERVED_EXTENSION


class UserCredentials(NamedTuple):
    """User name and password, for PLAIN and SCRAM.

    Attributes:
        user: User name, or id of a delegation token.
        password: Password, or secret of the token in base64.
        is_token: Whether they are those of a delegation token (KIP-48), for SCRAM.
    """

    user: str
    password: Secret
    is_token: bool = False


class OAuthBearerToken(NamedTuple):
    """Token for OAUTHBEARER (Kafka: OAuthBearerToken).

    Attributes:
        value: The token, which this client does not read.
        expires_at_s: End of its life, in seconds since the Unix epoch.
        extensions: SASL extensions (KIP-342), which some services need.
    """

    value: Secret
    expires_at_s: float
    extensions: Mapping[str, str]


class KerberosLogin(NamedTuple):
    """Where the Kerberos tickets for GSSAPI come from.

    The default cache of tickets, or the file of KRB5_CLIENT_KTNAME, if neither key table nor cache
    is named.

    Attributes:
        service_name: First part of the principals of the brokers.
        keytab: File with the key of a principal; empty if there is none.
        ticket_cache: File with tickets; empty for the default one.
        principal: Principal of the client; empty for that of the key table or the tickets.
    """

    service_name: str
    keytab: str
    ticket_cache: str
    principal: str


Credentials = UserCredentials | OAuthBearerToken | KerberosLogin


class CredentialsSource(Protocol):
    """Credentials of the connections of a client.

    A connection is opened when `done` is true after a `request`.
    """

    def request(self, on_done: Callable[[], object]) -> None:
        """Ask for credentials of a new connection or of a renewed session.

        Args:
            on_done: Called once when they are there, from any thread, if they are not yet.
        """
        ...

    def done(self) -> bool:
        """Return whether the last request has ended."""
        ...

    def failure(self) -> KafkaError | None:
        """Return why there are no credentials; None if there are."""
        ...

    def current(self) -> Credentials:
        """Return the credentials."""
        ...


class FixedCredentials:
    """Credentials of the configuration."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def request(self, on_done: Callable[[], object]) -> None:
        """Do nothing: they are there."""

    def done(self) -> bool:
        """Return True."""
        return True

    def failure(self) -> KafkaError | None:
        """Return None."""
        return None

    def current(self) -> Credentials:
        """Return the credentials."""
        return self._credentials


class LoadedCredentials:
    """Credentials that a function returns: a user's, or one that calls a token endpoint.

    The function may wait for a server, so that it runs in a thread of its own, once at a time. It
    is called for each new connection, since a password may have changed, but not while a token has
    more than a fifth of its life.
    """

    def __init__(
        self, load: Callable[[], Credentials], runtime: Runtime, log_context: LogContext
    ) -> None:
        """Create a source; `load` raises a KafkaError without secrets in its text."""
        self._log = log_context.logger(__name__)
        self._load = load
        self._tasks = runtime.tasks
        self._clock = runtime.clock
        # guards: the attributes below.
        self._lock = runtime.tasks.lock()
        self._loading = False
        self._waiting: dict[Callable[[], object], None] = {}
        self._credentials: Credentials | None = None
        self._failure: KafkaError | None = None
        self._refresh_at_s = 0.0

    def request(self, on_done: Callable[[], object]) -> None:
        """Start the function, unless it is running or the token is fresh."""
        with self._lock:
            if not self._loading and self._is_fresh():
                return
            # Once each: attempts to connect are repeated while the function does not return.
            self._waiting[on_done] = None
            if self._loading:
                return
            self._loading = True
        try:
            self._tasks.spawn("kclient-credentials", self._load_once)
        except RuntimeError as error:  # no thread can be started
            failure = KafkaError(f"credentials: {error}")
            failure.__cause__ = error
            self._end(None, failure)

    def done(self) -> bool:
        """Return whether the function has ended."""
        return not self._loading

    def failure(self) -> KafkaError | None:
        """Return the error of the function; None while earlier credentials can be used."""
        return self._failure

    def current(self) -> Credentials:
        """Return what the function returned last.

        Raises:
            KafkaError: It has failed.
        """
        if self._credentials is None:
            raise self._failure or KafkaError("credentials: got none, expected a request before")
        return self._credentials

    def _is_fresh(self) -> bool:
        token = self._credentials
        return isinstance(token, OAuthBearerToken) and self._now_s() < self._refresh_at_s

    def _now_s(self) -> float:
        return self._clock.wall_ms() / 1000

    def _load_once(self) -> bool:
        loaded: Credentials | None = None
        failure = KafkaError("credentials: the function was ended")
        try:
            loaded = self._load()
        except KafkaError as error:
            failure = error
        finally:
            self._end(loaded, failure)
        return False

    def _end(self, loaded: Credentials | None, failure: KafkaError) -> None:
        """Keep the outcome of a call, and notify those that wait for it."""
        with self._lock:
            self._adopt(loaded, failure)
            self._loading = False
            waiting, self._waiting = self._waiting, {}
        for on_done in waiting:
            on_done()

    def _adopt(self, loaded: Credentials | None, failure: KafkaError) -> None:
        """Keep the outcome; a token that is still valid outlives a failure to get another."""
        token = self._credentials
        self._failure = None
        if loaded is not None:
            self._credentials = loaded
            if isinstance(loaded, OAuthBearerToken):
                now_s = self._now_s()
                self._refresh_at_s = now_s + _REFRESHED * (loaded.expires_at_s - now_s)
        elif isinstance(token, OAuthBearerToken) and self._now_s() < (
            token.expires_at_s - _LEAST_LIFE_S
        ):
            self._log.warning("the token could not be refreshed and is used again: %s", failure)
        else:
            self._failure = failure
