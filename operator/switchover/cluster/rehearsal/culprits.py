"""Which nodes end a controller: those that it names, those that our parser cannot read, else the smallest part that does."""

import re
from collections.abc import Iterable, Iterator, Sequence

from switchover.cluster.rehearsal.course import Process, Reached
from switchover.metadata.node_json import document
from switchover.metadata.tree import Unstartable
from switchover.shared.grouped import grouped
from switchover.zookeeper.tree import Tree, is_metadata

_OF_A_TOPIC = re.compile(r"/(?:brokers|config)/topics/([^/]+)(?:/.*)?")


def known_names(tree: Tree) -> frozenset[str]:
    """What may be told of a log: the names of nodes and the keys of configurations."""
    names = {part for path in tree.nodes if is_metadata(path) for part in path.split("/")[2:]}
    for path, data in tree.nodes.items():
        names.update(_keys(path, data))
    return frozenset(names)


def suspects(tree: Tree, process: Process, reached: Reached = Reached.DUAL_WRITE) -> tuple[str, ...]:
    """The nodes that Kafka could not have written, of these the ones that the error names, or that are read where the
    controller stopped; without any, the one node that the error names."""
    metadata = tree.metadata()
    nameless = {f"/brokers/topics/{name}" for name, topic in metadata.topics.items() if topic.id is None}
    names = process.cause.names if process.cause is not None else frozenset()
    named = {path for path, data in tree.nodes.items() if is_metadata(path) and names & {*_keys(path, data)}}
    malformed = {*metadata.malformed} | nameless
    if not malformed:
        return tuple(named) if len(named) == 1 else ()
    copied = {path for path, why in metadata.malformed.items() if isinstance(why, Unstartable)}
    read_there = {path for path in malformed - copied
                  if (reached is Reached.NOTHING) == path.startswith("/brokers/topics/")}
    return tuple(sorted(malformed & named or read_there or malformed))


def without(tree: Tree, paths: Iterable[str]) -> Tree:
    """The tree without these nodes and what is below them."""
    gone = tuple(paths)
    return Tree({path: data for path, data in tree.nodes.items()
                 if not any(path == each or path.startswith(f"{each}/") for each in gone)}, tree.denied, tree.gone)


def units(tree: Tree) -> list[tuple[str, ...]]:
    """What can be left out and in together: a topic with its settings, every other node of metadata alone."""
    topics = ((path, _OF_A_TOPIC.fullmatch(path)) for path in sorted(tree.nodes))
    found = grouped((f"topic {topic[1]}" if topic else path, path) for path, topic in topics if topic or is_metadata(path))
    return [tuple(paths) for paths in found.values()]


def only(tree: Tree, kept: Sequence[tuple[str, ...]]) -> Tree:
    """The tree with these units alone, and what every cluster has."""
    paths = {path for unit in kept for path in unit}
    every = {path for unit in units(tree) for path in unit}
    return Tree({path: data for path, data in tree.nodes.items() if path in paths or path not in every})


def named(unit: Sequence[str]) -> str:
    """The node by which a unit is told."""
    return min(unit, key=lambda path: (path.count("/"), path))


def _keys(path: str, data: bytes | None) -> Iterator[str]:
    if not path.startswith("/config/"):
        return
    try:
        config = document(data).get("config")
    except ValueError:
        return
    if isinstance(config, dict):
        yield from config
