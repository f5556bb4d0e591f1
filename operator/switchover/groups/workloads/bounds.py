"""What the patch of a template may change, and what it brings in that the chart must allow (policy.py).

A patch is for what configures an application. It gives pods no rights that they did not have.

A trial of each change asks the API server before anything is touched: a dry run with its admission. What it stores
otherwise than it was written would never be seen to be done, or be written again and again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload
from switchover.engine.policy import repository
from switchover.groups.picture import Picture
from switchover.groups.workloads.change import Unsupported, Wanted, changed, differing
from switchover.groups.workloads.places import ABSENT, Item, as_text, differences, found
from switchover.kubernetes.members import MemberWorkload
from switchover.kubernetes.strategic_merge import MERGE_KEYS

SPEC = frozenset({
    "affinity", "containers", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases", "imagePullSecrets",
    "initContainers", "nodeSelector", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints",
    "volumes"})
"""Of a pod's spec. Not among them are rights: service account, host namespaces, security context, runtime class."""
SOURCES = frozenset({"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"})
"""Of a volume: what lies in the namespace, or in the pod itself, and not on the node."""
PROJECTED = frozenset({"configMap", "downwardAPI", "secret"})
RESTRICTIONS: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "privileged": False, "runAsNonRoot": True,
                                   "readOnlyRootFilesystem": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""Of a container's security context: what takes rights away, as the Pod Security Standards ask of every container."""
SECRETS = (("secret", "secretName"), ("secret", "name"), ("secretKeyRef", "name"), ("secretRef", "name"))
"""Where a template names a Secret."""


def beyond(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What the patch changes that it may not, naming the place."""
    for place in differences(before, after):
        match place:
            case ("metadata", "annotations" | "labels", *_):
                pass                                                 # the chart allows them (policy.py)
            case ("metadata", *_):
                yield f"{as_text(place)}: of the metadata only annotations and labels may change"
            case ("spec", field, *_) if field not in SPEC:
                yield f"{as_text(place)} may not change; of the spec only {', '.join(sorted(SPEC))} may"
    for volume in after["spec"].get("volumes", ()):
        place = ("spec", "volumes", Item("name", volume["name"]))
        yield from _sources(found(before, place), volume, as_text(place))
    for field in ("initContainers", "containers"):
        for each in after["spec"].get(field, ()):
            place = ("spec", field, Item("name", each["name"]))
            yield from _rights(found(before, (*place, "securityContext")), each.get("securityContext", {}), as_text(place))


def _sources(before: Any, after: Mapping[str, Any], at: str) -> Iterator[str]:
    known = found(before, ("projected", "sources"))
    projected = {key for source in after.get("projected", {}).get("sources", ())
                 if known is ABSENT or source not in known for key in source}
    beyond = sorted(after.keys() - SOURCES - {"name"}) + sorted(f"projected.{key}" for key in projected - PROJECTED)
    for source in beyond if before != after else ():
        yield (f"{at}.{source}, which reaches beyond the pod and what lies in its namespace: a patch may bring"
               f" {', '.join(sorted(SOURCES))}")


def _rights(before: Any, new: Mapping[str, Any], at: str) -> Iterator[str]:
    old = {} if before is ABSENT else before
    for key in sorted({*old, *new}):
        if old.get(key) == new.get(key):
            continue
        restricts = _drops(old.get(key), new.get(key)) if key == "capabilities" else (
            new.get(key) == RESTRICTIONS.get(key, ABSENT))
        if not restricts:
            yield f"{at}.securityContext.{key} may give the container rights: a patch may only take them away"


def _drops(old: Any, new: Any) -> bool:
    def listed(side: Any, field: str) -> Sequence[Any]:
        names = found(side, (field,))
        return names if isinstance(names, list) else ()

    return all(name in listed(new, "drop") for name in listed(old, "drop")) and all(
        name in listed(old, "add") for name in listed(new, "add"))


def reordered(before: Mapping[str, Any], after: Mapping[str, Any], container: str) -> Iterator[str]:
    """Where items that are in both templates change places: that is compared and written nowhere but in the variables of
    the consumer's `container`."""
    yield from _reordered(before, after, "", f"spec.containers[{container}].env")


def _reordered(before: Any, after: Any, at: str, free: str) -> Iterator[str]:
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return
    for name in before.keys() & after.keys():
        where, key, lists = f"{at}.{name}" if at else name, MERGE_KEYS.get(name), (before[name], after[name])
        if where == free:
            continue
        if key is not None and all(isinstance(each, list) for each in lists):
            old, new = ([item[key] for item in each] for each in lists)
            if [value for value in old if value in new] != [value for value in new if value in old]:
                yield (f"{where}: it puts what is there into another order; name it in the order of the workload, and"
                       " the same in bridge and template")
            for item in before[name]:
                yield from _reordered(item, found(after[name], (Item(key, item[key]),)), f"{where}[{item[key]}]", free)
        else:
            yield from _reordered(*lists, where, free)


# --- what it brings in --------------------------------------------------------------------------------------------------


def images(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each image that is new: of which container, the image, and another of its repository that the pod has already, or the
    one in whose place it comes, or ""."""
    fields = ("initContainers", "containers")
    had = [each.get("image", "") for field in fields for each in before["spec"].get(field, ())]
    for field in fields:
        for container in after["spec"].get(field, ()):
            old, image = found(before, ("spec", field, Item("name", container["name"]), "image")), container.get("image", "")
            if image not in ("", old):
                same = (each for each in had if repository(each) == repository(image))
                yield f"{field}[{container['name']}]", image, next(same, old if isinstance(old, str) else "")


def secrets(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the Secrets that were in no place of the template before."""
    return tuple(sorted({*_secrets(after)} - {*_secrets(before)}))


def _secrets(template: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(each.get("name", "")) for each in template["spec"].get("imagePullSecrets") or ())
    for path, value in _walk(template["spec"], ()):
        if path[-2:] in SECRETS:
            yield str(value)


def claims(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the volume claims that were in no volume before."""
    of = [{str(each["persistentVolumeClaim"].get("claimName", "")) for each in template["spec"].get("volumes", ())
           if "persistentVolumeClaim" in each} for template in (before, after)]
    return tuple(sorted(of[1] - of[0]))


def _walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _walk(each, (*path, key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _walk(each, path)
    else:
        yield path, value


@dataclass(frozen=True, slots=True)
class Trial:
    """One change, named "workload.template" or "workload.bridge", of a workload as it is now."""

    name: str
    source: MemberWorkload
    container: str
    wanted: Wanted

    @property
    def operations(self) -> Sequence[Mapping[str, Any]]:
        """The JSON patch to try: no fence, since nothing is stored."""
        return ({"op": "replace", "path": "/spec/template", "value": dict(self.wanted)},)

    def stored_otherwise(self, template: Mapping[str, Any]) -> tuple[str, ...]:
        """Where the template that the API server would keep is not what is wanted."""
        return differing(replace(self.source, template=template), self.container, self.wanted)


def trials(picture: Picture) -> Iterator[Trial]:
    """Of every workload that can be seen, where pods are replaced at all."""
    for workload in picture.spec.workloads if picture.replaces else ():
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield from trials_of(workload, source.value)


def trials_of(workload: Workload, source: MemberWorkload) -> Iterator[Trial]:
    """Those of one workload; none where its change cannot even be made, which is a finding of its own."""
    given = {"bridge": workload.bridge, "template": workload.template}
    try:
        made = {name: changed(source.template, workload.container, change)
                for name, change in given.items() if change is not None}
    except Unsupported:
        return
    for name, template in made.items():
        wanted = Wanted(template, (source.template, *made.values()))
        yield Trial(f"{workload.name}.{name}", source, workload.container, wanted)
