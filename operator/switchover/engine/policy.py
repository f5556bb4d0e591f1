"""What a migration may name beyond what its workloads have already: what the chart allows.

Whoever may create a migration would otherwise run any image with the ServiceAccount, Secrets and volumes of a workload. And
what every Preflight says of the Secrets that a migration names.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from fnmatch import fnmatchcase
from typing import Any

from switchover.answers.observed import Observed
from switchover.engine.gate import NAMED, Verdict, fail, seen, several, warn
from switchover.kubernetes.brought_in import brought_in
from switchover.reasons.notes import HOSTS_UNCHECKED
from switchover.reasons.walk import NOT_OBSERVED
from switchover.reasons.workloads import IMAGE_NOT_ALLOWED, POD_CHANGE_NOT_ALLOWED
from switchover.text.command import command

FREE: Mapping[str, tuple[str, ...]] = {"annotations": ("checksum/*", "prometheus.io/*")}
"""What needs no leave: it restarts pods with their configuration, and has them scraped."""
OF_PODS = {"annotations": "annotations of the pods", "labels": "labels of the pods", "pods": "settings of the pods"}


@dataclass(frozen=True, slots=True)
class Policy:
    """The chart's value `allow`: `images` are repositories, some with a tag or digest, `claims` and `secrets` names,
    `annotations` and `labels` keys of pods; `*` stands for any text. `pods` are of `brought_in.PODS`. And of
    `admissionPolicies` the service accounts that may approve what cannot be taken back, and whether nobody approves a spec
    that they have changed. `release` is the one of Helm's that runs the operator, in `namespace`."""

    images: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    _: KW_ONLY
    approvers: tuple[str, ...] = ()
    four_eyes: bool = False
    release: str = "switchover"
    namespace: str = "kafka"

    def find_image(self, field: str, image: str, instead_of: str = "") -> Iterator[Verdict]:
        """A finding unless the chart allows the image, or it is the one that it takes the place of; another tag of that one
        is, where the chart names no tag or digest of its repository (docs/decisions/0011-credentials.md)."""
        wanted = repository(image)
        of_it = [entry for entry in self.images if fnmatchcase(wanted, repository(entry))]
        if image == instead_of or any(_has(entry, image) for entry in of_it) or (
                wanted == repository(instead_of) and not of_it):
            return
        if of_it:
            what, missing = f"is {image}, and of {wanted} the chart allows only {', '.join(of_it)}", image
        else:
            other = f" ({instead_of} runs now)" if instead_of else ""
            what, missing = f"names repository {wanted}, which the chart does not allow{other}", wanted
        yield fail(IMAGE_NOT_ALLOWED, f"{field} {what}", subject=field, observed=missing,
                   threshold=", ".join(self.images) or "none", unblocks=self.allow("images", missing))

    def find_pod_changes(self, field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Verdict]:
        """A finding for each of the chart's values that would have to allow what the field makes of a pod template."""
        for value, names in brought_in(before, after).items():
            allowed: tuple[str, ...] = getattr(self, value)
            wanted = sorted(name for name in names if not matches(name, (*FREE.get(value, ()), *allowed)))
            if wanted:
                yield fail(POD_CHANGE_NOT_ALLOWED, f"{field} changes {OF_PODS[value]} that the chart's allow.{value} does"
                           f" not list: {several(wanted)}", subject=field, observed=several(wanted),
                           threshold=", ".join(allowed) or "none",
                           unblocks=f"leave them out; or {self.allow(value, *wanted[:NAMED])}")

    def allow(self, value: str, *names: str) -> str:
        """How they come to be allowed besides what is; a name that is a pattern to the chart would allow more. By JSON: to
        `--set` a name such as 123 or true is no string."""
        if any("*" in name for name in names):
            return "choose a name that Kubernetes accepts"
        setting = f"allow.{value}={json.dumps([*getattr(self, value), *names], separators=(',', ':'))}"
        upgrade = command("helm upgrade {} helm/switchover --namespace {} --reset-then-reuse-values --set-json {}",
                          self.release, self.namespace, setting)
        return f"whoever installed the chart can allow it, in a checkout of its version: {upgrade}"


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns has the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


NOTHING_MORE = Policy()
"""What its workloads have, and no other."""
ANYTHING = Policy(*6 * (("*",),), approvers=("*",))
"""What the chart allows is not known."""


def repository(image: str) -> str:
    """The image without tag and digest."""
    return _parts(image)[0]


def _parts(image: str) -> tuple[str, str, str]:
    """Repository, tag and digest; a port of the registry is no tag."""
    name, _, digest = image.partition("@")
    path, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return f"{path}{slash}{last}", tag, digest


def _has(entry: str, image: str) -> bool:
    """Whether an entry allows an image of its repository: any, or the tag and digest that it is written with."""
    _, *wanted = _parts(entry)
    _, *found = _parts(image)
    return wanted == ["", ""] or all(map(fnmatchcase, found, wanted))    # a digest wins over a tag next to it


def find_unchecked(secrets: Observed[tuple[str, ...]]) -> Iterator[Verdict]:
    """A warning for each of these Secrets, which turn the check of names off."""
    for secret in seen(secrets, NOT_OBSERVED, "the credentials"):
        yield warn(HOSTS_UNCHECKED, f"Secret {secret} turns the check of host names off (an empty"
                   " ssl.endpoint.identification.algorithm): any server with a certificate of the same authority is trusted",
                   subject=f"Secret {secret}", cure="issue certificates for the servers' names, and remove that key")
