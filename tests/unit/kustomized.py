"""What kustomize makes of sandbox/manifests-*, as far as they use it, where there is no kubectl."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from demo.world import images

SANDBOX = Path(__file__).parents[2] / "sandbox"


@dataclass(frozen=True)
class World:
    """One directory of manifests with its bases."""

    objects: list[dict[str, Any]]
    images: dict[str, str]
    """Name in the manifests -> full name."""

    @property
    def pods(self) -> dict[str, dict[str, Any]]:
        """The spec of every workload and job, by its name."""
        return {each["metadata"]["name"]: each["spec"] for each in self.objects if "template" in each.get("spec", {})}

    def containers(self, workload: str) -> list[dict[str, Any]]:
        """Those that prepare come first."""
        pod = self.pods[workload]["template"]["spec"]
        return [*pod.get("initContainers", []), *pod["containers"]]


def world(name: str) -> World:
    return World(list(_objects(SANDBOX / name)), images(SANDBOX / name))


def _kustomization(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((directory / "kustomization.yaml").read_text())
    return found


def _objects(directory: Path) -> Iterator[dict[str, Any]]:
    kustomization = _kustomization(directory)
    copies = {each["name"]: each["count"] for each in kustomization.get("replicas", [])}
    for name in kustomization["resources"]:
        path = directory / name
        for each in _objects(path) if path.is_dir() else yaml.safe_load_all(path.read_text()):
            patched = _patched(each, kustomization.get("patches", []))
            if patched is not None:
                if patched["metadata"]["name"] in copies and "replicas" in patched["spec"]:
                    patched["spec"]["replicas"] = copies[patched["metadata"]["name"]]
                yield patched


def _patched(each: dict[str, Any], patches: list[dict[str, Any]]) -> dict[str, Any] | None:
    """None where a patch deletes it."""
    for item in patches:
        patch = yaml.safe_load(item["patch"])
        meant = item.get("target") or {"kind": patch["kind"], "name": patch["metadata"]["name"]}
        if (meant["kind"], meant["name"]) != (each["kind"], each["metadata"]["name"]):
            continue
        if "target" not in item:
            assert patch["$patch"] == "delete", "no other strategic merge is known here"
            return None
        each = jsonpatch.apply_patch(each, patch)
    return each
