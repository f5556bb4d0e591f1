"""What the controllers' pods need of the brokers' pod: the files and variables that the brokers' configuration names.

A migrating controller connects to ZooKeeper and to the brokers as a broker does, so it needs their keystores, truststores,
login files and what configuration providers read. Everything else of the brokers' pod stays the brokers'.
"""

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from switchover.core.kraft import controllers

READ_ONLY_KINDS = ("secret", "configMap", "projected", "csi")
"""Volumes that another pod can mount as well; what an init container has written, or a node has, it cannot."""
OPTIONS = "KAFKA_OPTS"
_OF_THE_DATA = frozenset({"log.dirs", "log.dir", "metadata.log.dir"})
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
_OURS = (controllers.FILES, controllers.RUN_DIR, controllers.METADATA_DIR.rsplit("/", 1)[0])


def completed(manifest: Mapping[str, Any], pod: Mapping[str, Any], container: Mapping[str, Any],
              text: str) -> dict[str, Any]:
    """The controllers' StatefulSet with what `text`, the brokers' file, names of the brokers' `pod` and its `container`.

    Of KAFKA_OPTS only system properties are taken (a login file, say): an agent would want its own port and files. One that
    comes from elsewhere cannot be read here: it is taken whole, with every file that can be mounted. Other objects come back
    as they are.
    """
    whole = deepcopy(dict(manifest))
    if whole["kind"] != "StatefulSet":
        return whole
    own = whole["spec"]["template"]["spec"]
    controller = own["containers"][0]
    variables = {entry["name"]: entry for entry in container.get("env", ())}
    from_elsewhere = "valueFrom" in variables.get(OPTIONS, {})
    options = _system_properties(variables.get(OPTIONS, {}).get("value", ""))
    named = [entry for name, entry in variables.items() if f"${{env:{name}}}" in text or f"$({name})" in options
             or (from_elsewhere and name == OPTIONS)]
    present = {entry["name"] for entry in controller["env"]}
    controller["env"] = [*(entry for entry in named if entry["name"] not in present), *controller["env"]]
    if options:
        controller["env"].append({"name": OPTIONS, "value": options})
    if container.get("envFrom") and set(_VARIABLE.findall(text)) - variables.keys():
        controller["envFrom"] = list(container["envFrom"])

    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    mounts = [mount for mount in container.get("volumeMounts", ())
              if _can_be_mounted(pod, volumes.get(mount["name"], {})) and not _is_taken(mount["mountPath"])
              and (from_elsewhere or _is_named(mount["mountPath"], (text, options)))]
    controller["volumeMounts"] += [
        {**mount, "name": _renamed(mount["name"]), "readOnly": "emptyDir" not in volumes[mount["name"]]} for mount in mounts]
    own["volumes"] += [
        {**volumes[name], "name": _renamed(name)} for name in dict.fromkeys(mount["name"] for mount in mounts)]
    return whole


def lacking(pod: Mapping[str, Any], container: Mapping[str, Any], keys: Mapping[str, str]) -> tuple[str, ...]:
    """The volumes with files that the configuration (`keys`) names, and that no other pod can mount: "keys (emptyDir)"."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    options = next((entry.get("value", "") for entry in container.get("env", ()) if entry["name"] == OPTIONS), "")
    texts = (*(value for key, value in keys.items() if key not in _OF_THE_DATA), _system_properties(options))
    found = [mount["name"] for mount in container.get("volumeMounts", ())
             if not _can_be_mounted(pod, volumes.get(mount["name"], {})) and _is_named(mount["mountPath"], texts)]
    return tuple(f"{name} ({_kind(volumes.get(name))})" for name in dict.fromkeys(found))


def _kind(volume: Mapping[str, Any] | None) -> str:
    return next((key for key in volume or {} if key != "name"), "volumeClaimTemplate")


def _system_properties(options: str) -> str:
    return " ".join(word for word in options.split() if word.startswith("-D"))


def _can_be_mounted(pod: Mapping[str, Any], volume: Mapping[str, Any]) -> bool:
    """By another pod, with the same in it: an emptyDir that none but Kafka's container mounts begins as empty there."""
    if "emptyDir" in volume:
        running, before = ([each for each in pod.get(kind, ()) if any(
            mount["name"] == volume["name"] for mount in each.get("volumeMounts", ()))]
            for kind in ("containers", "initContainers"))
        return len(running) <= 1 and not before
    return any(kind in volume for kind in READ_ONLY_KINDS)


def _is_named(path: str, texts: Iterable[str]) -> bool:
    """Whether a file there is meant: `/keys` by `/keys/store`, and not by `/keys2` or `http://host/keys`."""
    meant = re.compile(rf"(?<![\w.\-/]){re.escape(path.rstrip('/'))}(?![\w.\-])")
    return any(meant.search(text) for text in texts)


def _is_taken(path: str) -> bool:
    """Whether the place is that of a volume of the controllers."""
    bare = path.rstrip("/")
    return any(bare == own or bare.startswith(f"{own}/") or own.startswith(f"{bare}/") for own in _OURS)


def _renamed(volume: str) -> str:
    return f"brokers-{volume}"[:63].rstrip("-")
