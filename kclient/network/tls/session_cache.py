"""TLS sessions that later connections of a client resume."""

import ssl

_KEPT = 1000


class TlsSessionCache:
    """The last session of each host, as the Java client's context keeps them.

    A resumed session needs no certificates and less CPU time; the server decides whether it resumes
    one. Sessions belong to the context whose certificates were verified. One thread uses the cache.
    """

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._sessions: dict[str, ssl.SSLSession] = {}

    def get(self, context: ssl.SSLContext, host: str) -> ssl.SSLSession | None:
        """Return a session of a context with a host, or None."""
        return self._sessions.get(host) if context is self._context else None

    def put(self, context: ssl.SSLContext, host: str, session: ssl.SSLSession | None) -> None:
        """Keep a session; those of an earlier context are discarded."""
        if context is not self._context:
            self._context, self._sessions = context, {}
        if session is not None:
            self._sessions.pop(host, None)
            self._sessions[host] = session
            if len(self._sessions) > _KEPT:
                del self._sessions[next(iter(self._sessions))]
