"""The processes of a replica, by files in a directory that their containers share (`rehearsal/run.sh`)."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from switchover.cluster.rehearsal.course import LOG4J
from switchover.cluster.rehearsal.settings import Command

ANYBODY = 0o777


class SharedDirectory:
    """`conductor.ReplicaProcesses`. Whoever runs run.sh may be another user: it writes beside what is written here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers: dict[str, int] = {}
        self._commands = path / "commands"
        self._commands.mkdir(exist_ok=True)
        self._write(self._commands / "log4j.properties", LOG4J)

    def start(self, name: str, command: Command) -> None:
        number = self._numbers[name] = self._numbers.get(name, 0) + 1
        for file, text in command.files.items():
            self._write(Path(file), text)
        self._write(self._commands / f"{name}.{number}", "".join(f"{line}\n" for line in command.lines()))

    def exit_code(self, name: str) -> int | None:
        file = self._file(name, "exit")
        return int(file.read_text()) if file.exists() else None

    def log(self, name: str) -> Iterator[str]:
        file = self._file(name, "log")
        if not file.exists():
            return
        with file.open(errors="replace") as lines:
            for line in lines:
                yield line.rstrip("\n")

    def stop(self, name: str) -> None:
        (self._commands / f"{name}.{self._numbers[name]}.stop").touch()

    def data_directory(self, path: str, files: Mapping[str, str]) -> None:
        directory = Path(path)
        directory.mkdir()
        for name, text in files.items():
            self._write(directory / name, text)
        directory.chmod(ANYBODY)

    def end(self) -> None:
        """End all processes, and what runs them."""
        (self._commands / "end").touch()

    def _file(self, name: str, kind: str) -> Path:
        return self._path / f"{name}.{self._numbers[name]}.{kind}"

    @staticmethod
    def _write(file: Path, text: str) -> None:
        """Whole or not at all, and for everybody to read."""
        new = file.with_name(f"{file.name}.new")
        new.write_text(text)
        new.chmod(0o644)
        os.replace(new, file)
