"""The Kubernetes cluster, through kubectl and helm as any user has them."""

import contextlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from patience import Patience


class CommandFailed(Exception):
    """A command ended with an error; the message is the command and its own words."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster and one namespace of it. `environment` has KUBECONFIG and the PATH that kubectl and helm are on."""

    namespace: str
    environment: Mapping[str, str]

    def kubectl(self, *arguments: str, feed: str | None = None, timeout: float = 60) -> str:
        """Standard output of kubectl in the namespace. Raises CommandFailed, also when it takes longer than `timeout`
        seconds of a quiet machine."""
        command = ("kubectl", "--namespace", self.namespace, *arguments)
        return run(*command, env=self.environment, feed=feed, timeout=timeout)

    def helm(self, *arguments: str, timeout: float = 180) -> str:
        """Standard output of helm in the namespace. Raises CommandFailed."""
        return run("helm", "--namespace", self.namespace, *arguments, env=self.environment, timeout=timeout)

    def user(self) -> str:
        """The name by which the API server knows whoever asks: an approval must be given in it. Raises CommandFailed."""
        return self.kubectl("auth", "whoami", "--output", "jsonpath={.status.userInfo.username}")

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get … --output json`. Raises CommandFailed, for example when the object does not exist."""
        answer: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output", "json"))
        return answer

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The items of a list that `kubectl get` answers."""
        found: list[dict[str, Any]] = self.get(*arguments)["items"]
        return found


def run(*command: str, env: Mapping[str, str], feed: str | None = None, timeout: float = 60) -> str:
    """Run a command to its end and return its standard output. Raises CommandFailed."""
    patience = Patience(timeout)
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, env=dict(env), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    except FileNotFoundError:
        raise CommandFailed(f"{command[0]} is not on the PATH; `make sandbox` builds it") from None
    with process:
        try:
            output, errors = _communicate(process, command, feed, patience)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)}: {(errors or output).strip()}")
    return output


def _communicate(
    process: subprocess.Popen[str], command: Sequence[str], feed: str | None, patience: Patience
) -> tuple[str, str]:
    while not patience.over:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(feed, timeout=min(patience.seconds, 1))
        feed = None                 # is on its way
    raise CommandFailed(f"{' '.join(command)}: no end after {patience}")
