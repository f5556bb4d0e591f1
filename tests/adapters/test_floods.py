"""All who can make the operator hold bytes do so at once: its memory limit holds, the others go on, and each is named."""

import asyncio
import contextlib
import http.server
import json
import os
import re
import secrets
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import astuple
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from adapters.hostile import REGISTRATION, hostile, zookeeper
from apiserver.processes import port
from fakes.kafka_node import Node
from patience import stretched
from switchover.network.addresses import Address

LIMIT = 256                 # MiB, as in the chart
IMAGE = dict(re.findall(r"(MALLOC_\w+)=(\d+)", (Path(__file__).parents[2] / "Dockerfile").read_text()))
NODES, LARGE = 60, 8_000_000


def announcing(connection: socket.socket) -> None:
    """A broker that announces 40 MiB, of which no more comes than a byte now and then."""
    connection.recv(4096)
    connection.sendall((40 * 1024 * 1024).to_bytes(4))
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"\0")
            threading.Event().wait(0.2)


def object_of(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1", **parts.pop("metadata", {})}, **parts}


class Api(http.server.BaseHTTPRequestHandler):
    """An API server with 200 claims and 200 revisions of 250 KiB each in one namespace, and two pods in another one."""

    large = secrets.token_urlsafe(190_000)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query, plural = parse_qs(url.query), url.path.rpartition("/")[2]
        if "watch" in query:
            answer = b""
        else:
            begin, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
            found = [self.found(plural, number) for number in range(2 if plural == "pods" else 200)[begin:begin + limit]]
            more = {"continue": str(begin + limit)} if found and begin + limit < 200 and plural != "pods" else {}
            answer = json.dumps({"kind": "List", "items": found, "metadata": {"resourceVersion": "1", **more}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(answer)

    def found(self, plural: str, number: int) -> dict[str, Any]:
        turned = self.large[number:] + self.large[:number]
        if plural == "persistentvolumeclaims":
            return object_of(f"c-{number}", metadata={"annotations": {"x": turned}})
        if plural == "controllerrevisions":
            return object_of(f"r-{number}", data=turned)
        return object_of(f"p-{number}")

    def log_message(self, *_: object) -> None: ...


@contextlib.contextmanager
def api(directory: Path) -> Iterator[Path]:
    """Its kubeconfig."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = directory / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "flood"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}],
        "users": [{"name": "u", "user": {}}]}))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()


def flood_headers(here: int) -> list[socket.socket]:
    """32 connections of 6 MiB of headers each, that do not end."""
    line, opened = b"X: " + b"a" * 65_000 + b"\r\n", []
    for _ in range(32):
        connection = socket.create_connection(("127.0.0.1", here))
        with contextlib.suppress(OSError):
            connection.sendall(b"GET /metrics HTTP/1.1\r\n" + line * 98)
        opened.append(connection)
    return opened


def scraped(here: int) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{here}/metrics", timeout=30) as answer:
        return bytes(answer.read())


async def test_all_floods_at_once_leave_the_operator_alive_within_its_limit(tmp_path: Path) -> None:
    """60 znodes of 8 MB from each of two servers, 40 MiB from each of eight brokers, 100 MiB of objects, endless headers."""
    limit = tmp_path / "memory.max"
    limit.write_text(str(LIMIT << 20))
    versions = ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(), throttle_time=i32Timedelta.parse(timedelta()))
    with contextlib.ExitStack() as servers:
        def at(serve: Any) -> Address:
            return servers.enter_context(hostile(serve))

        kubeconfig = servers.enter_context(api(tmp_path))
        async with Node(lambda *_: versions) as honest:
            given = {
                "limit": str(limit), "port": (here := port()), "kubeconfig": str(kubeconfig), "rounds": 1,
                "zookeepers": [str(at(zookeeper(NODES, b"{" * LARGE))) for _ in range(2)],
                "honest zookeeper": str(at(zookeeper(3, REGISTRATION))),
                "kafkas": [astuple(at(announcing)) for _ in range(8)], "honest kafka": astuple(honest.address)}
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "adapters.flooded", json.dumps(given), stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, limit=1 << 20,
                env={**os.environ, **IMAGE, "PYTHONPATH": os.pathsep.join(sys.path)})
            assert child.stdout is not None
            assert child.stdin is not None
            try:
                assert await child.stdout.readline() == b"ready\n"
                opened = await asyncio.to_thread(flood_headers, here)
                child.stdin.write(b"go\n")
                assert b"switchover_" in await asyncio.to_thread(scraped, here)
                async with asyncio.timeout(stretched(60)):
                    report = json.loads(await child.stdout.readline() or "null")
                    assert await child.wait() == 0
            finally:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
    print(json.dumps(report, indent=1))
    for each in opened:
        each.close()
    said = report["said"]
    assert report["highest"] <= LIMIT, report
    assert report["held"] == 0
    assert said["claims"] == ["200 of PersistentVolumeClaim"]
    assert all("/brokers/ids/" in each for each in said["zookeeper"]), said["zookeeper"]
    [refusal] = said["revisions"]
    assert " among the controllerrevisions of namespace flood is more than there is memory for" in refusal
    assert len({each[each.index("127."):].split(": ")[0] for each in said["kafka"]}) == 8, said["kafka"]
    assert any("an answer of it takes 80 MiB of memory" in each for each in said["kafka"]), said["kafka"]
    for name, answer in (("zookeeper", "ZooKeeperState("), ("kafka", "NodeAnswer("), ("pods", "2 of Pod")):
        assert [each.startswith(answer) for each in said[f"honest {name}"]] == [True], said[f"honest {name}"]
        assert len(report["waits"][name]) > 5
    assert max(max(each) for each in report["waits"].values()) < stretched(3)
