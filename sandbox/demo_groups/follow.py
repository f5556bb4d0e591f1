"""One ConsumerGroupMigration from `kubectl apply` to its end, one line for each change."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from demo.cluster import Cluster
from demo.migration import MigrationFailed
from demo.watch import Watch
from demo_groups.stories import Story
from patience import Patience
from switchover.cli.display import changes, condition, is_current, wait_line
from switchover.cli.objects import status_in

SILENT_SECONDS = 420
TICK_SECONDS = 0.5


class StoryFailed(MigrationFailed):
    """The story does not come to the end that it is meant to have; the message says where it stands."""


@dataclass
class Told:
    """What was seen of one story. Times in seconds since the epoch."""

    story: Story
    start: float = 0.0
    end: float = 0.0
    resource: dict[str, Any] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=set)
    """Every reason that was ever among what it waited for."""
    approved: bool = False

    @property
    def phase(self) -> str:
        return str(self.resource.get("status", {}).get("phase", ""))

    @property
    def good(self) -> bool:
        """It ended as it was meant to, for the reason that was planted."""
        return self.phase == self.story.end and (not self.story.because or self.story.because in self.reasons)


def follow(cluster: Cluster, story: Story, say: Callable[[str], None],
           each: Callable[[Mapping[str, Any]], None] = lambda _: None) -> Told:
    """Apply it and follow it to an end; `each` gets the resource at every change. Raises StoryFailed and CommandFailed."""
    told = Told(story, start=time.time())
    name = story.manifest()["metadata"]["name"]
    say(f"{story.name}: {story.words}")
    cluster.kubectl("apply", "--filename", "-", feed=json.dumps(story.manifest()))
    with Watch(cluster, "consumergroupmigration", name) as migrations:
        silence = Patience(SILENT_SECONDS)
        while not is_over(told.resource):
            found = migrations.next(TICK_SECONDS)
            if found is not None:
                for line in changes(told.resource or None, found):
                    say(f"{story.name}: {line}")
                    silence = Patience(SILENT_SECONDS)
                told.resource = found
                told.reasons |= {item["reason"] for item in _waits(found)}
                each(found)
                _at_the_hold(cluster, told, say)
            if silence.over:
                waits = "".join(f"\n  waits for {wait_line(item)}" for item in status_in(told.resource)[0].waiting_for)
                raise StoryFailed(f"{story.name}: nothing has changed for {silence}{waits}")
    told.end = time.time()
    if not told.good:
        why = told.resource["status"].get("rollback", {}).get("failure")
        raise StoryFailed(f"{story.name} ended as {told.phase}{f' for {why}' if why else ''}, not as {story.end} "
                          f"{story.because}".rstrip())
    return told


def _at_the_hold(cluster: Cluster, told: Told, say: Callable[[str], None]) -> None:
    """Do what the story wants done behind the operator's back, and approve: once, whatever older changes still come in."""
    if told.story.before_canary is None or told.approved or condition(told.resource, "AwaitingApproval") != "True":
        return
    told.approved = True
    told.story.before_canary(cluster)
    say(f"{told.story.name}: the brokers run with another policy now; approving the canary")
    approval = {"name": "Canary", "planHash": told.resource["status"]["planHash"], "approver": cluster.user(),
                "reason": "make demo-groups"}
    cluster.kubectl("patch", "cgmig", told.resource["metadata"]["name"], "--type", "merge",
                    "--patch", json.dumps({"spec": {"approvals": [approval]}}))


def is_over(resource: Mapping[str, Any]) -> bool:
    """At either end of its plan."""
    return is_current(resource) and bool(resource["status"].get("progress", {}).get("completeTime"))


def _waits(resource: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = resource.get("status", {}).get("waitingFor", [])
    return found
