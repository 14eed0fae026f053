"""Functions that return user name, password or token: those of users, and the token endpoint."""

from collections.abc import Callable, Mapping
from importlib import import_module

from kclient.common.config_def import describe
from kclient.common.errors import AuthenticationError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.secret import Secret
from kclient.network.sasl.credentials import (
    TOKEN_FORM,
    Credentials,
    CredentialsSource,
    FixedCredentials,
    LoadedCredentials,
    OAuthBearerToken,
    UserCredentials,
    is_extension,
    is_token,
)
from kclient.network.sasl.gssapi import GSSAPI
from kclient.network.sasl.kerberos import import_gssapi
from kclient.network.security_config import SecurityConfig, TokenFunction, TokenProvider

_TUPLE = "a tuple (token, expiry in seconds since the Unix epoch)"


def credentials_source(
    config: SecurityConfig, runtime: Runtime, log_context: LogContext
) -> CredentialsSource | None:
    """Return the credentials of a client; None if it does not use SASL.

    Raises:
        ConfigError: The authorities that are trusted for the token endpoint cannot be loaded, or
            the package for Kerberos is missing.
    """
    if not config.uses_sasl:
        return None
    if config.has_fixed_credentials:
        return FixedCredentials(
            UserCredentials(*config.credentials, is_token=config.has_delegation_token)
        )
    if config.sasl_mechanism == GSSAPI:
        import_gssapi()
        return FixedCredentials(config.kerberos_login)
    request = config.token_request
    if request is not None:
        # Imported when it is needed, as TLS and HTTP are.
        endpoints = import_module("kclient.network.sasl.token_endpoint")
        endpoint = endpoints.token_endpoint(config, request, runtime)
        return LoadedCredentials(endpoint.token, runtime, log_context)
    return LoadedCredentials(lambda: _load(config), runtime, log_context)


def _load(config: SecurityConfig) -> Credentials:
    """Call the functions of the configuration.

    Raises:
        AuthenticationError: A function failed, or returned something else. The text has the type of
            an exception alone, since its text may contain a secret.
    """
    provider = config.sasl_token_provider
    if provider is not None:
        return _loaded_token(provider)
    user = _text("sasl_username", config.sasl_username)
    if config.sasl_mechanism != "PLAIN" and not user.isascii():
        raise AuthenticationError(
            f"sasl_username: got {describe(user)}, expected ASCII with {config.sasl_mechanism}"
        )
    password = config.sasl_password
    revealed = password.reveal() if isinstance(password, Secret) else None
    return UserCredentials(user, Secret(revealed or _text("sasl_password", password)))


def _loaded_token(provider: TokenFunction | TokenProvider) -> OAuthBearerToken:
    function = provider if callable(provider) else provider.token
    extensions = getattr(provider, "extensions", {})
    found = _called("sasl_token_provider", function)
    if callable(extensions):
        extensions = _called("extensions of sasl_token_provider", extensions)
    return _token(found, extensions)


def _text(name: str, given: object) -> str:
    """Return what a function of a user name or password returns, or the text itself."""
    found = _called(name, given) if callable(given) else given
    if not isinstance(found, str) or not found or "\0" in found:
        raise AuthenticationError(
            f"{name}: got a {type(found).__name__} from the function, expected a non-empty str"
            " without NUL"
        )
    return found


def _token(found: object, extensions: object) -> OAuthBearerToken:
    if not isinstance(found, tuple) or len(found) != 2:
        raise AuthenticationError(
            f"sasl_token_provider: got a {type(found).__name__}, expected {_TUPLE}"
        )
    token, expiry_s = found
    if not isinstance(token, str) or not is_token(token):
        raise AuthenticationError(
            f"sasl_token_provider: got a token of type {type(token).__name__}, expected"
            f" {TOKEN_FORM}"
        )
    if isinstance(expiry_s, bool) or not isinstance(expiry_s, int | float):
        raise AuthenticationError(
            f"sasl_token_provider: got {describe(expiry_s)} as expiry, expected {_TUPLE}"
        )
    return OAuthBearerToken(Secret(token), float(expiry_s), _extensions(extensions))


def _extensions(given: object) -> Mapping[str, str]:
    expected = "a dict of names of letters and printable values"
    if not isinstance(given, Mapping):
        raise AuthenticationError(f"extensions: got a {type(given).__name__}, expected {expected}")
    for name, value in given.items():
        if not is_extension(name, value):
            raise AuthenticationError(f"extensions: got {name!r:.80}, expected {expected}")
    return dict(given)


def _called(name: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (becomes the outcome of the call)
        kind = type(error).__name__
        raise AuthenticationError(f"{name}: the function raised {kind}") from None
