"""Client properties that somebody wrote down, as for Kafka's own tools."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import javaproperties


class Unreadable(Exception):
    """Says which file it is, and why."""


def read(file: Path) -> Mapping[str, str]:
    """A file as Java's Properties reads it. Raises Unreadable."""
    with _readable(file), file.open("rb") as content:
        found: Mapping[str, str] = javaproperties.load(content)
        return found


def read_file_or_secret(path: Path) -> Mapping[str, str]:
    """Such a file, or a directory with a file for each property, as a Secret is mounted. Raises Unreadable."""
    with _readable(path):
        if path.is_dir():
            return {file.name: file.read_text(encoding="utf-8") for file in path.iterdir() if file.is_file()}
        return read(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unreadable(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise Unreadable(f"{path} is not a file of properties") from None
