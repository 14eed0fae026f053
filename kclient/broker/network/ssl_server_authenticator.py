"""Principal of a client by its certificate, which the TLS handshake has verified."""

from collections.abc import Callable

from kclient.common.errors import SslAuthenticationError
from kclient.network.authenticator import ANONYMOUS, KafkaPrincipal, NoAuthenticator
from kclient.network.tls.distinguished_name import subject_of
from kclient.network.tls.ssl_principal_mapper import SslPrincipalMapper


class SslServerAuthenticator(NoAuthenticator):
    """Principal of a client of an SSL listener (Kafka: SslChannelBuilder.SslAuthenticator).

    Args:
        certificate: Returns the certificate of the client in DER, or None, after the handshake.
        mapper: Rules for names of principals.
    """

    def __init__(self, certificate: Callable[[], bytes | None], mapper: SslPrincipalMapper) -> None:
        self._certificate = certificate
        self._mapper = mapper
        self._principal: KafkaPrincipal | None = None

    def authenticate(self) -> None:
        """Determine the principal.

        Raises:
            SslAuthenticationError: No rule fits the subject of the certificate.
        """
        certificate = self._certificate()
        if certificate is None:
            self._principal = ANONYMOUS
            return
        subject = subject_of(certificate)
        name = self._mapper.name_of(subject)
        if name is None:
            raise SslAuthenticationError(
                f"ssl.principal.mapping.rules: got the subject {subject!r:.200}, which no rule fits"
            )
        self._principal = KafkaPrincipal("User", name)

    def complete(self) -> bool:
        """Return whether the principal is known."""
        return self._principal is not None

    def principal(self) -> KafkaPrincipal:
        """Return the principal of the client; ANONYMOUS without a certificate."""
        return ANONYMOUS if self._principal is None else self._principal
