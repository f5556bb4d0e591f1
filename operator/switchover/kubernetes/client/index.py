"""The objects of one collection, found by name, by label or by the workload that they are about, without a look at all.

A namespace with a thousand workloads has a thousand budgets, claims and autoscalers.
"""

import marshal
import sys
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from switchover.kubernetes.selectors import required

Object = Mapping[str, Any]
Document = dict[str, Any]
Subject = tuple[str, str, str]
"""What something is about: a kind, and two texts that identify it."""

ANYTHING: Subject = ("anything", "", "")
"""Of what may be about every workload."""
AUTOSCALERS = frozenset({"horizontalpodautoscalers", "scaledobjects", "verticalpodautoscalers"})
SUBJECTS = AUTOSCALERS | {"poddisruptionbudgets", "persistentvolumeclaims"}


def subject(plural: str, found: Object) -> Subject:
    """What an object of one of SUBJECTS is about; ANYTHING where that cannot be read."""
    try:
        if plural in AUTOSCALERS:
            return ("target", *_texts(target(found)))
        if plural == "persistentvolumeclaims":
            return "claim", str(found["metadata"]["name"]), ""
        return next((("label", *_texts(pair)) for pair in required(found["spec"].get("selector")).items()), ANYTHING)
    except (AttributeError, KeyError, TypeError):
        return ANYTHING


def target(found: Object) -> tuple[str, str]:
    """Kind and name of what an autoscaler scales: a VerticalPodAutoscaler calls it targetRef."""
    spec = found.get("spec") or {}
    named = spec.get("scaleTargetRef") or spec.get("targetRef") or {}
    return named.get("kind", "Deployment"), named.get("name", "")


def subjects(kind: str, workload: Object, pods: Iterable[Object] = ()) -> frozenset[Subject]:
    """What may be about a workload, or about one of its pods, is about one of these."""
    template = workload["spec"]["template"]
    return frozenset({
        ANYTHING, ("target", kind, workload["metadata"]["name"]),
        *(("label", key, value) for each in (template, *pods) for key, value in labels(each).items()),
        *(("claim", name, "") for name in claims(template))})


def labels(found: Object) -> Mapping[str, str]:
    """Of a pod, or of a template of pods."""
    return (found.get("metadata") or {}).get("labels") or {}


def claims(template: Object) -> frozenset[str]:
    """The names of those that its volumes are of."""
    volumes = template["spec"].get("volumes") or ()
    return frozenset(claim["claimName"] for volume in volumes if (claim := volume.get("persistentVolumeClaim")))


def _texts(pair: tuple[object, object]) -> tuple[str, str]:
    return str(pair[0]), str(pair[1])


class Labelled:
    """The objects by their names, packed, since most pods of a namespace may be those of others. `put` and `drop` update the
    index. `subject` says what an object is about; without it each is about anything."""

    def __init__(self, objects: Iterable[Document] = (), subject: Callable[[Document], Subject] | None = None) -> None:
        self._subject = subject
        self._named: dict[str, tuple[Mapping[str, str], Subject | None, Packed]] = {}
        self.size = 0                       # bytes of memory, the labels aside
        self._marked: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for each in objects:
            self.put(each)

    def get(self, name: str) -> Document | None:
        """The one of that name."""
        return None if name not in self._named else self._unpacked(name)

    def carrying(self, labels: Mapping[str, str]) -> list[Document]:
        """Those that carry all the labels."""
        if not labels:
            return [self._unpacked(name) for name in self._named]
        fewest = min((self._marked.get(pair, {}) for pair in labels.items()), key=len)
        return [self._unpacked(name) for name in fewest if labels.items() <= self._named[name][0].items()]

    def about(self, subjects: Iterable[Subject]) -> list[Document]:
        """Those that are about one of these."""
        if self._subject is None:
            return self.carrying({})
        return [self._unpacked(name) for each in subjects for name in self._marked.get(each, ())]

    def _unpacked(self, name: str) -> Document:
        value: Document = self._named[name][2].value()
        return value

    def put(self, found: Document) -> None:
        """It is there, as it is now."""
        name, labels = found["metadata"]["name"], found["metadata"].get("labels") or {}
        self.drop(name)
        subject = None if self._subject is None else self._subject(found)
        packed = Packed(found)
        self.size += packed.size
        self._named[name] = labels, subject, packed
        for mark in self._marks(name):
            self._marked[mark][name] = None

    def drop(self, name: str) -> None:
        """It is gone."""
        if name not in self._named:
            return
        for mark in self._marks(name):
            marked = self._marked[mark]
            del marked[name]
            if not marked:
                del self._marked[mark]
        self.size -= self._named.pop(name)[2].size

    def _marks(self, name: str) -> list[tuple[str, ...]]:
        labels, subject, _ = self._named[name]
        return [*labels.items(), *([] if subject is None else [subject])]


LEVEL = 1
"""The quickest compression: a pod of 5 KiB becomes 1.2."""


class Packed:
    """A value of JSON. What nests too deeply for `marshal` stays as it is: somebody's managedFields may."""

    __slots__ = ("_packed",)

    def __init__(self, value: Any) -> None:
        try:
            self._packed: Any = zlib.compress(marshal.dumps(value), LEVEL)
        except ValueError:
            self._packed = (value,)

    @property
    def size(self) -> int:
        """Bytes of memory."""
        if isinstance(self._packed, bytes):
            return sys.getsizeof(self._packed)
        size, level = 0, list(self._packed)
        while level:
            size += sum(map(sys.getsizeof, level))
            level = [inner for each in level if isinstance(each, dict | list)
                     for inner in ([*each.keys(), *each.values()] if isinstance(each, dict) else each)]
        return size

    def value(self) -> Any:
        """A new copy of the value: whoever gets it may change it."""
        if isinstance(self._packed, bytes):
            return marshal.loads(zlib.decompress(self._packed))
        return self._packed[0]
