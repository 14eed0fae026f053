"""Transport layer with TLS, which encrypts and decrypts in memory."""

import contextlib
import ssl
from collections.abc import Sequence

from kclient.common.files import FileSlice, WireBytes
from kclient.common.runtime import Address, StreamSocket
from kclient.network.tls.handshake_failures import (
    closed_in_handshake,
    handshake_failure,
    refused_after_handshake,
)
from kclient.network.tls.session_cache import TlsSessionCache

READ_SIZE = 256 * 1024
"""Bytes of the buffer of a read."""

_WRITE_AHEAD = 256 * 1024
_MAX_LOW_WATER_MARK = 1 << 20
_LARGEST_RECORD = 16 * 1024 + 512


class SslTransportLayer:
    """Connection with TLS (Kafka: SslTransportLayer).

    The session reads and writes two buffers in memory; the socket carries many records with each
    system call, and stays free of TLS.
    """

    def __init__(
        self,
        stream: StreamSocket,
        context: ssl.SSLContext,
        scratch: bytearray,
        *,
        server_hostname: str | None = None,
        server_side: bool = False,
        sessions: TlsSessionCache | None = None,
    ) -> None:
        """Create the layer; nothing is sent before `handshake`.

        Args:
            stream: Socket that is connecting or connected.
            context: Certificates, versions, verification.
            scratch: Buffer of a read, which the channels of one thread share.
            server_hostname: Host name for SNI and verification, on the client side.
            server_side: Whether the peer is the client.
            sessions: Sessions to resume, on the client side.
        """
        self.socket = stream
        self._host = server_hostname or ""
        self._context = context
        self._sessions = sessions
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_side,
            server_hostname=server_hostname,
            session=None if sessions is None else sessions.get(context, self._host),
        )
        self._scratch = memoryview(scratch)
        self._encrypted = memoryview(b"")  # taken from `_outgoing`, and not written yet
        self._ready = False
        self._has_data = False
        self._closed = False
        self._low_water_mark = 1

    @property
    def wants_write(self) -> bool:
        """Whether encrypted bytes wait for the socket."""
        return bool(self._encrypted) or self._outgoing.pending > 0

    @property
    def has_buffered(self) -> bool:
        """Whether received bytes were not read yet, decrypted or not."""
        return self._incoming.pending > 0 or self._session.pending() > 0

    @property
    def is_resumed(self) -> bool:
        """Whether the session is an earlier one of the same host."""
        return self._session.session_reused

    def ready(self) -> bool:
        """Return whether the handshake is complete."""
        return self._ready

    def handshake(self) -> None:
        """Run the next steps of the handshake.

        Raises:
            SslAuthenticationError: The peer's certificate was not accepted, the peer refused this
                side's, or both sides have no version in common.
            DisconnectedError: The peer closed the connection.
        """
        while not self._ready:
            try:
                self._session.do_handshake()
                self._ready = True
            except ssl.SSLWantReadError:
                self.flush()
                try:
                    if not self._fill():
                        return
                except (EOFError, ConnectionResetError):  # reset, if bytes were left unread
                    raise closed_in_handshake() from None
            except ssl.SSLError as error:
                self._send_alert()
                raise handshake_failure(error, self._session, self._host) from error
        self.flush()

    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate in DER, or None if it has shown none."""
        return self._session.getpeercert(binary_form=True)

    def read_into(self, buffer: memoryview) -> int:
        """Read up to the buffer's size; return the number of bytes."""
        while True:
            try:
                # With a buffer it returns the number of bytes, which typeshed does not declare.
                count: int = self._session.read(len(buffer), buffer)  # type: ignore[assignment]
            except ssl.SSLWantReadError:
                self.flush()  # the session may have responded to a message of the protocol
                if not self._fill():
                    return 0
            except ssl.SSLZeroReturnError:
                raise EOFError from None
            except ssl.SSLError as error:
                if not self._has_data:
                    raise refused_after_handshake(error) from error
                raise
            else:
                if not count:
                    raise EOFError
                if not self._has_data:
                    self._has_data = True
                    self._keep_session()
                return count

    def _keep_session(self) -> None:
        """Keep the session, which a server of TLS 1.3 sends before its first data."""
        if self._sessions is not None:
            self._sessions.put(self._context, self._host, self._session.session)

    def expect(self, size: int) -> None:
        """Let the socket be readable when most of `size` bytes have arrived.

        The session may have up to one record of them already.
        """
        mark = min(max(size - _LARGEST_RECORD, 1), _MAX_LOW_WATER_MARK)
        if mark != self._low_water_mark:
            self.socket.set_receive_low_water_mark(mark)
            self._low_water_mark = mark

    def write(self, parts: Sequence[WireBytes]) -> int:
        """Encrypt from the parts, if the socket has taken what was encrypted before.

        The number of bytes is that of the plain bytes that were encrypted; `flush` writes the
        encrypted ones that the socket has not taken.
        """
        if not self.flush():
            return 0
        taken = 0
        for part in parts:
            plain = memoryview(part).cast("B")[: _WRITE_AHEAD - taken]
            if plain:
                taken += self._session.write(plain)
            if taken == _WRITE_AHEAD:
                break
        self.flush()
        return taken

    def write_file(self, part: FileSlice, offset: int) -> int:
        """Encrypt from a file slice; see `write`."""
        if not self.flush():
            return 0
        length = min(part.length - offset, _WRITE_AHEAD)
        chunk = part.file.read_at(part.position + offset, length)
        if not chunk:
            raise OSError(f"{part.file.path}: shorter than the slice to send")
        return self.write([chunk])

    def flush(self) -> bool:
        """Write encrypted bytes; return whether none are left."""
        while self._encrypted or self._outgoing.pending:
            if not self._encrypted:
                self._encrypted = memoryview(self._outgoing.read())
            try:
                count = self.socket.sendmsg([self._encrypted])
            except BlockingIOError:
                return False
            self._encrypted = self._encrypted[count:]
        return True

    def peer_address(self) -> Address:
        """Return the peer's address."""
        return self.socket.peer_address()

    def close(self) -> None:
        """Send close_notify if the socket takes it, and close the connection; idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._ready:
                self._send_close_notify()
        finally:
            self.socket.close()

    def _send_close_notify(self) -> None:
        # It is written to the buffer before the response is waited for.
        with contextlib.suppress(ssl.SSLError):
            self._session.unwrap()
        self.flush()

    def _send_alert(self) -> None:
        """Notify the peer why the handshake failed; it may have closed the connection."""
        try:
            self.flush()
        except OSError:
            self._outgoing.read()

    def _fill(self) -> int:
        """Read encrypted bytes from the socket into the session; return their number.

        Raises:
            EOFError: The peer closed the connection, possibly without close_notify: frames have a
                length, which shows whether one is complete.
        """
        try:
            count = self.socket.recv_into(self._scratch)
        except BlockingIOError:
            return 0
        if not count:
            raise EOFError
        self._incoming.write(self._scratch[:count])
        return count
