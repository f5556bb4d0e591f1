"""Configuration by environment variables: images that write server.properties themselves, from variables with a prefix.

The rules of names are those of the images' own start scripts (confluentinc/cp-kafka, which apache/kafka shares, and
bitnami/kafka). Values are written by them as they are, so a backslash in a variable is one of the properties file.

A pod keeps the variables of its container, whatever they come from; its own file is a piece of shell that changes the few
which its mode changes, and the container's command is wrapped so that it is read first.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import javaproperties  # noqa: F401  (it registers the error handler "javapropertiesreplace")

from switchover.core.kraft import modes
from switchover.core.kraft.facts import ServerConfiguration

BITNAMI = "KAFKA_CFG_"
DIRECTORY = "/etc/switchover"
FILE = "environment.sh"
WRAPPER = f"""[ -r {DIRECTORY}/{FILE} ] || {{ echo "{DIRECTORY}/{FILE} is missing: this pod has no mode" >&2; exit 1; }}
. {DIRECTORY}/{FILE}
exec "$@"
"""
NAME = "switchover"
"""The wrapper's $0; the command that it runs follows."""

NOT_PROPERTIES = frozenset({
    "VERSION", "HOME", "HEAP_OPTS", "OPTS", "LOG4J_OPTS", "JMX_OPTS", "JMX_PORT", "JMX_HOSTNAME", "GC_LOG_OPTS",
    "JVM_PERFORMANCE_OPTS", "LOG4J_ROOT_LOGLEVEL", "LOG4J_LOGGERS", "TOOLS_LOG4J_LOGLEVEL"})
"""What follows the prefix in variables that Kafka's scripts read and the images leave out of server.properties."""
CAMEL_CASE = {"ZOOKEEPER_CLIENT_CNXN_SOCKET": "zookeeper.clientCnxnSocket"}
BITNAMI_CAMEL_CASE = {"ZOOKEEPER_CLIENTCNXNSOCKET": "zookeeper.clientCnxnSocket"}
UNDERSCORES = {1: ".", 2: "_", 3: "-"}

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Source = tuple[str, str]
"""ConfigMap or Secret, and its name."""


class Unusable(Exception):
    """This environment cannot be carried through the modes; the message says why and what to change."""


# --- names ------------------------------------------------------------------------------------------------------------


def property_of(variable: str, prefix: str) -> str | None:
    """The property that an image makes of a variable; None where it makes none. Unusable where the rule has no answer."""
    if not variable.startswith(prefix):
        return None
    rest = variable.removeprefix(prefix)
    if prefix == BITNAMI:
        key = rest.replace("_", ".").lower().replace("sasl.ssl", "sasl_ssl").replace("sasl.plaintext", "sasl_plaintext")
        return BITNAMI_CAMEL_CASE.get(rest, key)
    if rest in NOT_PROPERTIES:
        return None
    if "____" in rest:
        raise Unusable(f"variable {variable} has four underscores in a row, of which images make different properties")
    return CAMEL_CASE.get(rest) or re.sub("_+", lambda run: UNDERSCORES[len(run[0])], rest).lower()


def variable_of(key: str, prefix: str) -> str:
    """The variable of which an image makes this property. Unusable where there is none."""
    special = {value: name for name, value in (BITNAMI_CAMEL_CASE if prefix == BITNAMI else CAMEL_CASE).items()}
    if prefix == BITNAMI:
        name = key.replace("sasl_ssl", "sasl.ssl").replace("sasl_plaintext", "sasl.plaintext").replace(".", "_")
    else:
        name = key.replace("_", "__").replace("-", "___").replace(".", "_")
    variable = prefix + (special.get(key) or name.upper())
    if not _SHELL_NAME.fullmatch(variable) or property_of(variable, prefix) != key:
        raise Unusable(f"the image has no variable for the property {key}: its names with {prefix} cannot express it")
    return variable


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the container. `why` says what of `text` only the kubelet knows; "" when pods see it like this."""

    text: str
    why: str = ""


def sources(container: Mapping[str, Any]) -> frozenset[Source]:
    """The ConfigMaps and Secrets that a container's variables come from."""
    items = [*container.get("envFrom", []), *(item.get("valueFrom") or {} for item in container.get("env", []))]
    kinds = {"configMapRef": "ConfigMap", "configMapKeyRef": "ConfigMap", "secretRef": "Secret", "secretKeyRef": "Secret"}
    return frozenset((kind, item[field]["name"]) for item in items for field, kind in kinds.items() if field in item)


def resolve(container: Mapping[str, Any], read: Mapping[Source, Mapping[str, str] | None],
            namespace: str) -> dict[str, Variable]:
    """The variables of a container as a kubelet makes them: `envFrom`, then `env` in order, with $(NAME) expanded.

    `read` holds the content of every source, None for one that does not exist. Raises Unusable for what a pod could not
    start with either, and for names that a shell does not pass on.
    """
    found: dict[str, Variable] = {}
    for item in container.get("envFrom", []):
        field, kind = ("configMapRef", "ConfigMap") if "configMapRef" in item else ("secretRef", "Secret")
        content = _content(item[field], kind, read)
        found |= {item.get("prefix", "") + key: Variable(value) for key, value in content.items()}
    for item in container.get("env", []):
        origin = item.get("valueFrom")
        variable = _expand(item.get("value", ""), found) if not origin else _origin(item["name"], origin, read, namespace)
        if variable is not None:
            found[item["name"]] = variable
    if lost := sorted(name for name in found if not _SHELL_NAME.fullmatch(name)):
        raise Unusable(f"variable {lost[0]} would not reach the broker: a shell does not pass such a name on")
    return found


def _content(reference: Mapping[str, Any], kind: str, read: Mapping[Source, Mapping[str, str] | None]) -> Mapping[str, str]:
    content = read.get((kind, reference["name"]))
    if content is None and not reference.get("optional"):
        raise Unusable(f"{kind} {reference['name']}, of which the container takes variables, does not exist")
    return content or {}


def _origin(name: str, origin: Mapping[str, Any], read: Mapping[Source, Mapping[str, str] | None],
            namespace: str) -> Variable | None:
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in origin:
            reference = origin[field]
            content = _content(reference, kind, read)
            if reference["key"] not in content and not reference.get("optional"):
                raise Unusable(f"{kind} {reference['name']} has no key {reference['key']}, of which {name} takes its value")
            return Variable(content[reference["key"]]) if reference["key"] in content else None
    path = (origin.get("fieldRef") or {}).get("fieldPath")
    if path == "metadata.namespace":
        return Variable(namespace)
    told = path or next(iter(origin), "elsewhere")
    return Variable(f"$({told})", f"it comes from {told} of each pod")


def _expand(text: str, known: Mapping[str, Variable]) -> Variable:
    why = ""

    def expanded(reference: re.Match[str]) -> str:
        nonlocal why
        if reference[0] == "$$":
            return "$"
        variable = known.get(reference[1], Variable(reference[0], f"{reference[0]} is known to the kubelet alone"))
        why = why or variable.why
        return variable.text

    return Variable(_REFERENCE.sub(expanded, text), why)


def read_configuration(source: str, variables: Mapping[str, Variable], prefix: str) -> ServerConfiguration:
    """The server.properties that the image writes. Raises Unusable in words.

    Values that differ from pod to pod are kept as the template has them, and only where no other node needs them.
    """
    lines: dict[str, str] = {}
    for name, variable in variables.items():
        key = property_of(name, prefix)
        if key is None:
            continue
        if (usual := variable_of(key, prefix)) != name:
            raise Unusable(f"variable {name} is read by images as {key}, whose variable is {usual}: rename it")
        if variable.why and key not in modes.BROKER_ONLY:
            raise Unusable(f"the value of {name} cannot be known: {variable.why}. The controllers need it, too: give it one"
                           " value for all brokers or, if it is no property of Kafka, another name")
        lines[key] = variable.text
    if "zookeeper.connect" not in lines:
        raise Unusable(f"the container has no variable {variable_of('zookeeper.connect', prefix)}: its properties come from"
                       f" elsewhere, or spec.brokers[].configuration.environment.prefix is not {prefix}")
    return ServerConfiguration(source, "".join(f"{key}={text}\n" for key, text in lines.items()), {})


# --- the pod's own file -----------------------------------------------------------------------------------------------


def changes(before: str, after: str, prefix: str) -> str:
    """The shell that turns the environment of one server.properties into that of another. Raises Unusable in words."""
    old, new = modes.properties(before), modes.properties(after)
    lines = ["# What this pod's mode changes of its container's environment. Written by Switchover."]
    lines += [f"unset {variable_of(key, prefix)}" for key in sorted(old.keys() - new.keys())]
    lines += [f"export {variable_of(key, prefix)}={shlex.quote(_escaped(new[key]))}"
              for key in sorted(new) if new[key] != old.get(key)]
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    """A value as it must stand in a properties file; nothing else is escaped, since the images' scripts read it, too."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\f", "\\f")
    escaped = f"\\{escaped}" if escaped[:1] in (" ", "\t") else escaped
    return escaped.encode("ascii", "javapropertiesreplace").decode()


# --- the container ----------------------------------------------------------------------------------------------------


def wrapped(command: Iterable[str]) -> list[str]:
    """The command that reads the pod's own file first; one that is wrapped already stays."""
    own = list(command)
    return own if is_wrapped(own) else ["/bin/sh", "-c", WRAPPER, NAME, *own]


def is_wrapped(command: Iterable[str]) -> bool:
    """Whether a container's command is what `wrapped` makes."""
    return list(command)[:4] == ["/bin/sh", "-c", WRAPPER, NAME]


def assigned(container: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The properties of which the container's own command sets the variable: it would win against the pod's file."""
    text = " ".join(str(word) for word in [*container.get("command", []), *container.get("args", [])])
    found = re.findall(rf"\b({re.escape(prefix)}[A-Z0-9_]+)=(\S*)", text)
    return {key: value for name, value in found if "____" not in name and (key := property_of(name, prefix)) is not None}
