"""What must be known of the brokers of a StatefulSet for their edits and for the controllers, and how it is stored.

It is found once, before anything is changed, and stored in the ControllerRevision with the original template: later a broker
runs with our edits, and no longer shows what it had.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from switchover.api.kafka_migration import BrokerSet, StartPreset
from switchover.cluster import modes
from switchover.cluster.door.directives import NotADirective, line, word

# --- layout ---------------------------------------------------------------------------------------------------------------
# Which container of a pod runs Kafka, and where its image has its own start script: as the spec says, else by the template.
#
# What the template says is a guess. It is proven by the controllers' pods, which are a copy of the brokers' and start
# before any broker is touched: the init container of `mount.py` ends where the image has no such script, and names those
# that it has.

class ContainerMissing(Exception):
    """No container of the pod is the one that runs Kafka; the message names those that there are."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where an image has its start script; `environment` are the variables that its entrypoint needs.

    Without them Bitnami's entrypoint would write new SCRAM credentials to ZooKeeper at every start, past dual write, and end
    in KRaft mode, where it finds no `zookeeper.connect` (docs/facts/real-charts.md).
    """

    script: str
    environment: Mapping[str, str] = field(default_factory=dict)


LAYOUTS: Mapping[StartPreset, Layout] = {
    StartPreset.APACHE: Layout("/opt/kafka/bin/kafka-server-start.sh"),
    StartPreset.BITNAMI: Layout("/opt/bitnami/kafka/bin/kafka-server-start.sh",
                                {"KAFKA_ZOOKEEPER_BOOTSTRAP_SCRAM_USERS": "false"}),
    StartPreset.CONFLUENT: Layout("/usr/bin/kafka-server-start"),
}
SCRIPTS = tuple(layout.script for layout in LAYOUTS.values())
_MARKS = {StartPreset.BITNAMI: re.compile(r"bitnami"), StartPreset.CONFLUENT: re.compile(r"confluent|\bcp-(kafka|server)\b")}
_CALLED = re.compile(r"""(?:^|[\s=;&|(])["']?((?:/[\w.-]+)+/kafka-server-start(?:\.sh)?)(?![\w.-])""")
"""An absolute path of a start script in a command, without a variable in it."""


def container_of(template: Mapping[str, Any], brokers: BrokerSet) -> Mapping[str, Any]:
    """The container that runs Kafka: the one that the spec names; else the only one, or the only one called like Kafka.

    Raises ContainerMissing.
    """
    containers: Sequence[Mapping[str, Any]] = template["spec"].get("containers") or ()
    named = {container["name"]: container for container in containers}
    if brokers.container is not None:
        alike = [brokers.container] if brokers.container in named else []
    elif "kafka" in named or len(named) == 1:
        alike = ["kafka"] if "kafka" in named else list(named)
    else:
        alike = [name for name in named if "kafka" in name and "exporter" not in name]
    if len(alike) != 1:
        wanted = brokers.container or "whose name says that it runs Kafka"
        raise ContainerMissing(f"there is no container {wanted}; the pod has: {', '.join(named)}")
    return named[alike[0]]


def layout_of(container: Mapping[str, Any], brokers: BrokerSet) -> Layout:
    """Where the image's start script is: by the spec, by what the container's command calls, by the image; else Apache's."""
    preset = preset_of(container)
    if brokers.start is not None:
        if brokers.start.preset is not None:
            return LAYOUTS[brokers.start.preset]
        assert brokers.start.script is not None, "the API wants one of the two"
        return Layout(brokers.start.script, LAYOUTS[preset].environment)
    called = {found[1] for word in _command(container) for found in _CALLED.finditer(word)}
    return Layout(called.pop() if len(called) == 1 else LAYOUTS[preset].script, LAYOUTS[preset].environment)


def preset_of(container: Mapping[str, Any]) -> StartPreset:
    """Whose image it is, as far as the template shows; else Apache's."""
    shown = " ".join((container.get("image", ""), *_command(container),
                      *(mount["mountPath"] for mount in container.get("volumeMounts") or ())))
    return next((preset for preset, mark in _MARKS.items() if mark.search(shown)), StartPreset.APACHE)


SKIPS = "KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE"
"""The variable with which Confluent's entrypoint does not wait for ZooKeeper; it makes a property of it as well."""
SKIPPED = "zookeeper.ssl.client.enable"


def waits_for_zookeeper(container: Mapping[str, Any]) -> bool:
    """Whether the image's entrypoint does, at every start, and ends without it (docs/facts/real-charts.md)."""
    variables = {item["name"]: item.get("value", "") for item in container.get("env") or ()}
    return ("KAFKA_ZOOKEEPER_CONNECT" in variables and "KAFKA_PROCESS_ROLES" not in variables
            and variables.get(SKIPS) != "true" and preset_of(container) is StartPreset.CONFLUENT)


def _command(container: Mapping[str, Any]) -> Iterator[str]:
    for field_ in ("command", "args"):
        yield from map(str, container.get(field_) or ())


DATA_FIELD = "brokers"
"""Of the ControllerRevision's data."""
PROTOCOL_MAP = "listener.security.protocol.map"


@dataclass(frozen=True, slots=True)
class Brokers:
    """`script` is the start script in container `container`, `log_dir` the first log directory, `release` what controllers
    are formatted with, `raised` whether their own protocol version is too old for a migration, and `encrypted` the names of
    the listeners that encrypt. `image` is the one of Kafka 3.9 that they are upgraded to, "" where they run 3.9 already, and
    `version` the protocol version that they run with until it is raised. `waits`: their image's entrypoint waits for
    ZooKeeper at every start, which it is not to do in the controllers' pods. `listener` is the one by which brokers and
    controllers reach a broker, "" where an older release did not store it."""

    container: str
    script: str
    log_dir: str
    release: str
    raised: bool
    encrypted: tuple[str, ...]
    image: str = ""
    version: str = ""
    waits: bool = False
    listener: str = ""

    def __post_init__(self) -> None:
        """Raises NotADirective for what cannot be part of the edits."""
        word(self.release, "release")
        if self.log_dir:
            line(self.log_dir, "log.dirs")
        for name in self.encrypted:
            word(name, PROTOCOL_MAP)

    def data(self) -> dict[str, Any]:
        """As it is stored."""
        return asdict(self) | {"encrypted": list(self.encrypted)}


def find(template: Mapping[str, Any], brokers: BrokerSet, settings: Mapping[str, str], image: str = "") -> Brokers:
    """Of the template as the user wrote it, what one of these brokers runs with, and the image that they are upgraded to.
    Raises ContainerMissing and NotADirective."""
    container = upgraded(container_of(template, brokers), image)
    version = settings.get(modes.PROTOCOL_VERSION, "")
    release = modes.release_of(version)
    raised = release not in modes.METADATA_LEVELS
    directories = settings.get("log.dirs") or settings.get("log.dir") or ""
    pairs = (item.partition(":") for item in (settings.get(PROTOCOL_MAP) or modes.DEFAULT_PROTOCOL_MAP).split(","))
    return Brokers(
        container=container["name"],
        script=layout_of(container, brokers).script,
        log_dir=directories.split(",")[0].strip(),
        release=modes.RAISED if raised else release,
        raised=raised,
        encrypted=tuple(name.strip() for name, _, protocol in pairs if protocol.strip().upper().endswith("SSL")),
        image=image,
        version=version,
        waits=waits_for_zookeeper(container),
        listener=between_brokers(settings))


def between_brokers(settings: Mapping[str, str]) -> str:
    """The name of the listener that brokers use among themselves (KafkaConfig's default)."""
    return settings.get("inter.broker.listener.name") or settings.get("security.inter.broker.protocol") or "PLAINTEXT"


def protocols(setting: str) -> dict[str, str]:
    """A map of listeners to their security protocols, both in capitals, as Kafka reads them."""
    pairs = (each.partition(":") for each in setting.split(","))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs if name.strip()}


def upgraded(container: Mapping[str, Any], image: str) -> Mapping[str, Any]:
    """The container with the image that its brokers are upgraded to, if they are."""
    return {**container, "image": image} if image else container


def stored(original: Mapping[str, Any]) -> Brokers | str | None:
    """What a ControllerRevision has, or why it cannot be used; None for one of a release that did not store it."""
    found = original.get(DATA_FIELD)
    if not found:
        return None
    try:                                               # other releases store more or less
        known = {field.name: found[field.name] for field in fields(Brokers) if field.name in found}
        return Brokers(**{**known, "encrypted": tuple(known["encrypted"])})
    except NotADirective as error:
        return str(error)
    except (TypeError, KeyError):
        return "it is not of the form that Switchover writes"
