"""Two operators of one release on a real API server and a real broker: where one ends, or is killed, the other goes on."""

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from adapters.clusters import node
from apiserver.many_migrations import migration
from apiserver.processes import running
from patience import until
from switchover.process.leadership import ASKED_SECONDS, LASTS_SECONDS

Kubectl = Callable[..., Any]
LEASE, MIGRATION = "switchover", "orders"


@pytest.mark.long
def test_where_the_one_that_acts_ends_or_is_killed_the_other_takes_its_migrations_over(
    kubeconfig: Path, namespace: str, crds: object, kubectl: Kubectl, tmp_path: Path
) -> None:
    """The migration is to run, so that its own Lease is one of those that keep others away; Blockers hold it."""
    def get(*what: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(kubectl("-n", namespace, "get", *what, "--output", "json").stdout)
        return found

    def holders() -> dict[str, tuple[str, int]]:
        """Of each Lease: the pod that has it, and for how long."""
        return {"leads" if each["metadata"]["name"] == LEASE else "acts":
                (each["spec"]["holderIdentity"].rpartition("/")[2], each["spec"]["leaseDurationSeconds"])
                for each in get("leases")["items"]}

    def operator(name: str) -> subprocess.Popen[str]:
        log = tmp_path / f"{name}.log"
        return stack.enter_context(running(kubeconfig, namespace, log, LEADER_LEASE=LEASE, POD_NAME=name))

    def why() -> str:
        return f"{holders()}, {[path.read_text()[-1500:] for path in tmp_path.glob('*.log')]}"

    def has(name: str) -> bool:
        return holders() == {"leads": (name, LASTS_SECONDS), "acts": (name, 30)}

    def taken_over_by(name: str) -> float:
        """Seconds until it has both Leases, and has decided on a change."""
        begun = time.monotonic()
        until(lambda: has(name), why)
        patch = json.dumps({"spec": {"gates": {"stepPatienceSeconds": round(1000 + begun % 1000)}}})
        kubectl("-n", namespace, "patch", "cgmig", MIGRATION, "--type", "merge", "--patch", patch)

        def decided() -> bool:
            found = get("cgmig", MIGRATION)
            return bool(found["status"]["observedGeneration"] == found["metadata"]["generation"])

        until(decided, why)
        return time.monotonic() - begun

    with ExitStack() as stack, node(tmp_path / "broker", "4.4") as broker:
        broker.begin()
        wanted = migration(MIGRATION, str(broker.address))
        wanted["spec"]["desiredState"] = "Running"
        kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(wanted))
        first = operator("one")
        until(lambda: has("one"), why)
        second = operator("two")
        until(lambda: "standing by: " in (tmp_path / "two.log").read_text(), why)
        first.kill()
        killed = taken_over_by("two")
        third = operator("three")
        until(lambda: "standing by: " in (tmp_path / "three.log").read_text(), why)
        second.terminate()
        ended = taken_over_by("three")
        assert second.wait(20) == 0
        third.terminate()
        assert third.wait(20) == 0
        assert holders() == {"acts": ("three", 60)}, "left to whoever comes next, and to no other migration"
        print(f"taken over {killed:.1f} s after SIGKILL, {ended:.1f} s after SIGTERM")
        assert ended < killed < LASTS_SECONDS + ASKED_SECONDS + 25
