"""Functions of users that return user name, password or token."""

from collections.abc import Callable, Mapping

from kclient.common.config_def import describe
from kclient.common.errors import AuthenticationError
from kclient.common.log_context import LogContext
from kclient.common.runtime import Runtime
from kclient.common.secret import Secret
from kclient.network.sasl.credentials import (
    Credentials,
    CredentialsSource,
    FixedCredentials,
    LoadedCredentials,
    OAuthBearerToken,
    UserCredentials,
)
from kclient.network.security_config import SecurityConfig, TokenFunction, TokenProvider

_LONGEST_TOKEN = 256 * 1024
_TUPLE = "a tuple (token, expiry in seconds since the Unix epoch)"
_RESERVED_EXTENSION = "auth"


def credentials_source(
    config: SecurityConfig, runtime: Runtime, log_context: LogContext
) -> CredentialsSource | None:
    """Return the credentials of a client; None if it does not use SASL."""
    if not config.uses_sasl:
        return None
    if config.has_fixed_credentials:
        return FixedCredentials(UserCredentials(*config.credentials))
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
    if not isinstance(token, str) or not _is_token(token):
        raise AuthenticationError(
            f"sasl_token_provider: got a token of type {type(token).__name__}, expected a non-empty"
            f" str of visible ASCII characters, at most {_LONGEST_TOKEN}"
        )
    if isinstance(expiry_s, bool) or not isinstance(expiry_s, int | float):
        raise AuthenticationError(
            f"sasl_token_provider: got {describe(expiry_s)} as expiry, expected {_TUPLE}"
        )
    return OAuthBearerToken(Secret(token), float(expiry_s), _extensions(extensions))


def _is_token(token: str) -> bool:
    return (
        token.isascii()
        and token.isprintable()
        and " " not in token
        and (0 < len(token) <= _LONGEST_TOKEN)
    )


def _extensions(given: object) -> Mapping[str, str]:
    expected = "a dict of names of letters and printable values"
    if not isinstance(given, Mapping):
        raise AuthenticationError(f"extensions: got a {type(given).__name__}, expected {expected}")
    for name, value in given.items():
        is_name = isinstance(name, str) and name.isascii() and name.isalpha()
        is_value = isinstance(value, str) and value.isascii() and value.isprintable()
        if not is_name or not is_value or name == _RESERVED_EXTENSION:
            raise AuthenticationError(f"extensions: got {name!r:.80}, expected {expected}")
    return dict(given)


def _called(name: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (becomes the outcome of the call)
        kind = type(error).__name__
        raise AuthenticationError(f"{name}: the function raised {kind}") from None
