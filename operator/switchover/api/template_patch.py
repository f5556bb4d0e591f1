"""What a patch of a pod template may look like, before it is known what it meets.

It is a text, YAML or JSON, and no free-form object: the API server would drop its nulls, and could not keep it from changing
while a plan is on record, since its rules do not see into such objects.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml

from switchover.shared import foreign_json

LONGEST = 16_384
"""Characters of a patch."""


def is_patch(text: str) -> str:
    """The text. Raises ValueError where it is no patch of a pod template."""
    parsed(text)
    return text


@lru_cache(maxsize=256)
def parsed(text: str) -> Mapping[str, Any]:
    """The patch, which nobody may change. Raises ValueError."""
    try:
        found = foreign_json.parsed(json.dumps(_read(text), allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(f"must be a patch of a pod template, as YAML or JSON: {why}") from None
    if not isinstance(found, dict) or not found:
        raise ValueError("must be a patch of a pod template: an object with metadata or spec")
    if strange := sorted({*found} - {"metadata", "spec"}):
        raise ValueError(f"must be a patch of a pod template, which has metadata and spec, and not {strange[0]}")
    return found


def _read(text: str) -> Any:
    """As plain as JSON: an alias would make a small text a large value. What nests deep is not read on: the scanner takes as
    long for each token as it is deep."""
    depth = 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        depth += isinstance(token, _BEGINS) - isinstance(token, _ENDS)
        if depth > foreign_json.DEEPEST:
            raise ValueError(f"nests deeper than {foreign_json.DEEPEST} levels")
        if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
            raise ValueError(f"anchors and aliases are not read (line {token.start_mark.line + 1})")
    return yaml.load(text, Loader=_Plain)


_BEGINS = (yaml.FlowSequenceStartToken, yaml.FlowMappingStartToken, yaml.BlockSequenceStartToken,
           yaml.BlockMappingStartToken)
_ENDS = (yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken, yaml.BlockEndToken)


class _Plain(yaml.SafeLoader):
    """YAML of which no value is dropped or taken for another: a key that is there twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for at, _ in node.value:
            key = self.construct_object(at, deep=True)
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is no text: write it in quotes (line {at.start_mark.line + 1})")
            if key in seen:
                raise ValueError(f"{key} is there twice (line {at.start_mark.line + 1})")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)

