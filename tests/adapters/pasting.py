"""What commands for people name, where servers are processes: Kafka's tools, and a kubectl whose pods these are."""

import re
from collections.abc import Mapping
from pathlib import Path

import printed
import runbook_commands
from adapters.servers import KAFKA, STOP_SECONDS, Server, ServerError, libraries
from patience import Patience

CLASSES = {
    "kafka-dump-log.sh": "kafka.tools.DumpLogSegments",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}
"""Of tools that nothing else here needs."""
KUBECTL = """#!/bin/sh
[ "$1" = --namespace ] && shift 2
[ "$1" = exec ] || { echo "$@" >> %s; exit; }
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
"""A pod's files are files of this machine."""


class Tools:
    """A directory of them for `printed.paste`. Whoever deletes one of the pods has it start again, as a kubelet does."""

    def __init__(self, directory: Path, pods: Mapping[str, Server] | None = None, grace: float = STOP_SECONDS) -> None:
        """`grace`: seconds until a pod that was deleted is killed."""
        self._directory, self._pods, self._grace = directory / "tools", pods or {}, grace
        self._asked = directory / "kubectl-asked"
        self._directory.mkdir()
        self._write("kubectl", KUBECTL % self._asked)
        runs = f"export KAFKA_LIBS={libraries()}\nexec {KAFKA / 'bin'}"
        for script in (KAFKA / "bin").iterdir():
            self._write(script.name, f'#!/bin/sh\n{runs}/{script.name} "$@"\n')
        for name, main in CLASSES.items():
            self._write(name, f'#!/bin/sh\n{runs}/kafka-run-class.sh {main} "$@"\n')

    def paste(self, line: str) -> str:
        """What it prints."""
        told = printed.paste(line, self._directory)
        asked = self._asked.read_text().splitlines() if self._asked.exists() else []
        self._asked.unlink(missing_ok=True)
        for each in asked:
            self._does(each.split())
        return told

    def paste_of(self, unblocks: str) -> str:
        """What the one changing command in a text of the product prints."""
        [line] = printed.changing(unblocks)
        return self.paste(line)

    def paste_page(self, page: str, section: str = "", like: str = "^(?!switchover )", **names: str) -> list[str]:
        """What each command of a runbook's section that looks so prints, in its order, with these in place of what a person
        puts in. There is no operator here."""
        return [self.paste(each.filled(names) if names else each.text) for each in runbook_commands.commands()
                if (each.page, each.section) == (page, section) and re.search(like, each.text)]

    def _does(self, asked: list[str]) -> None:
        match asked:
            case ["delete", "pod", name]:
                self._pods[name].stop(self._grace)
                _start(self._pods[name])
            case ["scale", "statefulset", name, "--replicas", replicas]:
                for server in (each for pod, each in self._pods.items() if pod.rpartition("-")[0] == name):
                    if replicas == "0":
                        server.stop(self._grace)
                    else:
                        _start(server)
            case ["wait", "--for=delete", "pod", *_]:
                pass
            case _:
                raise AssertionError(f"what does a cluster do at kubectl {' '.join(asked)}?")

    def _write(self, name: str, text: str) -> None:
        (self._directory / name).write_text(text)
        (self._directory / name).chmod(0o755)


def _start(server: Server) -> None:
    """As it was started last, again and again: a broker that was killed waits for the end of its session."""
    patience = Patience(120)
    while True:
        try:
            server.start((server.directory / "server.properties").read_text())
            return
        except ServerError:
            if patience.over:
                raise
