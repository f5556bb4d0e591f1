"""The objects of one collection, by name, by what their labels say, and by what they are about: to find a few takes no look
at the others.

They are kept packed, since most of a namespace's pods may be those of others.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from switchover.kubernetes.client.beside import Subject
from switchover.kubernetes.packed import Packed

Object = dict[str, Any]


class Labelled:
    """The objects by their names; `put` and `drop` keep the index. `subject` tells what an object is about; without it each
    is about anything."""

    def __init__(self, objects: Iterable[Object] = (), subject: Callable[[Object], Subject] | None = None) -> None:
        self._subject = subject
        self._named: dict[str, tuple[Mapping[str, str], Subject | None, Packed]] = {}
        self.size = 0                       # bytes of memory, the labels aside
        self._marked: defaultdict[tuple[str, ...], dict[str, None]] = defaultdict(dict)
        for each in objects:
            self.put(each)

    def get(self, name: str) -> Object | None:
        """The one of that name."""
        return None if name not in self._named else self._unpacked(name)

    def carrying(self, labels: Mapping[str, str]) -> list[Object]:
        """Those that carry all the labels."""
        if not labels:
            return [self._unpacked(name) for name in self._named]
        fewest = min((self._marked.get(pair, {}) for pair in labels.items()), key=len)
        return [self._unpacked(name) for name in fewest if labels.items() <= self._named[name][0].items()]

    def about(self, subjects: Iterable[Subject]) -> list[Object]:
        """Those that are about one of these."""
        if self._subject is None:
            return self.carrying({})
        return [self._unpacked(name) for each in subjects for name in self._marked.get(each, ())]

    def _unpacked(self, name: str) -> Object:
        value: Object = self._named[name][2].value()
        return value

    def put(self, found: Object) -> None:
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
