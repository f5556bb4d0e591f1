"""Every message that a gate or a rehearsal can give, on one page: golden/messages.txt, which `make messages` writes.

It is rendered from the tables that spoil healthy pictures: what they find, the page shows.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from switchover.cluster import preflight
from switchover.cluster.rehearsal.judge import Seen
from switchover.cluster.rehearsal.judge import report as judged
from switchover.engine.gate import Verdict
from switchover.groups import preflight as groups_preflight
from switchover.reasons import REASONS
from tales import assert_golden
from unit import group_gates, kraft_gates
from unit import test_coordination_gates as coordination
from unit import test_group_findings as groups
from unit import test_kraft_findings as kraft
from unit import test_kraft_preflight as kraft_preflight
from unit import test_rehearsal as rehearsal
from unit.pictures import moment

PAGE = Path(__file__).parent / "golden" / "messages.txt"
ALIKE = 4
"""Renderings that differ in so few of their words, such as a name, are one."""
ELSEWHERE = {
    "a step, a batch or an effect, not a gate; tests/stories show most of them": {
        "ApprovalVoid", "AwaitingApproval", "Baking", "EffectFailed", "EffectRefused", "LeaseNotHeld", "ModeMismatch",
        "NodeUnknown", "OrderUnknown", "Paused", "PodComingUp", "PodInTrouble", "PointOfNoReturn", "UndoNotAvailable",
        "UnknownStep", "WindowTooShort"},
    "a gate that waits for another one": {"MustHold"},
    "the object, its record or the operator itself": {
        "BeingDeleted", "Defect", "HeldUntilTheEnd", "InvalidSpec", "NoSuchStep", "RecordOfAnother", "StatusUnreadable",
        "TooMuchWork"},
    "a gate with a picture of its own: test_kraft_listener.py, simulation/test_protocol_version.py": {
        "ListenerCredentialsChanged", "OldImage"},
}
"""Reasons that are not on the page, by what gives them."""
LONGEST = 300
LONG = {
    "the commands": {
        "ImageNotAllowed", "PodChangeNotAllowed", "RecordTooLarge", "TopicIdDiffers", "TopicWithoutId", "WrongKafkaVersion"},
    "what it quotes": {"BrokersNotIdentified", "GitOpsOwned", "GitOpsOwnsIt", "ListenersSetAtRunTime"},
    "to be shortened": {
        "BrokersOutOfReach", "ControllerInTrouble", "ForeignMembers", "OffsetsInKafkaOnly", "OwnConfigurationDiffers",
        "PodsNeedZooKeeper", "RevertedByGitOps", "TrialFailed", "WorkloadUnsupported", "WouldRestart"},
}
"""Reasons of which a line may be longer, by what makes it so."""
OURS = re.compile(r"\b(told|anew|beside|cures?|kept|strangers?|let go|way back)\b")
"""Words that only this house uses so."""
STILL_OURS = 0
"""How many lines have one."""


def of_gates() -> Iterator[tuple[str, Verdict]]:
    """What each table finds, after the room that says it."""
    for room, of, first, table in (("cluster", kraft_gates, preflight, kraft.FINDINGS),
                                   ("groups", group_gates, groups_preflight, (*groups.FINDINGS, *groups.WARNINGS))):
        before = {gate.name for gate in first.GATES}
        for each in table:
            within = "preflight" if each.gate in before else "gates"
            yield f"{room}/{within}", of.GATES[each.gate].check(each.spoil(of.MOMENTS[each.gate]()))
    for spoil, gate in (*((bad.spoil, bad.gate) for bad in kraft_preflight.BAD),
                        *((spoil, gate) for _, spoil, gate, *_ in kraft_preflight.TOLD)):
        yield "cluster/preflight", kraft_preflight.check(gate, spoil(moment("Preflight")))
    for finding in coordination.FINDINGS:
        gate = coordination.gates()[finding.gate]
        yield "groups/coordination", gate.check(finding.spoil(coordination.moment(finding.moment)))


def rehearsed() -> Iterator[Seen]:
    for reached, _ in rehearsal.ENDS:
        yield from (rehearsal.planted_end(reached), rehearsal.unfound_end(reached))
    for changes, _ in rehearsal.CHANGES:
        yield Seen(rehearsal.TREE, (), replace(rehearsal.PASSED, **changes))
    yield from (rehearsal.going(fault, path) for fault, path, _ in rehearsal.GOING)


def renderings() -> Iterator[tuple[str, str, str, str]]:
    """Room, reason, message, and what to do."""
    for room, verdict in of_gates():
        for each in verdict.findings or (verdict,):
            yield room, each.reason, each.message, each.unblocks
    for seen in rehearsed():
        for found in judged(seen, {}).at("zookeeper:2181").findings:
            yield "cluster/rehearsal", found.reason, found.message, found.cure


@cache
def page() -> dict[str, dict[str, list[str]]]:
    """By room and reason, in the order of the tables, what differs in more than a name."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for room, reason, message, unblocks in renderings():
        line = f"{message} -> {unblocks}" if unblocks else message
        said, others = {*line.split()}, found[room][reason]
        if all(len(said ^ {*other.split()}) > ALIKE for other in others):
            others.append(line)
    return found


def test_what_is_said_is_what_was_read() -> None:
    lines = ["What is wrong and where -> what to do. `make messages` writes this page from the tables of findings."]
    for room, reasons in sorted(page().items()):
        lines += ["", f"# {room}"]
        for reason, said in sorted(reasons.items()):
            lines += ["", reason, *(f"  {each}" for each in said)]
    assert_golden(PAGE, "\n".join([*lines, ""]), "MESSAGES")


def test_every_reason_that_a_gate_can_give_is_on_the_page() -> None:
    shown = {reason for reasons in page().values() for reason in reasons}
    assert REASONS.keys() - shown == set().union(*ELSEWHERE.values())


def test_a_message_is_short_and_in_the_words_of_the_field() -> None:
    lines = [(reason, line) for reasons in page().values() for reason, said in reasons.items() for line in said]
    assert {reason for reason, line in lines if len(line) > LONGEST} <= set().union(*LONG.values())
    assert sum(OURS.search(line) is not None for _, line in lines) <= STILL_OURS
