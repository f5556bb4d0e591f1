"""A tree on its way into a replica's pod: as the text of several ConfigMaps, of which one holds a mebibyte at most."""

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence

from switchover.shared import foreign_json
from switchover.zookeeper.tree import Tree

LARGEST = 900_000
"""Characters of a part."""
LARGEST_TREE = 2**30
"""Bytes of a tree that is unpacked; one of a million nodes has a tenth of it."""


def packed(tree: Tree) -> tuple[str, ...]:
    """The parts, the first of which begins with their number and a digest of them all."""
    writer = zlib.compressobj(9)
    text = base64.b64encode(b"".join((
        *(writer.compress(each.encode()) for each in _document(tree)), writer.flush()))).decode()
    parts = [text[start:start + LARGEST] for start in range(0, len(text), LARGEST)]
    return f"{len(parts)} {_digest(text)} {parts[0]}", *parts[1:]


def _document(tree: Tree) -> Iterator[str]:
    """JSON, node by node: written at once it is several times the tree, and Python does nothing else meanwhile."""
    yield '{"nodes":{'
    for number, path in enumerate(sorted(tree.nodes)):
        data = tree.nodes[path]
        text = None if data is None else base64.b64encode(data).decode()
        yield f"{',' if number else ''}{json.dumps(path)}:{json.dumps(text)}"
    yield f'}},"denied":{json.dumps(tree.denied)},"gone":{tree.gone}}}'


def unpacked(parts: Sequence[str]) -> Tree:
    """The tree. Raises ValueError for parts that are not of one tree, or not all of it."""
    try:
        number, digest, first = parts[0].split(" ")
        text = "".join((first, *parts[1:int(number)]))
    except (IndexError, ValueError):
        raise ValueError("these are no parts of a packed tree") from None
    if len(parts) < int(number) or _digest(text) != digest:
        raise ValueError("these are not the parts of one packed tree")
    try:
        reader = zlib.decompressobj()
        document = reader.decompress(base64.b64decode(text, validate=True), LARGEST_TREE)
        fields = foreign_json.parsed(document)
        nodes: Mapping[str, str | None] = fields["nodes"]
        return Tree({path: None if data is None else base64.b64decode(data, validate=True) for path, data in nodes.items()},
                    tuple(fields["denied"]), fields["gone"])
    except (zlib.error, binascii.Error, KeyError, TypeError, AttributeError) as error:
        raise ValueError("these are no parts of a packed tree") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
