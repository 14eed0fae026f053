"""Keys of the Java client that are refused, with the reason.

A configuration of a Java client that has one is refused with the reason, so that no key is accepted
without effect.
"""

from kclient.common.config_def import ConfigKey, ConfigType

_CONTEXT = "TLS 1.2 and 1.3 are used; pass an ssl.SSLContext as ssl_context for other settings"
_CLASSES = "classes are not loaded by name here"
_NOT_AVAILABLE = "it is not available in this version"
_METRICS = "read metrics with .metrics()"

_REASONS = {
    "bootstrap.resolve.timeout.ms": "addresses are looked up in the background, and each call "
    "waits for them for its own timeout",
    "config.providers": "resolve values before passing them; files and the environment are not "
    "read",
    "enable.metrics.push": "metrics are not pushed to brokers (KIP-714)",
    "metric.reporters": f"{_CLASSES}; {_METRICS}",
    "metrics.recording.level": f"every metric is recorded; {_METRICS}",
    "security.providers": _CLASSES,
}

_SECURITY_KEYS = [
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.allow.unverified.issuer",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "ssl.engine.factory.class",
    "ssl.keymanager.algorithm",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
]

_NO_KINIT = "kinit is not called; let another program renew tickets, or use a key table"

_SECURITY_REASONS = {
    "sasl.client.callback.handler.class": _CLASSES,
    "sasl.kerberos.kinit.cmd": _NO_KINIT,
    "sasl.kerberos.min.time.before.relogin": _NO_KINIT,
    "sasl.kerberos.ticket.renew.jitter": _NO_KINIT,
    "sasl.kerberos.ticket.renew.window.factor": _NO_KINIT,
    "sasl.login.class": _CLASSES,
    "ssl.engine.factory.class": _CONTEXT,
}


def refused(name: str, reason: str) -> ConfigKey:
    """Define a key that cannot be set; the error has the reason.

    The error does not show values that may contain a password, a key or a token.
    """

    def convert(raw: object) -> object:
        raise ValueError(reason)

    return ConfigKey(
        name,
        ConfigType.UNKNOWN,
        convert,
        "no value",
        None,
        f"Cannot be set: {reason}.",
        secret=_may_be_secret(name),
        refused=reason,
    )


def _may_be_secret(name: str) -> bool:
    return name.startswith(("sasl.", "ssl."))


def java_only_keys() -> list[ConfigKey]:
    """Return the keys that all clients refuse."""
    reasons = _REASONS | dict.fromkeys(_SECURITY_KEYS, _NOT_AVAILABLE) | _SECURITY_REASONS
    return [refused(name, reason) for name, reason in sorted(reasons.items())]


def security_keys() -> list[str]:
    """Return the names of Java's keys about encryption and authentication that are refused."""
    return sorted({*_SECURITY_KEYS, *_SECURITY_REASONS})
