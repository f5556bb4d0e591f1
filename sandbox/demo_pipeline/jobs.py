"""One job of the pipeline in the cluster: rendered by `switchover launch`, applied, and followed to its end."""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from demo.cluster import Cluster, CommandFailed
from demo.cluster import run as command
from patience import Patience

IMAGE = "localhost/switchover/pipeline:dev"
CLAIM = "pipeline"
PATIENCE_SECONDS, CAPTURED_SECONDS = 420, 300
TICK_SECONDS = 2.0
QUIET_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Ran:
    """One job that ended: what it left as its termination message, and how long its pod took from apply to end."""

    job: str
    told: Mapping[str, Any]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {"rows": self.told.get("rows"), "seconds": round(self.seconds, 1), "jobSeconds": self.told.get("seconds")}


def run(cluster: Cluster, job: str, config: Path, say: Callable[[str], None], name: str = "",
        options: Sequence[str] = ()) -> Ran:
    """Run `job` with the configuration in a file. Raises CommandFailed when it fails, with the job's own words."""
    name = name or f"pipeline-{job}"
    switchover = Path(sys.executable).with_name("switchover")
    manifests = command(str(switchover), "launch", job, "--config", str(config), "--image", IMAGE, "--claim", CLAIM,
                        "--name", name, *options, env=cluster.environment)
    cluster.kubectl("delete", "job", name, "--ignore-not-found", timeout=120)
    start = time.monotonic()
    cluster.kubectl("apply", "--filename", "-", feed=manifests)
    say(f"{job}: switchover launch {' '.join([job, '…', *options])} | kubectl apply --filename -")
    return Ran(job, _outcome(cluster, name, job, say), time.monotonic() - start)


def _outcome(cluster: Cluster, name: str, job: str, say: Callable[[str], None]) -> dict[str, Any]:
    patience, shown, told_at = Patience(PATIENCE_SECONDS), "", time.monotonic()
    while not patience.over:
        time.sleep(TICK_SECONDS)
        status = cluster.get("job", name).get("status", {})
        ended = {item["type"] for item in status.get("conditions", []) if item["status"] == "True"}
        if ended & {"Complete", "Failed"}:
            message = termination(cluster, name)
            if "Complete" not in ended:
                raise CommandFailed(f"job {name} failed: {message.get('reason') or _log(cluster, name, 15)}")
            say(f"{job}: {json.dumps(message)}")
            return message
        if time.monotonic() - told_at > QUIET_SECONDS and (line := _log(cluster, name, 1)) != shown:
            shown, told_at = line, time.monotonic()
            if not line.startswith("{"):                # the outcome, which is told when the job has ended
                say(f"{job}: {line}")
    raise CommandFailed(f"job {name} has not ended after {patience}; its last words: {_log(cluster, name, 15)}")


def termination(cluster: Cluster, name: str) -> dict[str, Any]:
    """The termination message of a job's newest pod; empty when there is none."""
    pods = cluster.items("pods", "--selector", f"batch.kubernetes.io/job-name={name}")
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["creationTimestamp"]), reverse=True):
        for container in pod["status"].get("containerStatuses", []):
            text = container.get("state", {}).get("terminated", {}).get("message", "")
            if text:
                try:
                    found = json.loads(text)
                except ValueError:
                    return {"reason": text}
                return found if isinstance(found, dict) else {}
    return {}


def _log(cluster: Cluster, name: str, lines: int) -> str:
    try:
        return cluster.kubectl("logs", f"job/{name}", f"--tail={lines}").strip()
    except CommandFailed:
        return "its pod is starting"


def read(cluster: Cluster, pattern: str) -> dict[str, str]:
    """Text files of the store (a shell pattern below /data), as the capture's pod sees them: path -> content."""
    pod = cluster.items("pods", "--selector", "app=capture", "--field-selector", "status.phase=Running")
    if not pod:
        raise CommandFailed("no capture pod runs that could read the store")
    script = "import glob, json, sys; print(json.dumps({p: open(p).read() for p in sorted(glob.glob(sys.argv[1]))}))"
    answer = cluster.kubectl("exec", pod[0]["metadata"]["name"], "--", "python", "-c", script, f"/data/{pattern}")
    found: dict[str, str] = json.loads(answer)
    return found


def await_captures(cluster: Cluster, count: int) -> dict[str, str]:
    """The manifests of the capture that makes it `count`, as soon as it is there. Raises CommandFailed."""
    patience = Patience(CAPTURED_SECONDS)
    while not (found := read(cluster, f"manifests/*/{count - 1:08}.json")):
        if patience.over:
            log = cluster.kubectl("logs", "deployment/capture", "--tail=15")
            raise CommandFailed(f"not {count} captures after {patience}:\n{log}")
        time.sleep(2)
    return found


def with_sections(config: Path, output: Path, **sections: object) -> Path:
    """The configuration with further sections, as a file beside the demo's other output."""
    output.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), **sections}, sort_keys=False))
    return output
