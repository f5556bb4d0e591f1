"""Sandboxes for the stories of this directory: one for those told side by side, one for each that wants it alone."""

import dataclasses
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.sandbox import bring_up, take_down

BUILD = Path(__file__).parents[2] / "build"
STATE = BUILD / "sandbox-tests"
"""Of these tests alone: a sandbox that someone runs from this checkout stays untouched."""
TOGETHER, NODES = BUILD / "sandbox-together", 1
"""Images are unpacked on every node, which costs more than anything else until the stories begin; long ones have three.
On a machine of two cores everything must find room on the one: the stories ask for 1.8 at most."""
AT_ONCE = 2
"""Stories: they wait more than they work, but three clusters that start at once keep each other from it on slow cores."""


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A real Kubernetes of three nodes with the module's IMAGES, or else those of the demo; its Kafka is not to burden the
    next module."""
    found = bring_up(STATE, getattr(request.module, "IMAGES", None))
    try:
        yield found
    finally:
        take_down(STATE)


@dataclasses.dataclass(frozen=True)
class Told:
    """A story that is told beside others: where, and what it will leave."""

    stage: Cluster
    story: Future[Any]


@pytest.fixture(scope="package")
def together(request: pytest.FixtureRequest, audit_log: Path) -> Iterator[Mapping[ModuleType, Told]]:
    """The stories of all modules here with a NAMESPACE, in one sandbox, AT_ONCE at a time, the long way back first.

    Such a module has `tell(cluster, audit_log)`, which gives the story.
    """
    here = Path(__file__).parent
    modules = sorted({item.module for item in request.session.items
                      if item.path.parent == here and hasattr(item.module, "NAMESPACE")}, key=str, reverse=True)
    take_down(TOGETHER)                 # what a run that was killed has left
    sandbox = bring_up(TOGETHER, sorted({image for module in modules for image in module.IMAGES}), NODES)

    def tell(module: ModuleType, stage: Cluster) -> Any:
        try:
            return module.tell(stage, audit_log)
        except BaseException:
            collect(stage, BUILD / "diagnostics" / module.NAMESPACE)
            raise

    with ThreadPoolExecutor(AT_ONCE) as pool:
        stages = {module: dataclasses.replace(sandbox, namespace=module.NAMESPACE) for module in modules}
        try:
            yield {module: Told(stage, pool.submit(tell, module, stage)) for module, stage in stages.items()}
        finally:
            take_down(TOGETHER)         # whatever is still being told ends with it


@pytest.fixture(scope="module")
def story(request: pytest.FixtureRequest, together: Mapping[ModuleType, Told]) -> Any:
    """What the module's story left."""
    return together[request.module].story.result()


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, together: Mapping[ModuleType, Told]) -> Cluster:
    """The module's namespace of the sandbox."""
    return together[request.module].stage


@pytest.fixture(scope="package")
def audit_log() -> Path:
    """The API server's audit log, of all stories that were told side by side."""
    return TOGETHER / "audit.log"
