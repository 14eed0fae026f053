"""Limits of versions and cipher suites, in a TLS context."""

import ssl

from kclient.network.tls.cipher_suites import CIPHER_SUITES_1_2, TLS_1_2, TLS_1_3, TlsVersions

_VERSIONS = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}


def limit_versions(context: ssl.SSLContext, settings: TlsVersions) -> None:
    """Set the versions and the cipher suites of a context."""
    versions = settings.in_use()
    context.minimum_version = _VERSIONS[versions[0]]
    context.maximum_version = _VERSIONS[versions[-1]]
    names = [CIPHER_SUITES_1_2[name] for name in settings.suites or () if name in CIPHER_SUITES_1_2]
    if names:
        context.set_ciphers(":".join(names))
