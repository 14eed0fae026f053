"""Values of ``sasl.jaas.config``, as the Java client writes them (Kafka: JaasConfig)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kclient.common.secret import Secret
from kclient.network.sasl.credentials import KerberosLogin, UserCredentials, is_extension

MAX_LENGTH: Final = 64 * 1024
"""Maximum length of a value, in characters."""

_OAUTHBEARER = ("OAUTHBEARER",)
_GSSAPI = ("GSSAPI",)
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISMS = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": _SCRAM,
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": _OAUTHBEARER,
    "com.sun.security.auth.module.Krb5LoginModule": _GSSAPI,
}
_USER = "user_"  # option of a server's PlainLoginModule: user_NAME="PASSWORD"
_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
_OPTIONS = ("username", "password")
_TOKENAUTH = "tokenauth"
_OAUTHBEARER_OPTIONS = ("clientId", "clientSecret", "scope")
_EXTENSION = "extension_"
_KERBEROS_OPTIONS = ("serviceName", "keyTab", "ticketCache", "principal")
_KERBEROS_SWITCHES = ("useKeyTab", "useTicketCache", "storeKey", "doNotPrompt", "renewTGT")
_BOOLEANS = {"true": True, "false": False}

# Names that errors may show. Other text may be a part of a password that is not quoted correctly.
_MODULE = re.compile(r"[A-Za-z_$][\w$]*(\.[\w$]+)+LoginModule", re.ASCII)
_KNOWN_OPTIONS = {
    "tokenauth": "it is an option of SCRAM",
    "user": "the option is named username",
    "pass": "the option is named password",
    "serviceName": "it is an option of Kerberos",
    "keyTab": "it is an option of Kerberos",
    "useKeyTab": "it is an option of Kerberos",
    "useTicketCache": "it is an option of Kerberos",
    "clientId": "it is an option of OAUTHBEARER",
    "clientSecret": "it is an option of OAUTHBEARER",
    "scope": "it is an option of OAUTHBEARER",
}

# Java's StreamTokenizer, without its numbers, which are no values of options there either.
_TOKEN = re.compile(
    r"""
    (?P<blank> [\x00-\x20]+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<word> [A-Za-z_$\-\xa0-\U0010ffff][A-Za-z0-9._$\-\xa0-\U0010ffff]* )
    | "(?P<double> (?:[^"\\\r\n]|\\.)* )"
    | '(?P<single> (?:[^'\\\r\n]|\\.)* )'
    | (?P<sign> [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_CHARACTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasConfig(NamedTuple):
    """Credentials of a login module.

    Attributes:
        mechanisms: SASL mechanisms of the module.
        username: User name, or client id of OAUTHBEARER, which may be empty.
        password: Password, or client secret of OAUTHBEARER, which may be empty.
        scope: Scope of a token of OAUTHBEARER; empty if it has none.
        extensions: SASL extensions of OAUTHBEARER.
        kerberos: Login of Krb5LoginModule, whose service name may be empty; None for other modules.
        tokenauth: Whether user name and password are those of a delegation token, for SCRAM.
    """

    mechanisms: tuple[str, ...]
    username: str
    password: Secret
    scope: str
    extensions: Mapping[str, str]
    kerberos: KerberosLogin | None = None
    tokenauth: bool = False


class _Token(NamedTuple):
    """Word, quoted text or sign.

    Attributes:
        text: Its text without quotes and escapes.
        is_sign: Whether it is ``=`` or ``;`` outside of quotes.
        column: Number of its first character, from 1.
    """

    text: str
    is_sign: bool
    column: int


class ServerJaasConfig(NamedTuple):
    """Login module of a listener.

    Attributes:
        mechanisms: SASL mechanisms of the module.
        users: Passwords by user name, for PLAIN.
        login: User and password with which this node connects to others; None if not given.
    """

    mechanisms: tuple[str, ...]
    users: Mapping[str, Secret]
    login: UserCredentials | None = None


class _Entry(NamedTuple):
    """Entry of a value: the mechanisms of its module, and the words of its options."""

    mechanisms: tuple[str, ...]
    words: list[_Token]


def parse_jaas_config(text: str) -> JaasConfig:
    """Return the credentials of a value with one entry of PLAIN, SCRAM, OAUTHBEARER or Kerberos.

    Raises:
        ValueError: The value is wrong. The text has no part of it, except names of modules and
            options that Kafka defines.
    """
    entry = _parse_entry(text)
    if entry.mechanisms == _OAUTHBEARER:
        return _oauthbearer(_options(entry.words, _OAUTHBEARER_OPTIONS, _EXTENSION))
    if entry.mechanisms == _GSSAPI:
        return _kerberos(_options(entry.words, (*_KERBEROS_OPTIONS, *_KERBEROS_SWITCHES)))
    is_scram = entry.mechanisms == _SCRAM
    options = _options(entry.words, (*_OPTIONS, _TOKENAUTH) if is_scram else _OPTIONS)
    for name in _OPTIONS:
        if not options.get(name):
            raise ValueError(f"it has no {name}")
    is_token = _BOOLEANS.get(options.get(_TOKENAUTH, "false").lower())
    if is_token is None:
        raise ValueError(f"its {_TOKENAUTH} is neither true nor false")
    user, password = options["username"], Secret(options["password"])
    return JaasConfig(entry.mechanisms, user, password, "", {}, tokenauth=is_token)


def _oauthbearer(options: dict[str, str]) -> JaasConfig:
    client_id, secret, scope = (options.pop(name, "") for name in _OAUTHBEARER_OPTIONS)
    extensions = {name.removeprefix(_EXTENSION): value for name, value in options.items()}
    if not all(is_extension(name, value) for name, value in extensions.items()):
        raise ValueError(f"the name of an option {_EXTENSION}NAME, or its value, is not allowed")
    return JaasConfig(_OAUTHBEARER, client_id, Secret(secret), scope, extensions)


def _kerberos(options: dict[str, str]) -> JaasConfig:
    on = {name: _BOOLEANS.get(options.get(name, "false").lower()) for name in _KERBEROS_SWITCHES}
    for name, value in on.items():
        if value is None:
            raise ValueError(f"its {name} is neither true nor false")
    if on["renewTGT"]:
        raise ValueError("it has the option renewTGT; tickets are not renewed, run kinit")
    if on["useKeyTab"] == on["useTicketCache"]:
        raise ValueError("it has neither or both of useKeyTab=true and useTicketCache=true")
    service_name, keytab, cache, principal = (options.get(name, "") for name in _KERBEROS_OPTIONS)
    if bool(keytab) != on["useKeyTab"]:
        raise ValueError("it has one of useKeyTab=true and keyTab")
    if cache and not on["useTicketCache"]:
        raise ValueError("it has ticketCache without useTicketCache=true")
    login = KerberosLogin(service_name, keytab, cache, principal)
    return JaasConfig(_GSSAPI, "", Secret(""), "", {}, login)


def parse_server_jaas_config(text: str) -> ServerJaasConfig:
    """Return the login module of a listener, with the users of PLAIN.

    Options username and password are those with which the node connects to other nodes.

    Raises:
        ValueError: As `parse_jaas_config`.
    """
    entry = _parse_entry(text)
    if entry.mechanisms == _GSSAPI:
        raise ValueError("listeners do not authenticate by Kerberos in this version")
    if entry.mechanisms == _OAUTHBEARER and entry.words:
        raise ValueError("a listener's OAuthBearerLoginModule has no options here")
    of_plain = entry.mechanisms == ("PLAIN",)
    options = _options(entry.words, _OPTIONS, _USER if of_plain else "")
    users = {
        name.removeprefix(_USER): Secret(value)
        for name, value in options.items()
        if name.startswith(_USER)
    }
    if not all(secret.reveal() for secret in users.values()):
        raise ValueError("a user has an empty password")
    if of_plain and not users:
        raise ValueError('it has no user; one is an option user_NAME="PASSWORD"')
    return ServerJaasConfig(entry.mechanisms, users, _login(options))


def _login(options: Mapping[str, str]) -> UserCredentials | None:
    user, password = (options.get(name, "") for name in _OPTIONS)
    if bool(user) != bool(password):
        raise ValueError(f"it has one of {' and '.join(_OPTIONS)}, expected both or none")
    return UserCredentials(user, Secret(password)) if user else None


def _parse_entry(text: str) -> _Entry:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it is longer than {MAX_LENGTH} characters")
    tokens = list(_tokens(text))
    ends = [at for at, token in enumerate(tokens) if token.is_sign and token.text == ";"]
    if not ends or ends[-1] != len(tokens) - 1:
        raise ValueError("it does not end with ';'")
    if len(ends) > 1:
        raise ValueError("it has more than one entry")
    words = tokens[:-1]  # the signs among them are '='
    mechanisms = _mechanisms(words[0] if words else None)
    if len(words) < 2 or words[1].is_sign or words[1].text.lower() not in _CONTROL_FLAGS:
        raise ValueError(f"no control flag after the module: one of {', '.join(_CONTROL_FLAGS)}")
    return _Entry(mechanisms, words[2:])


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(
                f"character {at + 1} is not allowed outside of quotes, or its quote does not end;"
                " quote values with special characters, and write \\ before a quote within"
            )
        kind = found.lastgroup
        if kind in ("word", "sign"):
            yield _Token(found[0], is_sign=kind == "sign", column=at + 1)
        elif kind != "blank":
            yield _Token(_ESCAPED.sub(_unescape, found[kind or 0]), is_sign=False, column=at + 1)
        at = found.end()


def _unescape(match: re.Match[str]) -> str:
    sequence: str = match[1]
    if "0" <= sequence[0] <= "7":
        return chr(int(sequence, 8))
    return _CHARACTERS.get(sequence, sequence)


def _mechanisms(module: _Token | None) -> tuple[str, ...]:
    name = "" if module is None or module.is_sign else module.text
    if name in _MECHANISMS:
        return _MECHANISMS[name]
    shown = f"the module {name:.120}" if _MODULE.fullmatch(name) else "its first word"
    raise ValueError(f"{shown} is none of {', '.join(_MECHANISMS)}")


def _options(words: list[_Token], known: tuple[str, ...], prefix: str = "") -> dict[str, str]:
    """Return the values of options by name: of known names, and of those with a prefix if any."""
    options: dict[str, str] = {}
    for at in range(0, len(words), 3):
        name, *rest = words[at : at + 3]
        if [each.is_sign for each in (name, *rest)] != [False, True, False]:
            raise ValueError(f"character {name.column} does not begin an option NAME=VALUE")
        value = rest[1]
        is_prefixed = bool(prefix) and name.text.startswith(prefix) and name.text != prefix
        if name.text not in known and not is_prefixed:
            raise ValueError(_unknown_option(name, (*known, f"{prefix}NAME") if prefix else known))
        if name.text in options:
            shown = prefix if is_prefixed else name.text
            raise ValueError(f"it has {shown} twice")
        options[name.text] = value.text
    return options


def _unknown_option(name: _Token, known: tuple[str, ...]) -> str:
    if name.text in _KNOWN_OPTIONS:
        return f"it has the option {name.text}; {_KNOWN_OPTIONS[name.text]}"
    return f"the option at character {name.column} is none of {', '.join(known)}"
