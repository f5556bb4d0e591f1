"""Servers on loopback that say what an honest one never does, and a ZooKeeper of a few nodes in as many lines."""

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

from switchover.network.addresses import Address

STAT = struct.pack(">qqqqiiiqiiq", 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1)
REGISTRATION = json.dumps({"version": 5, "host": "b", "port": 9092, "endpoints": ["PLAINTEXT://b:9092"], "jmx_port": -1,
                           "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "timestamp": "1"}).encode()
NO_NODE = -101


@contextlib.contextmanager
def hostile(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Answers every connection with `serve`, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield Address(*listening.getsockname())
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def zookeeper(count: int, registration: bytes) -> Any:
    """What serves a connection as a ZooKeeper whose brokers' registrations are these."""
    def read(connection: socket.socket, size: int) -> bytes:
        found = b""
        while len(found) < size:
            if not (part := connection.recv(size - len(found))):
                raise OSError
            found += part
        return found

    def text(value: bytes) -> bytes:
        return struct.pack(">i", len(value)) + value

    def serve(connection: socket.socket) -> None:
        read(connection, *struct.unpack(">i", read(connection, 4)))
        connection.sendall(text(struct.pack(">iiq", 0, 4000, 1) + text(bytes(16)) + b"\0"))
        while True:
            request = read(connection, *struct.unpack(">i", read(connection, 4)))
            xid, kind = struct.unpack(">ii", request[:8])
            path = request[12:12 + int.from_bytes(request[8:12])] if kind in (4, 9, 8) else b""
            error, answer = 0, text(path)
            if kind == 8:
                answer = struct.pack(">i", count) + b"".join(text(b"%d" % each) for each in range(count))
            elif path == b"/cluster/id":
                answer = text(b'{"version":"1","id":"abcdefghijklmnopqrstuv"}') + STAT
            elif path.startswith(b"/brokers/ids/"):
                answer = text(registration) + STAT
            elif kind == 4:
                error, answer = NO_NODE, b""
            connection.sendall(text(struct.pack(">iqi", xid, 1, error) + answer))

    return serve
