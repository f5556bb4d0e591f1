"""One sandbox for the tests of this directory, with the demo's world in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.cluster import Cluster
from demo.sandbox import bring_up, take_down

STATE = Path(__file__).parents[2] / "build" / "sandbox-tests"
"""Of these tests alone: a sandbox that someone runs from this checkout stays untouched."""


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real Kubernetes of three nodes with the module's IMAGES, or else those of the demo; its Kafka is not to burden the
    next module."""
    found = bring_up(STATE, getattr(request.module, "IMAGES", None))
    try:
        yield found
    finally:
        take_down(STATE)


@pytest.fixture(scope="module")
def audit_log(cluster: Cluster) -> Path:
    """The API server's audit log."""
    return STATE / "audit.log"
