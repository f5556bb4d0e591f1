"""What the brokers, ZooKeeper and the operator say of themselves when asked directly, past the operator's own code."""

import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from demo.cluster import Cluster, CommandFailed

LEADER_AND_ISR, DESCRIBE_QUORUM = 4, 55
"""API keys (Kafka's ApiKeys): a ZooKeeper-mode broker has 4 and lacks 55, a KRaft broker the other way round."""


@contextmanager
def forwarded(cluster: Cluster, pod: str, port: int) -> Iterator[int]:
    """A loopback port that leads to the port of a pod. Raises CommandFailed."""
    command = ("kubectl", "--namespace", cluster.namespace, "port-forward", f"pod/{pod}", f":{port}")
    process = subprocess.Popen(
        command, env=dict(cluster.environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+) ->", first)
        if found is None:
            raise CommandFailed(f"{' '.join(command)}: {first.strip() or 'ended'}")
        yield int(found[1])
    finally:
        process.kill()                  # an orderly end of a forwarding is worth no wait
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def broker_mode(cluster: Cluster, pod: str, port: int) -> str:
    """KRaft or ZooKeeper, by the API keys that the broker offers (ApiVersions v0)."""
    with forwarded(cluster, pod, port) as local, socket.create_connection(("127.0.0.1", local), timeout=10) as link:
        request = struct.pack(">hhih", 18, 0, 1, -1)              # key, version, correlation id, no client id
        link.sendall(struct.pack(">i", len(request)) + request)
        answer = _exactly(link, struct.unpack(">i", _exactly(link, 4))[0])
    return mode_of(answer)


def mode_of(answer: bytes) -> str:
    """The mode that an ApiVersions v0 response shows: correlation id, error, then (key, lowest, highest) triples."""
    _, error, count = struct.unpack_from(">ihi", answer)
    keys = {struct.unpack_from(">hhh", answer, 10 + 6 * number)[0] for number in range(count)}
    if error or not keys:
        return f"error {error}"
    if DESCRIBE_QUORUM in keys and LEADER_AND_ISR not in keys:
        return "KRaft"
    return "ZooKeeper" if LEADER_AND_ISR in keys and DESCRIBE_QUORUM not in keys else "neither ZooKeeper nor KRaft"


def zookeeper_connections(cluster: Cluster, pod: str, port: int) -> int:
    """Connections that a ZooKeeper server counts (`srvr`), without the one that asks; -1 when it does not tell."""
    script = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf srvr >&3; cat <&3"
    try:
        answer = cluster.kubectl("exec", pod, "--", "bash", "-c", script, timeout=20)
    except CommandFailed:
        return -1
    found = re.search(r"^Connections: (\d+)$", answer, re.MULTILINE)
    return int(found[1]) - 1 if found else -1


def metrics(cluster: Cluster, pod: str, port: int) -> str:
    """The operator's metrics in Prometheus' text format."""
    with forwarded(cluster, pod, port) as local, socket.create_connection(("127.0.0.1", local), timeout=10) as link:
        link.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
        return b"".join(iter(lambda: link.recv(65536), b"")).decode()


def _exactly(link: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = link.recv(size - len(found))
        if not part:
            raise CommandFailed("the broker closed the connection")
        found += part
    return found
