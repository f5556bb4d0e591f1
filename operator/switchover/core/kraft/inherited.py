"""What the controllers' pods need of the brokers' pod: the files and variables that the brokers' configuration names.

A migrating controller connects to ZooKeeper and to the brokers as a broker does, so it needs their keystores, truststores,
login files and what configuration providers read. Everything else of the brokers' pod stays the brokers'.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from switchover.core.kraft import controllers

READ_ONLY_KINDS = ("secret", "configMap", "projected")
OPTIONS = "KAFKA_OPTS"
_OURS = (controllers.FILES, controllers.RUN_DIR, controllers.LOG_DIR.rsplit("/", 1)[0])


def completed(manifest: Mapping[str, Any], pod: Mapping[str, Any], container: Mapping[str, Any],
              text: str) -> dict[str, Any]:
    """The controllers' StatefulSet with what `text`, the brokers' file, names of the brokers' `pod` and its `container`.

    Of KAFKA_OPTS only system properties are taken (a login file, say): an agent would want its own port and files. Other
    objects come back as they are.
    """
    whole = deepcopy(dict(manifest))
    if whole["kind"] != "StatefulSet":
        return whole
    own = whole["spec"]["template"]["spec"]
    controller = own["containers"][0]
    variables = {entry["name"]: entry for entry in container.get("env", ())}
    options = _system_properties(variables.get(OPTIONS, {}).get("value", ""))
    named = [entry for name, entry in variables.items() if f"${{env:{name}}}" in text or f"$({name})" in options]
    present = {entry["name"] for entry in controller["env"]}
    controller["env"] = [*(entry for entry in named if entry["name"] not in present), *controller["env"]]
    if options:
        controller["env"].append({"name": OPTIONS, "value": options})

    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    mounts = [mount for mount in container.get("volumeMounts", ())
              if _is_readable(volumes.get(mount["name"], {})) and _is_named(mount["mountPath"], (text, options))]
    controller["volumeMounts"] += [
        {**mount, "name": _renamed(mount["name"]), "readOnly": True} for mount in mounts]
    own["volumes"] += [
        {**volumes[name], "name": _renamed(name)} for name in dict.fromkeys(mount["name"] for mount in mounts)]
    return whole


def _system_properties(options: str) -> str:
    return " ".join(word for word in options.split() if word.startswith("-D"))


def _is_readable(volume: Mapping[str, Any]) -> bool:
    return any(kind in volume for kind in READ_ONLY_KINDS)


def _is_named(path: str, texts: Iterable[str]) -> bool:
    """Whether a file there is meant, and the place is not taken by a volume of the controllers."""
    bare = path.rstrip("/")
    taken = any(bare == own or bare.startswith(f"{own}/") or own.startswith(f"{bare}/") for own in _OURS)
    return not taken and any(bare in text for text in texts)


def _renamed(volume: str) -> str:
    return f"brokers-{volume}"[:63].rstrip("-")
