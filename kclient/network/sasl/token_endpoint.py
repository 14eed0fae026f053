"""Tokens for OAUTHBEARER from an OIDC token endpoint, by client credentials (KIP-768)."""

import base64
import http.client
import json
import math
import re
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import quote_plus, urlencode

from kclient.common.errors import AuthenticationError
from kclient.common.runtime import Runtime
from kclient.common.secret import Secret
from kclient.network.https_client import HttpResponse, HttpsClient, HttpTimeouts
from kclient.network.sasl.credentials import OAuthBearerToken, is_token
from kclient.network.sasl.oidc_config import OidcConfig, TokenRequest
from kclient.network.tls.client_context import https_context

_SUCCESSES = (200, 201)
_NOT_RETRIED = frozenset({*range(300, 408), *range(409, 416), 501, 505})
_REFUSED_MS = 10_000.0  # pause after a refusal, as in Kafka: ExpiringCredentialRefreshingLogin
_ERROR_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)

Post = Callable[[Mapping[str, str], bytes], HttpResponse]


class TokenEndpoint:
    """Requests tokens with a client id and a client secret (Kafka: ClientCredentialsJwtRetriever).

    Errors have the status of a response and the name of its error, never a header, its body or the
    secret.
    """

    def __init__(
        self, config: OidcConfig, request: TokenRequest, post: Post, runtime: Runtime
    ) -> None:
        """Create an endpoint; `post` is that of an `HttpsClient`."""
        self._config = config
        self._request = request
        self._post = post
        self._clock = runtime.clock
        self._paused = runtime.tasks.condition()
        self._refusal: AuthenticationError | None = None
        self._refused_until_ms = 0.0

    def token(self) -> OAuthBearerToken:
        """Request a token; retriable failures are repeated for ``sasl.login.retry.backoff.max.ms``.

        Other failures are raised again for 10 s without a request: the provider may lock a client
        out whose secret is wrong too often.

        Raises:
            AuthenticationError: The endpoint refused the request, cannot be reached, or its
                response has no token.
        """
        if self._refusal is not None and self._clock.monotonic_ms() < self._refused_until_ms:
            raise self._refusal.with_traceback(None)
        end_ms = self._clock.monotonic_ms() + self._config.sasl_login_retry_backoff_max_ms
        backoff_ms = self._config.sasl_login_retry_backoff_ms
        while True:
            found, can_retry = self._attempt()
            if isinstance(found, OAuthBearerToken):
                return found
            left_ms = end_ms - self._clock.monotonic_ms()
            if not can_retry:
                self._refusal = found
                self._refused_until_ms = self._clock.monotonic_ms() + _REFUSED_MS
            if not can_retry or left_ms <= 0:
                raise found
            with self._paused:
                self._paused.wait(min(backoff_ms, left_ms) / 1000)
            backoff_ms *= 2

    def _attempt(self) -> tuple[OAuthBearerToken | AuthenticationError, bool]:
        """Send a request; return the token, or the error and whether it can be retried."""
        try:
            response = self._post(self._headers(), self._form())
        except (OSError, http.client.HTTPException) as error:
            can_retry = not isinstance(error, ssl.SSLCertVerificationError)
            return self._failure(f"request failed: {_cause(error)}"), can_retry
        if response.status not in _SUCCESSES:
            text = f"responded {response.status}{_error_name(response.body)}"
            return self._failure(text), response.status not in _NOT_RETRIED
        try:
            return self._token(response.body), False
        except AuthenticationError as error:
            return error, False

    def _headers(self) -> Mapping[str, str]:
        names = [self._request.client_id, self._request.client_secret.reveal()]
        if self._config.sasl_oauthbearer_header_urlencode:
            names = [quote_plus(name) for name in names]
        return {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(':'.join(names).encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }

    def _form(self) -> bytes:
        fields = {"grant_type": "client_credentials"}
        if self._request.scope is not None:
            fields["scope"] = self._request.scope
        return urlencode(fields).encode()

    def _token(self, body: bytes) -> OAuthBearerToken:
        fields = _json_object(body)
        token = fields.get("access_token")
        if not isinstance(token, str) or not is_token(token):
            raise self._failure("responded without a usable access_token")
        life_s = _seconds(fields.get("expires_in"))
        if life_s is not None:
            expires_at_s: float | None = self._clock.wall_ms() / 1000 + life_s
        else:
            expires_at_s = _expiry_of(token)
        if expires_at_s is None:
            raise self._failure("responded without expires_in")
        return OAuthBearerToken(Secret(token), expires_at_s, self._request.extensions)

    def _failure(self, problem: str) -> AuthenticationError:
        return AuthenticationError(f"token endpoint {self._request.url}: {problem}")


def token_endpoint(config: OidcConfig, request: TokenRequest, runtime: Runtime) -> TokenEndpoint:
    """Return the endpoint of a configuration.

    Raises:
        ConfigError: The file with trusted authorities cannot be loaded.
    """
    timeouts = HttpTimeouts(config.sasl_login_connect_timeout_ms, config.sasl_login_read_timeout_ms)
    context = https_context("https_ca_location", config.https_ca_location)
    post = HttpsClient(request.url, context, timeouts, runtime.clock).post
    return TokenEndpoint(config, request, post, runtime)


def _cause(error: OSError | http.client.HTTPException) -> str:
    """Return the cause as text; that of an HTTPException may have a part of the response."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was not accepted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "it timed out"
    strerror = error.strerror if isinstance(error, OSError) else None
    return strerror or type(error).__name__


def _error_name(body: bytes) -> str:
    """Return the name of an error (RFC 6749, section 5.2), if it is safe to show."""
    name = _json_object(body).get("error")
    return f" {name}" if isinstance(name, str) and _ERROR_NAME.fullmatch(name) else ""


def _json_object(text: bytes) -> Mapping[str, object]:
    """Return the fields of a JSON object; none if it is something else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(given: object) -> float | None:
    """Return a positive time; services return it as a number, and some as text."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        seconds = float(given)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _expiry_of(token: str) -> float | None:
    """Return the claim ``exp`` of a JSON Web Token; None if it is none."""
    claims = token.split(".")[1:2]
    try:
        payload = base64.urlsafe_b64decode("".join(claims) + "==")
    except ValueError:
        return None
    return _seconds(_json_object(payload).get("exp"))
