"""A group's baseline as the ConfigMap that `gates.baselineRef` names."""

import json
import re
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import yaml

from switchover.lag.baseline import KEY, WeeklyBaseline, text_of


def name_of(group: str) -> str:
    """The same name for a group always, and another one for another group."""
    readable = re.sub(r"[^a-z0-9]+", "-", group[:64].lower()).strip("-")[:40].strip("-")
    digest = blake2b(group.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return "-".join(filter(None, ("baseline", readable, digest)))


def manifest(group: str, text: str) -> dict[str, Any]:
    """The object as `kubectl apply` takes it; it belongs into the namespace of the group's migration."""
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name_of(group), "labels": {"app.kubernetes.io/managed-by": "switchover"}},
            "data": {KEY: text}}


def bounded(baseline: WeeklyBaseline, largest: int) -> tuple[str, bool, int]:
    """The text of a baseline whose ConfigMap has at most `largest` bytes as JSON.

    Where all of it is too much, only what holds over all hours; where that still is, only the first partitions. Also:
    whether the hours are there, and how many partitions are not.
    """
    def fits(text: str) -> bool:
        return len(json.dumps(manifest(baseline.group, text), ensure_ascii=False).encode()) <= largest

    if fits(text := text_of(baseline)):
        return text, True, 0
    partitions = sorted(baseline.partitions)
    few, many = 0, len(partitions)
    if fits(text := text_of(baseline, hours=False)):
        return text, False, 0
    while few < many:                                                 # the most that fit
        middle = (few + many + 1) // 2
        chosen = {each: baseline.partitions[each] for each in partitions[:middle]}
        few, many = (middle, many) if fits(text_of(replace(baseline, partitions=chosen), hours=False)) else (few, middle - 1)
    chosen = {each: baseline.partitions[each] for each in partitions[:few]}
    return text_of(replace(baseline, partitions=chosen), hours=False), False, len(partitions) - few


class _Blocks(yaml.SafeDumper):
    """Writes text of several lines as such."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _block)


def as_yaml(found: dict[str, Any]) -> str:
    """For a file."""
    return yaml.dump(found, Dumper=_Blocks, sort_keys=False, width=1_000_000)
