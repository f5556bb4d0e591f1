"""The change of a workload's template, and its rollback to exactly what was there.

Only image, variables and arguments of the named container are written, and the places that a patch changes (places.py);
whatever else somebody changes in the template meanwhile stays theirs. A JSON patch and not server-side apply: apply cannot
replace a variable that has a `valueFrom` (it merges the two, and the API server refuses a variable with both), nor give a
field back to whom it took it from.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from switchover.api.consumer_group_migration import ContainerChange
from switchover.api.template_patch import parsed
from switchover.engine.effects import Patch
from switchover.groups.workloads.places import Item, Place, as_text, differences, found, is_there, operations, outermost
from switchover.kubernetes import json_patch, names
from switchover.kubernetes.members import KINDS, MemberWorkload
from switchover.kubernetes.strategic_merge import BadPatch, merged
from switchover.text.nearest import meant

FIELDS = ("image", "env", "args")


class Unsupported(Exception):
    """This workload cannot be moved; the message says why and what to change."""


class Wanted(dict[str, Any]):
    """The template that a workload is to have in one mode, and those of all its modes, original first: where they differ is
    what the migration changes."""

    def __init__(self, template: Mapping[str, Any], modes: Iterable[Mapping[str, Any]]) -> None:
        super().__init__(template)
        self.modes = tuple(modes)

    @cached_property
    def differences(self) -> tuple[Place, ...]:
        """Where its modes differ; many ask in a pass."""
        return tuple(place for mode in self.modes for place in differences(self.modes[0], mode))


def container_of(template: Mapping[str, Any], name: str) -> tuple[int, Mapping[str, Any]]:
    """The container and its index. Raises Unsupported when the template has none of that name."""
    containers = template["spec"].get("containers", [])
    for index, container in enumerate(containers):
        if container["name"] == name:
            return index, container
    known = [container["name"] for container in containers]
    raise Unsupported(f"there is no container {name}; the pod has: {', '.join(known)}{meant(name, known)}")


def changed(template: Mapping[str, Any], container: str, change: ContainerChange) -> dict[str, Any]:
    """A copy of the template with the change, as the API server would keep it. Raises Unsupported."""
    container_of(template, container)
    whole = _patched(template, change)
    try:
        index, _ = container_of(whole, container)
    except Unsupported:
        raise Unsupported(f"its patch takes the consumer's container {container} away") from None
    target = whole["spec"]["containers"][index]
    if change.image is not None:
        target["image"] = change.image
    if change.env:
        target["env"] = _merged(target.get("env", []), change)
    if change.args is not None:
        target["args"] = list(change.args)
        if not change.args:
            del target["args"]
    return whole


def _merged(variables: list[dict[str, Any]], change: ContainerChange) -> list[dict[str, Any]]:
    """The variables with the new values in the places of the old; what is new comes last, since it may use the others."""
    new = {item.name: {"name": item.name, "value": item.value} if item.value else {"name": item.name} for item in change.env}
    known = {variable["name"] for variable in variables}
    return [*(new.get(item["name"], item) for item in variables), *(new[name] for name in new if name not in known)]


def _patched(template: Mapping[str, Any], change: ContainerChange) -> dict[str, Any]:
    if change.patch is None:
        return deepcopy(dict(template))
    try:
        return merged(template, parsed(change.patch))
    except BadPatch as error:
        raise Unsupported(f"its patch cannot be applied: {error}") from None


def differing(workload: MemberWorkload, container: str, wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of image, env and args of the container, and of the places that a patch changes, are not those of the `wanted`
    template.

    In the form that managedFields are read in (`Manager.parts`), so that `gitops.last_writer` tells who wrote them.
    """
    container_of(wanted, container)
    return tuple(_words(place) for place in _differing(workload, container, wanted))


def _differing(workload: MemberWorkload, container: str, wanted: Mapping[str, Any]) -> Iterator[Place]:
    """Where nothing tells what other modes have, every difference in the container's fields counts."""
    modes = wanted.modes if isinstance(wanted, Wanted) else (wanted, workload.template)
    for place in places(container, wanted):
        live, target = found(workload.template, place), found(wanted, place)
        if live != target and not is_there(live, target, [found(mode, place) for mode in modes], place[-1]):
            yield place


def own_places(container: str) -> tuple[Place, ...]:
    """Image, variables and arguments of the container."""
    return tuple(("spec", "containers", Item("name", container), field) for field in FIELDS)


def places(container: str, wanted: Mapping[str, Any]) -> tuple[Place, ...]:
    """What of the template is the migration's: the container's fields, and where its modes differ."""
    return outermost([*own_places(container), *(wanted.differences if isinstance(wanted, Wanted) else ())])


def _words(place: Place) -> str:
    match place:
        case ("spec", "containers", Item(value=container), field) if field in FIELDS:
            return f"{field} of {container}"
        case _:
            return as_text(place)


EMPTY: Mapping[str, Any] = {"op": "test", "path": "/spec/replicas", "value": 0}
"""That a workload has no pods."""


def write(workload: MemberWorkload, container: str, wanted: Mapping[str, Any], purpose: str,
          *held: Mapping[str, Any]) -> Patch:
    """Give the template what the `wanted` one has in the places that are the migration's: the change on the way forward, the
    original or the intermediate in a rollback.

    `held` are the operations that keep its pods from being replaced at once (deployment.py, stateful_set.py) or that test
    that it has none: the API server refuses the whole (Fenced) where they do not hold. Raises Unsupported when the container
    is gone.
    """
    container_of(workload.template, container)
    container_of(wanted, container)
    template = deepcopy(dict(workload.template))
    written = [each for place in _differing(workload, container, wanted)
               for each in operations(template, wanted, place, "/spec/template")]
    return patch(workload, [json_patch.unchanged(workload.generation), *held, *written], purpose)


# --- what is stored, and whose it is ------------------------------------------------------------------------------------


def original_name(kind: str, name: str, uid: str, attempt: int) -> str:
    """The ControllerRevision that keeps what a workload was before an attempt of that migration touched it."""
    return f"{kind.lower()}-{name}-before-{uid[:8]}-{attempt}"


def original_manifest(workload: MemberWorkload, uid: str, attempt: int, labels: Mapping[str, str]) -> dict[str, Any]:
    """What a rollback needs; nobody owns it, so that nothing can take it away, and its data can never change."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": original_name(workload.kind, workload.name, uid, attempt), "labels": dict(labels)},
        "revision": attempt,
        "data": data_of(workload),
    }


def data_of(workload: MemberWorkload) -> dict[str, Any]:
    """What a rollback gives back."""
    return {
        "template": workload.template,
        "updateStrategy": workload.update_strategy,
        "minReadySeconds": workload.min_ready,
        "progressDeadlineSeconds": workload.deadline,
        "replicas": workload.replicas,
        "autoscalers": {str(autoscaler): autoscaler.settings for autoscaler in workload.autoscalers},
    }


def claim(workload: MemberWorkload, uid: str) -> Patch:
    """Mark the workload as that migration's, if nobody has written it since it was read."""
    if not workload.annotated:
        operation = {"op": "add", "path": "/metadata/annotations", "value": {names.CLAIM: uid}}
    else:
        operation = {"op": "add", "path": json_patch.annotation(names.CLAIM), "value": uid}
    same = {"op": "test", "path": "/metadata/resourceVersion", "value": workload.resource_version}
    return patch(workload, [same, operation], "claimed")


def release(workload: MemberWorkload) -> Patch:
    """Take our claim off; fenced where somebody else's stands by now."""
    path = json_patch.annotation(names.CLAIM)
    return patch(workload, [{"op": "test", "path": path, "value": workload.claimed_by}, {"op": "remove", "path": path}],
                 "claimed no longer")


def patch(workload: MemberWorkload, operations: list[Mapping[str, Any]], purpose: str) -> Patch:
    """JSON patch of the workload, if it is the very object that was read."""
    version, _ = KINDS[workload.kind]
    return Patch(version, workload.kind, workload.name, (json_patch.same(workload.uid), *operations), purpose)
