"""The resources on docs/api.md, and inputs that must be refused: for the models and for the API server alike."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "api.md"

Resource = dict[str, Any]


def documented() -> list[Resource]:
    """Every resource written on docs/api.md, in its order."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [yaml.safe_load(block) for block in blocks]


def exemplary() -> list[Resource]:
    """Every resource of ours in examples/."""
    found = [resource for path in sorted((ROOT / "examples").rglob("*.yaml"))
             for resource in yaml.safe_load_all(path.read_text(encoding="utf-8"))]
    return [resource for resource in found if str(resource.get("apiVersion")).startswith("switchover.dev/")]


def documented_of(kind: str) -> list[Resource]:
    return [resource for resource in documented() if resource["kind"] == kind]


class Absent:
    """In place of a value: the field is taken away."""


class Refused(NamedTuple):
    """One wrong value in an otherwise right resource, and what the refusals must contain."""

    kind: str
    path: str
    value: Any
    server: str
    model: str | None = None
    """None: the same words as the server."""

    def resource(self) -> Resource:
        """The first documented resource of the kind, with the wrong value."""
        resource = deepcopy(documented_of(self.kind)[0])
        *parents, last = [int(key) if key.isdigit() else key for key in self.path.split(".")]
        target: Any = resource["spec"]
        for parent in parents:
            target = target[parent] if isinstance(parent, int) else target.setdefault(parent, {})
        if self.value is Absent:
            del target[last]
        elif isinstance(target, list) and last == len(target):
            target.append(self.value)
        else:
            target[last] = self.value
        return resource


KAFKA = "KafkaMigration"
GROUP = "ConsumerGroupMigration"
HOST_PORTS = "must be host:port pairs separated by commas"
WORKLOAD_NAME = "must be the name of a workload of this namespace"

REFUSED = [
    Refused(KAFKA, "desiredState", "Go", 'supported values: "Planned", "Running", "Paused"', "'Planned', 'Running'"),
    Refused(KAFKA, "holds", ["Finalise"], 'Unsupported value: "Finalise": supported values: "Preflight"', "'Finalize'"),
    Refused(KAFKA, "holds", ["Soak", "Soak"], 'holds[1]: Duplicate value: "Soak"', "Soak must not be there twice"),
    Refused(
        KAFKA,
        "approvals",
        [{"name": "Finalize", "planHash": "THE PLAN", "approver": "alice"}],
        "must be the plan's hash as status.planHash shows it",
    ),
    Refused(
        KAFKA,
        "approvals",
        [{"name": "Finalize", "planHash": "7f3a5c21", "approver": who} for who in ("alice", "bob")],
        'approvals[1]: Duplicate value: {"name":"Finalize"}',
        "Finalize must not be there twice",
    ),
    Refused(
        KAFKA,
        "approvals",
        [{"name": "Finalize", "planHash": "7f3a5c21"}],
        "approvals[0].approver: Required value",
        "Field required",
    ),
    Refused(KAFKA, "zookeeper", Absent, "spec.zookeeper: Required value", "Field required"),
    Refused(KAFKA, "zookeeper.connect", "zookeeper", HOST_PORTS),
    Refused(KAFKA, "zookeeper.connect", "a:2181, b:2181", HOST_PORTS),
    Refused(KAFKA, "kafka.bootstrapServers", "kafka:9092/path", HOST_PORTS),
    Refused(KAFKA, "kafka.credentialsRef", {"name": "../Secret"}, "must be the name of an object of this namespace"),
    Refused(KAFKA, "kafka.credentialsRef", {}, "credentialsRef.name: Required value", "Field required"),
    Refused(KAFKA, "brokers", [], "should have at least 1 items", "at least 1 item"),
    Refused(KAFKA, "brokers.0.name", "Kafka", WORKLOAD_NAME),
    Refused(KAFKA, "brokers.0.name", "k" * 53, "may not be more than 52 bytes", "at most 52 characters"),
    Refused(
        KAFKA,
        "brokers.1",
        {"name": "kafka", "container": "another"},
        'brokers[1]: Duplicate value: {"name":"kafka"}',
        "kafka must not be there twice",
    ),
    Refused(KAFKA, "brokers.0.start", {}, "must have exactly one of preset and script"),
    Refused(
        KAFKA,
        "brokers.0.start",
        {"preset": "Apache", "script": "/kafka/bin/kafka-server-start.sh"},
        "must have exactly one of preset and script",
    ),
    Refused(KAFKA, "brokers.0.start", {"preset": "Debian"}, 'supported values: "Apache", "Bitnami"', "'Apache', 'Bitnami'"),
    Refused(KAFKA, "brokers.0.start", {"script": "bin/start.sh"}, "must be an absolute path without blanks"),
    Refused(KAFKA, "brokers.0.start", {"script": "/bin/start.sh -daemon"}, "must be an absolute path without blanks"),
    Refused(KAFKA, "controllers", Absent, "spec.controllers: Required value", "Field required"),
    Refused(KAFKA, "controllers.replicas", 1, "spec.controllers.replicas: Invalid value: 1: must be 3 or 5", "3 or 5"),
    Refused(KAFKA, "controllers.replicas", 4, "spec.controllers.replicas: Invalid value: 4: must be 3 or 5", "3 or 5"),
    Refused(KAFKA, "controllers.replicas", 0, "must be 3 or 5"),
    Refused(KAFKA, "controllers.replicas", "three", "must be of type integer", "valid integer"),
    Refused(KAFKA, "controllers.name", "kafka", "must differ from the names of the brokers' StatefulSets"),
    Refused(KAFKA, "controllers.storage", Absent, "spec.controllers.storage: Required value", "Field required"),
    Refused(KAFKA, "controllers.storage.size", Absent, "storage.size: Required value", "Field required"),
    Refused(KAFKA, "controllers.storage.size", "much", "must be a size, such as 1Gi"),
    Refused(KAFKA, "controllers.storage.size", "-1Gi", "must be a size, such as 1Gi"),
    Refused(KAFKA, "controllers.firstNodeId", 0, "should be greater than or equal to 1", "greater than or equal to 1"),
    Refused(KAFKA, "controllers.listener", {"port": 0}, "greater than or equal to 1"),
    Refused(KAFKA, "controllers.listener", {"name": "controller"}, "must be a listener's name in upper case"),
    Refused(
        KAFKA,
        "controllers.listener",
        {"securityProtocol": "SASL_SSL"},
        "must be given unless securityProtocol is PLAINTEXT",
    ),
    Refused(
        KAFKA, "controllers.template", {"resources": {"limits": {"memory": "lots"}}}, "should match", "be a quantity"
    ),
    Refused(KAFKA, "controllers.template", {"heapOptions": "-XX:OnError=id"}, "must be options of the JVM's heap"),
    Refused(KAFKA, "controllers.template", {"heapOptions": "-javaagent:/data/a.jar"}, "must be options of the JVM's heap"),
    Refused(KAFKA, "rollout", {"steps": []}, "should have at least 1 items", "at least 1 item"),
    Refused(KAFKA, "rollout", {"steps": [{"bakeSeconds": 5}]}, "must have exactly one of pods and percent"),
    Refused(KAFKA, "rollout", {"steps": [{"pods": 1, "percent": 5}]}, "must have exactly one of pods and percent"),
    Refused(KAFKA, "rollout", {"steps": [{"percent": 101}]}, "less than or equal to 100"),
    Refused(KAFKA, "soakSeconds", -1, "greater than or equal to 0"),
    Refused(KAFKA, "backups", {}, "must have exactly one of takenTime and skipReason"),
    Refused(
        KAFKA,
        "backups",
        {"takenTime": "2026-11-21T20:00:00Z", "skipReason": "both"},
        "must have exactly one of takenTime and skipReason",
    ),
    Refused(KAFKA, "backups", {"takenTime": "yesterday"}, "must be of type date-time", "valid datetime"),
    Refused(KAFKA, "backups", {"skipReason": ""}, "should be at least 1 chars long", "at least 1 character"),
    Refused(KAFKA, "onFailure", "Ignore", 'supported values: "Pause", "RollBack"', "'Pause' or 'RollBack'"),
    Refused(
        KAFKA,
        "windows",
        [{"name": "night", "cron": "every night", "durationSeconds": 3600}],
        "must be five cron fields",
    ),
    Refused(
        KAFKA,
        "windows",
        [{"name": "night", "cron": "61 * * * *", "durationSeconds": 3600}],
        "must be five cron fields",
    ),
    Refused(
        KAFKA,
        "windows",
        [{"name": "night", "cron": "0 1 * * *", "durationSeconds": 3600, "timeZone": "Mars/Phobos"}],
        "must be the IANA name of a time zone",
    ),
    Refused(KAFKA, "gates", {"stableSamples": 0}, "greater than or equal to 1"),
    Refused(KAFKA, "gates", {"acceptedTopics": ["two words"]}, "must be a topic's name"),
    Refused(KAFKA, "gates", {"groups": [{"maxLag": 1}]}, "gates.groups[0].name: Required value", "Field required"),
    Refused(KAFKA, "gates", {"groups": [{"name": "é" * 16384}]}, "must be the id of a group: at most 32767 bytes"),
    Refused(GROUP, "protocol", Absent, "must have exactly one of protocol, assignmentStrategy and coordination"),
    Refused(
        GROUP,
        "assignmentStrategy",
        {"to": "cooperative-sticky"},
        "must have exactly one of protocol, assignmentStrategy and coordination",
    ),
    Refused(GROUP, "zookeeper", {"connect": "zookeeper:2181"}, "must have zookeeper with coordination, and only then"),
    Refused(GROUP, "audit", {"enabled": True}, "must have image and claim with enabled"),
    Refused(GROUP, "protocol.to", "KIP-848", 'supported values: "Consumer", "Classic"', "'Consumer' or 'Classic'"),
    Refused(GROUP, "workloads", [], "should have at least 1 items", "at least 1 item"),
    Refused(GROUP, "workloads.0.kind", "DaemonSet", 'supported values: "Deployment", "StatefulSet"', "'Deployment'"),
    Refused(GROUP, "group", Absent, "spec.group: Required value", "Field required"),
]


def names(refused: Refused) -> str:
    """A test's id."""
    value = "absent" if refused.value is Absent else str(refused.value)[:40]
    return f"{refused.kind}-{refused.path}={value}"
