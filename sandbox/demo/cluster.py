"""The Kubernetes cluster, through kubectl and helm as any user has them."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class CommandFailed(Exception):
    """A command ended with an error; the message is the command and its own words."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster and one namespace of it. `environment` has KUBECONFIG and the PATH that kubectl and helm are on."""

    namespace: str
    environment: Mapping[str, str]

    def kubectl(self, *arguments: str, feed: str | None = None, timeout: float = 60) -> str:
        """Standard output of kubectl in the namespace. Raises CommandFailed, also when it takes too long."""
        command = ("kubectl", "--namespace", self.namespace, *arguments)
        return run(*command, env=self.environment, feed=feed, timeout=timeout)

    def helm(self, *arguments: str, timeout: float = 180) -> str:
        """Standard output of helm in the namespace. Raises CommandFailed."""
        return run("helm", "--namespace", self.namespace, *arguments, env=self.environment, timeout=timeout)

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
    try:
        done = subprocess.run(
            command, env=dict(env), input=feed, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"{' '.join(command)}: no end after {timeout:.0f} s") from None
    except FileNotFoundError:
        raise CommandFailed(f"{command[0]} is not on the PATH; `make sandbox` builds it") from None
    if done.returncode:
        raise CommandFailed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
