"""Rehearsals on processes of this machine: what runs in a pod's containers runs here under bash."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from zipfile import ZipFile

from adapters.servers import KAFKA, free_port, libraries, loopback
from switchover.cli import rehearse_replica
from switchover.cluster.rehearsal.processes import SharedDirectory
from switchover.cluster.rehearsal.replica_job import PROCESSES, RUN
from switchover.cluster.rehearsal.report import Report
from switchover.cluster.rehearsal.settings import Place
from switchover.zookeeper.tree import Tree

ENVIRONMENT = ("PATH", "JAVA_HOME", "HOME", "LANG", "KAFKA_HOME")


def with_classes(directory: Path, sources: Mapping[str, str]) -> Path:
    """A directory of Kafka's jars, and one more with classes of a user's own: their simple names and bodies."""
    package, libs = directory / "com" / "example", directory / "libs"
    package.mkdir(parents=True)
    libs.mkdir()
    for name, rest in sources.items():
        (package / f"{name}.java").write_text(f"package com.example; public class {name} {rest}\n")
    subprocess.run(["javac", "-cp", f"{libraries()}/*", *package.iterdir()], check=True)
    with ZipFile(libs / "own.jar", "w") as jar:
        for file in package.glob("*.class"):
            jar.write(file, f"com/example/{file.name}")
    for each in libraries().iterdir():
        (libs / each.name).symlink_to(each)
    return libs


@contextmanager
def running(directory: Path, version: str = "3.9", start: Path | None = None, libs: Path | None = None,
            limits: Mapping[str, int] = MappingProxyType({})) -> Iterator[Place]:
    """A replica's place, with what runs its processes, those of this Kafka. `start`: another start script than its own,
    `libs`: other jars, `limits`: bytes of memory that a process is told to have."""
    host = loopback(2181).host
    environment = {key: os.environ[key] for key in ENVIRONMENT if key in os.environ}
    environment["KAFKA_LIBS"] = str(libs or libraries(version))
    (directory / "commands").mkdir()
    run_class = directory / "bin" / "kafka-run-class.sh"
    run_class.parent.mkdir()
    # Java ends with the runner that started it, and that with pytest, however either ends.
    run_class.write_text(f'#!/bin/sh\nexec setpriv --pdeathsig KILL -- {KAFKA / "bin" / "kafka-run-class.sh"} "$@"\n')
    run_class.chmod(0o755)
    script = str(start or run_class.with_name("kafka-server-start.sh"))
    runners = [subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "--", "bash", "-c", RUN, "run", name, str(directory), script],
        env=environment | ({"MEMORY_LIMIT": str(limits[name])} if name in limits else {}), start_new_session=True)
        for name in PROCESSES]
    try:
        yield Place(str(directory), host, broker=free_port(), controller=free_port(), zookeeper=free_port())
    finally:
        (directory / "commands" / "end").touch()
        for runner in runners:
            runner.wait(60)


def pids(directory: Path, name: str) -> list[int]:
    """The Java processes of a replica whose configuration is called so."""
    command = ["pgrep", "-f", f"^java .*{directory}/commands/{name}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


async def rehearsed(directory: Path, nodes: Mapping[str, bytes | None], release: str = "3.9") -> Report:
    """The report of a whole rehearsal of this tree."""
    with running(directory) as place:
        return await rehearse_replica.rehearsed(Tree(nodes), place, SharedDirectory(directory), release, print)
