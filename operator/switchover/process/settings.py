"""What the operator gets through its environment."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from switchover.api.affinity import Selector
from switchover.engine.message import SLACK, read_template
from switchover.engine.policy import NOTHING_MORE, Policy
from switchover.shared import foreign_json

KINDS = ("KafkaMigration", "ConsumerGroupMigration")
EVERYWHERE = ""
"""Instead of a namespace's name: all of them."""
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class BadSettings(Exception):
    """A variable of the environment that cannot be used; the message names it and says what it must be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's settings.

    `namespace` is that of its own pod; it serves what lives in `watched`, where EVERYWHERE alone is all namespaces, and
    touches no other; of the objects there those whose labels the `selector` matches. Of the resources it serves those of
    `kinds`, and watches no others; `identity` names this instance in Leases, `leader_lease` is the one that whoever of
    several instances acts must hold, empty where there is but one; `kubeconfig` is empty in a pod, where the service
    account counts. `webhook` is the file that holds a webhook's address, None where there is none, `webhook_template` what
    it is sent.
    """

    namespace: str
    watched: tuple[str, ...]
    selector: Mapping[str, Any]
    kinds: frozenset[str]
    identity: str
    leader_lease: str
    kubeconfig: str
    allow: Policy
    image: str
    docs: str
    probe_port: int
    metrics_port: int
    log_level: str
    json_logs: bool
    webhook: Path | None
    webhook_template: Mapping[str, Any]


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings; raises BadSettings.

    | variable     | meaning                                            | default |
    |--------------|----------------------------------------------------|---------|
    | POD_NAMESPACE| the namespace that the operator runs in            | needed  |
    | POD_NAME     | the name of this instance                          | needed  |
    | LEADER_LEASE | the Lease that one of several instances holds, and acts | none: it acts at once |
    | WATCH        | the namespaces that it serves, separated by commas; * for all | POD_NAMESPACE |
    | SELECTOR     | a label selector, as JSON: of the migrations there it serves those that match | all |
    | KINDS        | the resources that it serves, separated by commas  | both    |
    | ALLOW_IMAGES | images that a migration may name: repositories, or with tag or digest | none    |
    | ALLOW_CLAIMS | volume claims that a migration may name            | none    |
    | ALLOW_SECRETS | Secrets that a patch of a template may bring in   | none    |
    | ALLOW_ANNOTATIONS, ALLOW_LABELS | keys that a migration may give to pods | none |
    | ALLOW_PODS   | what else it may give to them (`kubernetes.brought_in`) | none |
    | APPROVERS    | service accounts that may approve what cannot be taken back | none |
    | FOUR_EYES    | true: nobody approves a spec that they have changed | false   |
    | RELEASE      | the release of Helm's that runs the operator       | switchover |
    | IMAGE        | the operator's own image, for the rehearsal's pod    | none: no rehearsal |
    | DOCS         | the address of a copy of docs/, for links to runbooks | none: as in the sources |
    | WEBHOOK_FILE | the file that holds the address of a webhook          | none: no webhook |
    | WEBHOOK_TEMPLATE | the JSON object that it is sent (`engine.message`)  | Slack's |
    | KUBECONFIG   | file with the API server's address and credentials | the pod's service account |
    | PROBE_PORT   | port of the liveness probe                         | 8080    |
    | METRICS_PORT | port of the Prometheus metrics                     | 9090    |
    | LOG_LEVEL    | DEBUG, INFO, WARNING or ERROR                      | INFO    |
    | LOG_FORMAT   | json or text                                       | json    |
    """
    namespace = _needed(environment, "POD_NAMESPACE")
    settings = Settings(
        namespace=namespace,
        watched=_watched(environment, namespace),
        selector=_selector(environment.get("SELECTOR", "").strip()),
        kinds=_kinds(environment.get("KINDS", ",".join(KINDS))),
        identity=f"{namespace}/{_needed(environment, 'POD_NAME')}",
        leader_lease=_leader_lease(environment),
        kubeconfig=environment.get("KUBECONFIG", ""),
        allow=Policy(
            *(_several(environment, f"ALLOW_{each}") for each in (
                "IMAGES", "CLAIMS", "SECRETS", "ANNOTATIONS", "LABELS", "PODS")),
            approvers=_several(environment, "APPROVERS"),
            four_eyes=_choice(environment, "FOUR_EYES", "false", ("true", "false")) == "true",
            release=environment.get("RELEASE", "").strip() or NOTHING_MORE.release,
            namespace=namespace),
        image=environment.get("IMAGE", "").strip(),
        docs=_address(environment, "DOCS"),
        probe_port=_port(environment, "PROBE_PORT", 8080),
        metrics_port=_port(environment, "METRICS_PORT", 9090),
        log_level=_choice(environment, "LOG_LEVEL", "INFO", LOG_LEVELS),
        json_logs=_choice(environment, "LOG_FORMAT", "json", ("json", "text")) == "json",
        webhook=Path(file) if (file := environment.get("WEBHOOK_FILE", "").strip()) else None,
        webhook_template=_template(environment, "WEBHOOK_TEMPLATE"),
    )
    if settings.probe_port == settings.metrics_port:
        raise BadSettings(f"PROBE_PORT and METRICS_PORT are both {settings.probe_port}; they must differ")
    return settings


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise BadSettings(f"{name} is not set; in a pod it comes from the downward API (fieldRef)")
    return value


def _leader_lease(environment: Mapping[str, str]) -> str:
    name = environment.get("LEADER_LEASE", "").strip()
    if name and (len(name) > 253 or re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", name) is None):
        raise BadSettings(f"LEADER_LEASE is {name[:63]!r}; it must be the name of an object, such as switchover")
    return name


def _watched(environment: Mapping[str, str], own: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(_several(environment, "WATCH"))) or (own,)
    if found == ("*",):
        return (EVERYWHERE,)
    for name in found:
        if re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) is None:
            raise BadSettings(f"WATCH has {name[:63]!r}; it must be names of namespaces with commas between, or * alone")
    return found


def _selector(text: str) -> Mapping[str, Any]:
    try:
        found = foreign_json.parsed(text) if text else {}
        is_one = Selector.model_validate(found).manifest() == found        # the model passes over what it does not know
    except ValueError:
        is_one = False
    if not is_one:
        raise BadSettings(f"SELECTOR is {text[:63]!r}; it must be a label selector in JSON, such as "
                          '{"matchLabels": {"shard": "a"}}, with the operators In, NotIn, Exists, DoesNotExist')
    return found


def _several(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in environment.get(name, "").split(",") if item.strip())


def _kinds(text: str) -> frozenset[str]:
    found = frozenset(text.split(","))
    if not found <= frozenset(KINDS):
        raise BadSettings(f"KINDS is {text!r}; it must be {KINDS[0]}, {KINDS[1]}, or both with a comma between them")
    return found


def _address(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip().rstrip("/")
    if value and (len(value) > 400 or re.fullmatch(r"https?://[!-~]+", value) is None):
        raise BadSettings(f"{name} is {value[:60]!r}; it must be an address such as https://git.example.com/docs")
    return value


def _template(environment: Mapping[str, str], name: str) -> Mapping[str, Any]:
    text = environment.get(name, "").strip()
    try:
        return read_template(text) if text else SLACK
    except ValueError as error:
        raise BadSettings(f"{name} {error}; it must be a JSON object such as {json.dumps(SLACK)}") from None


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, str(default))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise BadSettings(f"{name} is {text!r}; it must be a port number from 1 to 65535")
    return int(text)


def _choice(environment: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = environment.get(name, default)
    if value not in choices:
        raise BadSettings(f"{name} is {value!r}; it must be one of {', '.join(choices)}")
    return value
