"""What must be known of the brokers of a StatefulSet for their edits and for the controllers, and where it is kept.

It is found once, before anything is changed, and kept in the ControllerRevision beside the original template: later a broker
runs with what it was given, and tells no more what it had.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from switchover.api.kafka_migration import BrokerSet
from switchover.cluster import modes
from switchover.cluster.door.directives import NotADirective, line, word
from switchover.cluster.door.layout import container_of, layout_of, waits_for_zookeeper

KEPT = "brokers"
"""The field of the ControllerRevision's data."""
PROTOCOL_MAP = "listener.security.protocol.map"


@dataclass(frozen=True, slots=True)
class Brokers:
    """`script` is the start script in container `container`, `log_dir` the first log directory, `release` what controllers
    are formatted with, `raised` whether their own protocol version is too old for a migration, and `encrypted` the names of
    the listeners that encrypt. `image` is the one of Kafka 3.9 that they are upgraded to, "" where they run 3.9 already, and
    `version` the protocol version that they run with until it is raised. `waits`: their image's entrypoint waits for
    ZooKeeper at every start, which it is not to do in the controllers' pods. `listener` is the one by which brokers and
    controllers reach a broker, "" where it was not kept."""

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
        """As it is kept."""
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


def protocols(told: str) -> dict[str, str]:
    """A map of listeners to their security protocols, both in capitals, as Kafka reads them."""
    pairs = (each.partition(":") for each in told.split(","))
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs if name.strip()}


def upgraded(container: Mapping[str, Any], image: str) -> Mapping[str, Any]:
    """The container with the image that its brokers are upgraded to, if they are."""
    return {**container, "image": image} if image else container


def kept(original: Mapping[str, Any]) -> Brokers | str | None:
    """What a ControllerRevision keeps, or why it cannot be used; None for one of a release that kept nothing of this."""
    found = original.get(KEPT)
    if not found:
        return None
    try:                                               # others keep more or less
        known = {field.name: found[field.name] for field in fields(Brokers) if field.name in found}
        return Brokers(**{**known, "encrypted": tuple(known["encrypted"])})
    except NotADirective as error:
        return str(error)
    except (TypeError, KeyError):
        return "it is not of the form that Switchover writes"
