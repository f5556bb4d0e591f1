"""The operator as a process of its own, on a real API server."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running(kubeconfig: Path, namespace: str, log: Path, **settings: str) -> "Iterator[subprocess.Popen[str]]":
    """`switchover run` with these variables besides, until the block ends."""
    environment = {**os.environ, "POD_NAMESPACE": namespace, "POD_NAME": "operator-0", "KUBECONFIG": str(kubeconfig),
                   "PROBE_PORT": str(port()), "METRICS_PORT": str(port()), "LOG_FORMAT": "text", **settings}
    with log.open("w") as file, subprocess.Popen(
            [Path(sys.executable).with_name("switchover"), "run"], env=environment, stderr=file, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
