"""The wheel, installed: environments with nothing but locked packages, one extra each, for tests of what a user has."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = ROOT / "build/uv/bin/uv"


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with one extra, and a directory to work in."""

    extra: str
    programs: Path
    directory: Path

    def run(self, program: str, *arguments: str, stdin: str = "", **environment: str,
            ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            (self.programs / program, *arguments), cwd=self.directory, env={"HOME": str(self.directory)} | environment,
            input=stdin, capture_output=True, text=True, check=False)


def built_wheel(directory: Path) -> Path:
    """The wheel of this checkout."""
    subprocess.run((sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", directory), cwd=ROOT,
                   capture_output=True, check=True)
    return next(directory.glob("*.whl"))


@contextmanager
def installed(wheel: Path, extra: str, name: str, directory: Path) -> Iterator[Installation]:
    """The wheel with that extra ("": bare) in an environment of this name; taken away afterwards."""
    environment = ROOT / "build/extras" / name                  # beside .venv, where uv links what it keeps
    made = _uv("venv", "--quiet", "--clear", "--no-python-downloads", "--python", sys.executable, environment)
    assert made.returncode == 0, made.stderr
    try:
        if extra:
            _install(environment, "--require-hashes", "--no-deps", "--requirement", f"requirements/{extra}.txt")
        _install(environment, "--no-index", f"switchover[{extra}] @ {wheel.as_uri()}" if extra else wheel)  # lacks nothing
        yield Installation(extra, environment / "bin", directory)
    finally:
        shutil.rmtree(environment)


def _uv(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run((UV, *arguments), cwd=ROOT, capture_output=True, text=True, check=False)


def _install(environment: Path, *arguments: str | Path) -> None:
    """Of what uv has kept since `make venv`, and only where that is not all of it from the index."""
    command = ("pip", "install", "--quiet", "--python", environment / "bin/python", *arguments)
    if _uv(*command, "--offline").returncode != 0:
        done = _uv(*command)
        assert done.returncode == 0, done.stderr
