"""`switchover groups`: every group of a live cluster, and what stands in the way of its move. Nothing is written."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from switchover.answers.ask import READ_SECONDS, known
from switchover.answers.clock import Clock
from switchover.answers.errors import Refused
from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Verdict, gravest
from switchover.groups.picture import Facts
from switchover.groups.preview import Goal, of_brokers, of_group
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import Group, GroupState, GroupType, MemberProtocol, SeenGroup
from switchover.kafka.limits import EVERY_GROUP_SECONDS
from switchover.network.credentials import Access
from switchover.text.visible import printable

COLUMNS = ("GROUP", "TYPE", "PROTOCOL", "STRATEGY", "STATE", "MEMBERS", "READY", "IN THE WAY")


class Ready(StrEnum):
    """Whether a group may be moved now."""

    YES = "Yes"
    NO = "No"
    NOT_YET = "NotYet"
    UNKNOWN = "Unknown"


_READY = {Outcome.PASS: Ready.YES, Outcome.FAIL: Ready.NO, Outcome.WAIT: Ready.NOT_YET, Outcome.UNKNOWN: Ready.UNKNOWN}
_COLOURS = {Ready.YES: "green", Ready.NO: "red", Ready.NOT_YET: "yellow", Ready.UNKNOWN: "magenta"}


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group; `findings` are its own; those of the brokers count for it too."""

    seen: SeenGroup
    findings: tuple[Verdict, ...]
    ready: Ready

    @property
    def group(self) -> Group | None:
        """As its coordinator describes it; None where that is unknown."""
        return self.seen.group.value if isinstance(self.seen.group, Known) else None

    @property
    def members(self) -> int | None:
        """How many; None where that is unknown, as of a type that is not moved."""
        return len(self.group.members) if self.group is not None and self.group.type is not GroupType.OTHER else None

    @property
    def classic(self) -> int:
        """Those members that a group of the consumer protocol has of the classic one."""
        if self.group is None or self.group.type is not GroupType.CONSUMER:
            return 0
        return sum(each.protocol is MemberProtocol.CLASSIC for each in self.group.members)


@dataclass(frozen=True, slots=True)
class Look:
    """The groups by name; what the brokers themselves lack; and which brokers did not list their groups, and why."""

    servers: str
    cluster_id: str
    to: Goal
    groups: tuple[GroupRow, ...]
    brokers: tuple[Verdict, ...]
    silent: tuple[str, ...]

    @property
    def code(self) -> int:
        """The exit code: 3 where something could not be seen."""
        unseen = self.silent or any(each.outcome is Outcome.UNKNOWN for row in self.groups
                                    for each in (*self.brokers, *row.findings))
        return 3 if unseen else 0


async def look(access: Access, names: Sequence[str], to: Goal, clock: Clock) -> Look:
    """Look at these groups, or at all of the cluster. Raises Unreachable and Refused where none can be listed."""
    every, wire = WireGroups(access, seconds=EVERY_GROUP_SECONDS), WireGroups(access)
    seen = await (every.named(names, clock) if names else every.every(clock))
    cluster = await wire.cluster()
    described = await asyncio.gather(*(
        known(wire.broker(address, broker_id), READ_SECONDS, clock) for broker_id, address in cluster.brokers.items()))
    facts = Facts(brokers=dict(zip(cluster.brokers, described, strict=True)),
                  offsets_topic=await known(wire.offsets_topic(), READ_SECONDS, clock),
                  partitions=await known(wire.partitions(_topics(seen.groups)), READ_SECONDS, clock))
    found = tuple(seen.groups[name] for name in sorted(seen.groups))
    if absent := [each.name for each in found if each.name in names and each.state == GroupState.DEAD]:
        raise Refused(f"group {absent[0]} does not exist at {access.servers}")
    return judged(access.servers, cluster.cluster_id, to, found, facts, tuple(seen.silent), clock.now())


def judged(servers: str, cluster_id: str, to: Goal, found: Iterable[SeenGroup], facts: Facts, silent: tuple[str, ...],
           now: float) -> Look:
    """Each group with what stands in its way. What stops all is reported once, and counts for each."""
    brokers = of_brokers(facts, to, now)

    def row(seen: SeenGroup) -> GroupRow:
        own = of_group(seen.name, replace(facts, group=seen.group), to, now)
        return GroupRow(seen, tuple(each for each in own if each not in brokers),
                        _READY[gravest((*own, *brokers), "").outcome])

    return Look(servers, cluster_id, to, tuple(map(row, found)), brokers, silent)


def table(look: Look) -> Iterator[RenderableType]:
    """A line for each group, then what is in the way of all."""
    if not look.groups and not look.silent:
        yield Text(f"no group at {printable(look.servers)}")
    if look.groups:
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in COLUMNS:
            shown.add_column(name, no_wrap=name != COLUMNS[-1], overflow="fold",
                             justify="right" if name == "MEMBERS" else "left")
        for row in look.groups:
            members = "?" if row.members is None else f"{row.members}"
            shown.add_row(
                *(Text(printable(cell)) for cell in (
                    row.seen.name, row.seen.type or "?", *(("?", "?") if row.group is None else (
                        row.group.protocol_type or "-", row.group.assignor or "-")),
                    row.seen.state or "?", f"{members} ({row.classic} classic)" if row.classic else members)),
                Text(row.ready, _COLOURS[row.ready]), Text(printable("; ".join(_reasons(row)))))
        yield shown
    for verdict in look.brokers:
        yield Text(printable("; ".join(filter(None, (f"brokers: {verdict.message}", verdict.unblocks)))))
    for why in look.silent:
        yield Text(printable(f"its groups are missing here: {why}"), _COLOURS[Ready.UNKNOWN])


def document(look: Look) -> Mapping[str, Any]:
    """All of it as a JSON value; what is not known is null."""
    return {
        "clusterId": look.cluster_id, "to": look.to, "missing": list(look.silent),
        "brokers": {"findings": [_finding(each) for each in look.brokers]},
        "groups": [{
            "group": row.seen.name, "type": row.seen.type or None,
            "protocolType": row.group.protocol_type if row.group is not None else None,
            "assignor": row.group.assignor if row.group is not None else None,
            "state": row.seen.state or None, "members": row.members,
            "classicMembers": row.classic if row.members is not None else None, "ready": row.ready.value,
            "findings": [_finding(each) for each in row.findings]} for row in look.groups],
    }


def _reasons(row: GroupRow) -> Iterator[str]:
    yield from (each.message for each in row.findings)
    if not row.findings and row.ready is not Ready.YES:
        yield "the brokers: see below"


def _finding(verdict: Verdict) -> Mapping[str, Any]:
    return {"verdict": verdict.outcome.value, "reason": verdict.reason, "subject": verdict.subject,
            "message": verdict.message, "unblocks": verdict.unblocks}


def _topics(groups: Mapping[str, SeenGroup]) -> list[str]:
    """Those whose partitions `range` may give out together."""
    found = {topic for each in groups.values() if isinstance(each.group, Known) and each.group.value.assignor == "range"
             for member in each.group.value.members for topic in member.topics}
    return sorted(found)
