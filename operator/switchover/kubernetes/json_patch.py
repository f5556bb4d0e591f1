"""What our JSON patches have in common: tests by which one is refused where the object is not what was read, and paths."""

from collections.abc import Mapping
from typing import Any


def same(uid: str) -> Mapping[str, Any]:
    """That it is the very object that was read, and not another by its name."""
    return {"op": "test", "path": "/metadata/uid", "value": uid}


def as_read(uid: str, resource_version: str) -> tuple[Mapping[str, Any], ...]:
    """That it is the very object that was read, and nobody has written anything of it since."""
    return same(uid), {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version}


def unchanged(generation: int) -> Mapping[str, Any]:
    """That nobody has changed the spec since it was read.

    The parts themselves cannot be tested: the API server compares JSON as text, in which it writes <, > and & as escapes.
    """
    return {"op": "test", "path": "/metadata/generation", "value": generation}


def annotation(key: str) -> str:
    """The path of an annotation."""
    return f"/metadata/annotations/{key.replace('/', '~1')}"
