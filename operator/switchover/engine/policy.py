"""What a migration may name beyond what its workloads have already: images, volume claims and Secrets that the chart allows.

Whoever may create a migration would otherwise run any image with the ServiceAccount, Secrets and volumes of a workload. And
what every Preflight says of the Secrets that a migration names.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from switchover.command import command
from switchover.engine.gate import Unseen, Verdict, fail, unknown, warn
from switchover.outside.observed import Known, Observed
from switchover.reasons.walk import NOT_OBSERVED
from switchover.reasons.workloads import IMAGE_NOT_ALLOWED


@dataclass(frozen=True, slots=True)
class Policy:
    """The chart's value `allow`: `images` are repositories, `claims` and `secrets` are names; `*` stands for any text."""

    images: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    def find_image(self, field: str, image: str, instead_of: str = "") -> Iterator[Verdict]:
        """A finding unless the chart allows the image, or it is another tag of the one that it takes the place of."""
        wanted = repository(image)
        if wanted == repository(instead_of) or matches(wanted, self.images):
            return
        other = f" and is not that of {instead_of}" if instead_of else ""
        yield fail(IMAGE_NOT_ALLOWED, f"{field} is of the repository {wanted}, which the chart does not allow{other}",
                   subject=field, observed=wanted, threshold=", ".join(self.images) or "none",
                   unblocks=allow("images", wanted))


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns has the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def allow(value: str, name: str) -> str:
    """How it comes to be allowed. To `--set` a backslash, comma or brace of a name would be its own."""
    as_is = re.sub(r"([\\,{}])", r"\\\1", name)
    setting = f"allow.{value}={{{as_is}}}"
    return f"whoever installed the chart allows it: {command('helm upgrade … --set {}', setting)}"


NOTHING_MORE = Policy()
"""What its workloads have, and no other."""


def repository(image: str) -> str:
    """The image without tag and digest; a port of the registry is no tag."""
    name = image.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def find_unchecked(secrets: Observed[tuple[str, ...]]) -> Iterator[Verdict]:
    """A warning for each of these Secrets, which turn the check of names off."""
    if not isinstance(secrets, Known):
        raise Unseen(unknown(NOT_OBSERVED, secrets.why, subject="the credentials"))
    for secret in secrets.value:
        yield warn("HostsUnchecked", f"Secret {secret} has an empty ssl.endpoint.identification.algorithm: a server that"
                   " shows any certificate of the same authority is believed to be the one that was meant",
                   subject=f"Secret {secret}", cure="issue certificates for the servers' names, and take that key out")
