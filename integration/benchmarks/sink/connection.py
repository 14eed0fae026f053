"""A client's connection: frames in, responses out, one request at a time."""

import socket
import time
from collections import deque
from struct import Struct

from integration.benchmarks.sink.other_requests import OtherRequests
from integration.benchmarks.sink.partition_log import Part
from integration.benchmarks.sink.produce_and_fetch import handle_fetch, handle_produce
from integration.benchmarks.sink.topics import Topics
from integration.benchmarks.sink.wire import INT32, NO_TAGS
from kclient.common.files import FileSlice
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import decode_request_header, encode_response

_BUFFER = 1 << 20
_LARGEST = 100 << 20
_PARTS_AT_ONCE = 512  # below IOV_MAX
_SMALL = 1024  # bytes that are cheaper to copy than to pass on by themselves
_FRONT = Struct(">hhih")
_FLEXIBLE_FROM = {ApiKey.PRODUCE: 9, ApiKey.FETCH: 12}


class Connection:
    """State of a connection.

    Attributes:
        socket: not blocking.
        due: when the response that waits for records is to be sent; the requests behind it wait.
    """

    def __init__(self, accepted: socket.socket, topics: Topics, others: OtherRequests) -> None:
        self.socket = accepted
        self.due: float | None = None
        self._topics = topics
        self._others = others
        self._buffer = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0
        self._unsent: deque[Part] = deque()
        self._waiting: list[Part] = []

    @property
    def wants_to_send(self) -> bool:
        return bool(self._unsent)

    def receive(self) -> None:
        """Reads what is there and handles the whole requests in it.

        Raises:
            ConnectionError: the client closed the connection.
            ValueError: a request is malformed or too large.
        """
        self._make_space()
        count = self.socket.recv_into(self._buffer[self._end :])
        if not count:
            msg = "closed by the client"
            raise ConnectionResetError(msg)
        self._end += count
        self.proceed()

    def proceed(self) -> None:
        """Handles the requests that have been received, and sends what the socket takes."""
        while self.due is None and (frame := self._frame()) is not None:
            self._handle(frame)
            self._start += 4 + len(frame)
        self.send()

    def end_wait(self) -> None:
        """Sends the response that waited for records."""
        self.due = None
        self._unsent.extend(self._waiting)
        self.proceed()

    def send(self) -> None:
        """Sends as much as the socket takes."""
        unsent = self._unsent
        while unsent:
            try:
                parts = [unsent[each] for each in range(min(len(unsent), _PARTS_AT_ONCE))]
                sent = self.socket.sendmsg(parts)
            except BlockingIOError:
                return
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = memoryview(unsent[0])[sent:]

    def _make_space(self) -> None:
        """Moves the unfinished request to the front, into a larger buffer where it needs one."""
        buffer, start, end = self._buffer, self._start, self._end
        size = 4 + INT32.unpack_from(buffer, start)[0] if end - start >= 4 else 4
        if not 4 <= size <= _LARGEST:
            msg = f"request: got {size} bytes, expected at most {_LARGEST}"
            raise ValueError(msg)
        if size > len(buffer):
            self._buffer = memoryview(bytearray(size + _BUFFER))
        if start == end:
            self._start = self._end = 0
        elif start + size > len(buffer) or end == len(buffer):
            self._buffer[: end - start] = buffer[start:end]
            self._start, self._end = 0, end - start

    def _frame(self) -> memoryview | None:
        """Returns the first request if all of it is there."""
        start, end = self._start, self._end
        if end - start < 4:
            return None
        stop = start + 4 + INT32.unpack_from(self._buffer, start)[0]
        return self._buffer[start + 4 : stop] if stop <= end else None

    def _handle(self, frame: memoryview) -> None:
        api_key, version, correlation_id, client_id_length = _FRONT.unpack_from(frame)
        flexible = version >= _FLEXIBLE_FROM.get(api_key, 0)
        # The header of a flexible request ends with its tags, of which no client sends any.
        at = _FRONT.size + max(client_id_length, 0) + flexible
        if api_key == ApiKey.PRODUCE:
            body = handle_produce(self._topics, frame, at, version)
            if body is not None:
                self._unsent.extend(_framed(correlation_id, [body], flexible=flexible))
        elif api_key == ApiKey.FETCH:
            fetched = handle_fetch(self._topics, frame, at, version)
            parts = _framed(correlation_id, fetched.parts, flexible=flexible)
            if fetched.records or not fetched.max_wait_ms:
                self._unsent.extend(parts)
            else:
                self._waiting = parts
                self.due = time.monotonic() + fetched.max_wait_ms / 1000
        else:
            self._respond(frame)

    def _respond(self, frame: memoryview) -> None:
        header, at = decode_request_header(frame)
        response, version = self._others.respond(header.api_key, header.api_version, frame[at:])
        encoded = encode_response(response, version, header.correlation_id)
        parts = [part for part in encoded if not isinstance(part, FileSlice)]
        self._unsent.extend([INT32.pack(sum(map(len, parts))), *parts])


def _framed(correlation_id: int, body: list[Part], *, flexible: bool) -> list[Part]:
    """Returns a response with its size and header, the body's small parts in one."""
    front = INT32.pack(correlation_id) + (NO_TAGS if flexible else b"")
    joined: list[Part] = []
    small = bytearray(front)
    for part in body:
        if len(part) < _SMALL:
            small += part
        else:
            joined += (bytes(small), part)
            small.clear()
    joined.append(bytes(small))
    return [INT32.pack(sum(map(len, joined))) + joined[0], *joined[1:]]
