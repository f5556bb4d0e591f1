"""Reads many znodes slice by slice, so that ZooKeeper is asked other questions in between."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

SLICE = 250                 # nodes; about a tenth of a second

T = TypeVar("T")
Node = tuple[bytes | None, Any]     # data, None where a node has none, and kazoo's ZnodeStat
Call = Callable[[Callable[[float], Any]], Awaitable[Any]]
Read = Callable[[float, Sequence[str]], Iterator[tuple[str, Node]]]
List = Callable[[float, Sequence[str]], Mapping[str, Sequence[str]]]


class Slices:
    """`call` runs a function of a deadline on ZooKeeper's thread; `read` and `list_children` are such functions.

    Nodes that do not exist are left out, or have no children. `reads` counts the nodes that were asked for.
    """

    def __init__(self, call: Call, read: Read, list_children: List) -> None:
        self._call = call
        self._read = read
        self._list = list_children
        self.reads = 0

    async def nodes(self, paths: Sequence[str], take: Callable[[bytes | None, Any], T]) -> list[tuple[str, T]]:
        """Those that exist, with what `take` makes of data and state: the rest is dropped."""
        return [node for part in slices(paths) for node in await self.ask(
            lambda deadline, paths: [(path, take(*node)) for path, node in self._read(deadline, paths)], part)]

    async def children(self, paths: Sequence[str]) -> list[str]:
        """Paths of the children of all these nodes."""
        found: list[str] = []
        for part in slices(paths):
            listed = await self.ask(self._list, part)
            found += [f"{path}/{name}" for path, names in listed.items() for name in names]
        return found

    async def ask(self, question: Callable[[float, Sequence[str]], T], paths: Sequence[str]) -> T:
        """A question about one slice."""
        answer: T = await self._call(lambda deadline: question(deadline, paths))
        self.reads += len(paths)
        return answer


def slices(items: Sequence[T]) -> Iterable[Sequence[T]]:
    return (items[start:start + SLICE] for start in range(0, len(items), SLICE))
