"""The objects of one collection, by name and by what their labels say: to find a few takes no look at the others."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]


class Labelled:
    """The objects by their names; `put` and `drop` keep the index."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self._named: dict[str, Object] = {}
        self._marked: defaultdict[tuple[str, str], dict[str, Object]] = defaultdict(dict)
        for each in objects:
            self.put(each)

    @property
    def named(self) -> Mapping[str, Object]:
        """All of them."""
        return self._named

    def carrying(self, labels: Mapping[str, str]) -> list[Object]:
        """Those that carry all the labels."""
        if not labels:
            return [*self._named.values()]
        fewest = min((self._marked.get(pair, {}) for pair in labels.items()), key=len)
        return [each for each in fewest.values() if labels.items() <= _labels(each).items()]

    def put(self, found: Object) -> None:
        """It is there, as it is now."""
        name = found["metadata"]["name"]
        self.drop(name)
        self._named[name] = found
        for pair in _labels(found).items():
            self._marked[pair][name] = found

    def drop(self, name: str) -> None:
        """It is gone."""
        if (before := self._named.pop(name, None)) is None:
            return
        for pair in _labels(before).items():
            marked = self._marked[pair]
            del marked[name]
            if not marked:
                del self._marked[pair]


def _labels(found: Object) -> Mapping[str, str]:
    return found["metadata"].get("labels") or {}
