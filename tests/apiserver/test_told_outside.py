"""The operator as a process on a real API server, and a webhook that is not there yet, and then is."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from apiserver.examples import documented_of
from apiserver.processes import running
from patience import until

Kubectl = Callable[..., Any]
SECRET = "T0SECRET"


class Receiver(ThreadingHTTPServer):
    """Takes every message."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.texts: list[str] = []


class Answer(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        assert self.path == f"/hooks/{SECRET}"
        self.server.texts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.long
def test_a_standstill_is_told_outside_once_and_a_webhook_that_is_not_there_stops_nothing(
    receiver: Receiver, kubeconfig: Path, namespace: str, crds: object, kubectl: Kubectl, tmp_path: Path
) -> None:
    address, log = tmp_path / "address", tmp_path / "log"

    def create(name: str) -> None:
        """One of a StatefulSet that does not exist, which is a Blocker."""
        found = documented_of("KafkaMigration")[0]
        kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps({**found, "metadata": {"name": name}}))

    def events(reason: str) -> list[str]:
        told = kubectl("-n", namespace, "get", "events", "--field-selector", f"reason={reason}", "--output", "json").stdout
        return [f"{each['involvedObject']['name']} {each['message']}" for each in json.loads(told)["items"]]

    def is_told_of(name: str) -> bool:
        return any(f"/{name} is stalled: " in text for text in receiver.texts)

    def operator() -> Any:
        return running(kubeconfig, namespace, log, WEBHOOK_FILE=str(address), LOG_LEVEL="DEBUG")

    def why() -> str:
        return f"{receiver.texts}, {log.read_text()[-2000:]}"

    with operator():
        create("first")
        until(lambda: events("NotificationFailed"), why)
        (lost,) = events("NotificationFailed")
        assert lost.startswith("first the webhook did not accept a message: the Secret of notifications.webhook, or its")
        assert len(events("Stalled")) == 1
        address.write_text(f"http://127.0.0.1:{receiver.server_port}/hooks/{SECRET}")
        create("second")
        until(lambda: is_told_of("second"), why)
        before = log.read_text()
    with operator():
        create("third")
        until(lambda: is_told_of("third"), why)
    assert [text.partition(" is stalled: ")[0] for text in receiver.texts] == [
        f"KafkaMigration {namespace}/second", f"KafkaMigration {namespace}/third"]
    everything = kubectl("-n", namespace, "get", "kmig,events", "--output", "json").stdout
    assert SECRET not in f"{before}{log.read_text()}{everything}"
