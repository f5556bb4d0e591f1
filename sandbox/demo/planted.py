"""A node that would end every controller after the claim: planted before the migration, named by the rehearsal, deleted by
the command that it prints."""

import re
from dataclasses import dataclass

from demo import tools
from demo.cluster import Cluster
from switchover.cli.objects import Resource

ZOOKEEPER = "zookeeper:2181"
PATH = "/kafka-acl/Topic/left-by-an-old-tool"
CONTENT = '{"version":1,"acls":[{"principal":"nobody","permissionType":"Allow","operation":"Read","host":"*"}]}'
_COMMAND = re.compile(r"zookeeper-shell\.sh \S+ delete \S+")


@dataclass(slots=True)
class Planted:
    """An observer of one migration, which mends once what the rehearsal found. `said` is the finding in its words."""

    cluster: Cluster
    said: str = ""

    def plant(self) -> str:
        """Write the node; what was done, in words."""
        parents = [PATH.rsplit("/", level)[0] for level in (2, 1)]
        script = "".join(f"zookeeper-shell.sh {ZOOKEEPER} create {parent} >/dev/null 2>&1 || true; " for parent in parents)
        tools.run(self.cluster, f"{script} zookeeper-shell.sh {ZOOKEEPER} create {PATH} '{CONTENT}' 2>&1 | grep -q Created"
                                f" || zookeeper-shell.sh {ZOOKEEPER} get {PATH} | grep -q nobody")
        return f"{PATH} is planted: an ACL for a principal without a type, which no parser of ours minds"

    def __call__(self, resource: Resource, _: str) -> str | None:
        waits = resource.get("status", {}).get("waitingFor") or ()
        found = next((each for each in waits if each["gate"] == "Rehearsed" and PATH in each.get("subject", "")), None)
        command = _COMMAND.search(found.get("unblocks", "")) if found is not None else None
        if found is None or command is None or self.said:
            return None
        self.said = f"{found['reason']}: {found['message']}"
        gone = f"! zookeeper-shell.sh {ZOOKEEPER} get {PATH} 2>/dev/null | grep -q nobody"
        tools.run(self.cluster, f"{command[0]} 2>&1; {gone}")
        return f"the rehearsal named {PATH} ({found['reason']}); mended by its own command: {command[0]}"
