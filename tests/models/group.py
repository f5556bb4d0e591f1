"""A consumer group from one protocol to the other and back, as guarded commands: what the operator, people, Kafka and chaos
may do, in any order.

What Kafka does is in docs/facts/groups.md (States and epochs, Online conversion, Upgrade alone, Refusals). Three pods, four
partitions. A place is what may be a member: 0 to 2 are the pods', the fourth is what a killed pod left until its session
ends, who goes once its successor has joined, or somebody foreign: one of these at a time. Each member gets as many
partitions, by the order of places. Who gives up what is not its own gives up all if it is classic; a classic group does not
wait for all to do so. The brokers have one policy for good, the group one coordinator. Nothing takes time, but the end of a
rollback: members that nothing is assigned to hear of it before.

The operator's steps are those of groups/plan.py without a bridge, batches of one pod, the highest first. It goes forward
again only where no pod is under way. LEFT_OUT has the other gates.
"""

from collections.abc import Iterable, Mapping

from models.guarded import Command, Guard, Model, Variable

PODS, PLACES, PARTITIONS, MORE = range(3), range(4), range(4), 3
STEPS = {"PREFLIGHT": 0, "BASELINE": 1, "CANARY": 2, "ROLLOUT": 3, "SETTLE": 4, "HANDED_OVER": 5}
CONSTANTS: Mapping[str, int] = STEPS | {
    "OLD": 0, "NEW": 1,                                                 # mode of a pod
    "OUT": 0, "CLASSIC": 1, "CONSUMER": 2,                              # member, and type of the group
    "STABLE": 0, "REBALANCING": 1, "FORGOTTEN": 2,                      # state of the group
    "NOBODY": 0, "LEAVING": 1, "GHOST": 2, "FOREIGN": 3,                # who is in the fourth place
    "FORWARD": 0, "BACK": 1,                                            # direction
}
RESTART = "The coordinator has forgotten to assign, and pod 0 is restarted."
POLICIES = ("disabled", "upgrade", "downgrade", "bidirectional")
UPGRADES, DOWNGRADES = ("upgrade", "bidirectional"), ("downgrade", "bidirectional")

KAFKA = "Kafka's own: the coordinator gives a partition to a member when who had it has given it up, or is gone"
ROLLED_BACK, ENDED = "direction == BACK and step == PREFLIGHT", "step == HANDED_OVER"
BEGUN = "BASELINE <= step < HANDED_OVER"
FORWARD, BACK = "direction == FORWARD and ", "direction == BACK and "


def every(condition: str, numbers: Iterable[int] = PODS) -> str:
    """So of every pod: `{i}` stands for its number."""
    return "(" + " and ".join(f"({condition.format(i=i)})" for i in numbers) + ")"


def some(condition: str, numbers: Iterable[int] = PODS) -> str:
    return "(" + " or ".join(f"({condition.format(i=i)})" for i in numbers) + ")"


def intended(i: int, p: int) -> str:
    """The coordinator intends the partition for this place."""
    groups = [bits for bits in range(1 << len(PLACES)) if bits >> i & 1
              and p * bits.bit_count() // len(PARTITIONS) == (bits & (1 << i) - 1).bit_count()]
    return some("present == {i}", groups) if groups else "False"


def others(i: int) -> list[int]:
    return [j for j in PLACES if j != i]


COVERED = every(some("has_{i}_{{i}} == 1", PLACES), PARTITIONS)
HAZARDS = {
    "TWO_OWNERS": "a partition has two owners, by what they themselves know",
    "OFFSETS_LOST": "a pod is on its way, and a broker without the group's last records becomes its coordinator",
    "REFUSED": "a pod that the operator brought cannot be a member, by the policy",
    "TOO_FEW": "on the way there a pod is replaced while another one is no member, though nothing has failed",
    "LAST_MEMBER": "the only pod that is a member is replaced, though nothing has failed",
    "NOT_CONVERTED": "a batch has brought consumer members, and the group is classic",
    "NOT_MOVED": "the migration has ended, and the group or a member of it has the other protocol",
    "ORPHANED": "the migration has ended, and the coordinator assigns no partition for ever",
}


class Way:
    """One migration under one policy: which protocol it goes to, and whether successors join before predecessors leave."""

    def __init__(self, to: str, policy: str, *, surge: bool = False, since_4_3: bool = True, troubles: int = 0) -> None:
        self.new, self.old = ("CONSUMER", "CLASSIC") if to == "Consumer" else ("CLASSIC", "CONSUMER")
        self.policy, self.surge, self.since_4_3, self.troubles = policy, surge, since_4_3, troubles

    def model(self) -> Model:
        return Model(self._variables(), CONSTANTS, self.guards(), HAZARDS,
                     (*self._forward(), *self._back(), *self._kafka(), *self._chaos()))

    def goes(self, *, there: bool) -> bool:
        """The policy allows that way online."""
        protocol = self.new if there else self.old
        return self.policy in (UPGRADES if protocol == "CONSUMER" else DOWNGRADES)

    def guards(self) -> Mapping[str, Guard]:
        consumers = some("in_{i} == CONSUMER", PLACES)
        members = every(f"up_{{i}} == 1 and in_{{i}} == {self._protocol('{i}')}") + " and fourth != LEAVING"
        gone = f"in_{{i}} != {self.old}"
        return {
            "MIGRATION_POLICY": Guard(str(self.goes(there=True)), "groups/preflight/brokers.py: find_policy, the way there"),
            "ONLINE_ROLLBACK": Guard(str(self.goes(there=False)), "groups/preflight/brokers.py: _one_way, unless"
                                     " spec.protocol.acceptNoOnlineRollback takes it away"),
            "PODS_ARE_MEMBERS": Guard(members, "groups/gates/membership.py: check_pods_are_members, forward"),
            "MEMBERS_AGAIN": Guard(members, "groups/gates/membership.py: check_pods_are_members, of a rollback's batches"),
            "GROUP_CONVERTED": Guard(
                f"not {some('mode_{i} == NEW and up_{i} == 1')} or ({consumers} and type == CONSUMER)"
                if self.new == "CONSUMER" else "True", "groups/gates/membership.py: check_new_members_there"),
            "NO_FOREIGN_MEMBERS": Guard("fourth != FOREIGN and fourth != GHOST",
                                        "groups/gates/membership.py: check_no_foreign_members"),
            "ALL_MOVED": Guard(every(gone, PLACES) + (" and type == CLASSIC" if self.new == "CLASSIC" else ""),
                               "groups/gates/membership.py: check_all_moved"),
            "CONVERGED": Guard("phase == STABLE", "groups/gates/convergence.py: check_converged"),
            "COVERED": Guard(COVERED, "groups/gates/convergence.py: check_covered, after a batch and in the end"),
            "COVERAGE_KEPT": Guard(COVERED, "groups/gates/convergence.py: check_covered, while anything goes on"),
            "OFFSETS_REPLICATED": Guard("behind == 0", "groups/gates/convergence.py: check_offsets_replicated"),
            **{f"GIVEN_UP_{i}": Guard(every("not ({i})", (_taken(i, p, others(i)) for p in PARTITIONS)), KAFKA)
               for i in PLACES},
        }

    def _variables(self) -> tuple[Variable, ...]:
        members = (1 << len(PODS)) - 1
        return (
            *(Variable(f"mode_{i}", 0, 1, "whose template the pod was made from") for i in PODS),
            *(Variable(f"up_{i}", 1, 1, "its process runs") for i in PODS),
            *(Variable(f"in_{i}", CONSTANTS[self.old] if i in PODS else 0, 2, "the member in this place") for i in PLACES),
            Variable("present", members, 15, "the places with a member, in bits"),
            *(Variable(f"has_{i}_{p}", int(i == p * len(PODS) // len(PARTITIONS)), 1, "the member owns the partition")
              for i in PLACES for p in PARTITIONS),
            Variable("fourth", 0, 3, "who is in the fourth place"),
            Variable("type", CONSTANTS[self.old], 2, "of the group"),
            Variable("phase", 0, 2, "of the group"),
            Variable("direction", 0, 1, "of the operator"),
            Variable("step", 0, max(STEPS.values()), "on record"),
            Variable("moving", 0, len(PODS), "1 to 3: the pod that is under way"),
            Variable("behind", 0, 1, "a replica of __consumer_offsets lacks the last records, and may lead"),
            Variable("troubles", 0, max(self.troubles, 1), "so far: crashes, stalls, foreign members, replicas behind"),
        )

    def _protocol(self, i: int | str) -> str:
        return f"({self.new} if mode_{i} == NEW else {self.old})"

    # --- members ------------------------------------------------------------------------------------------------------

    def _forgets(self, i: int) -> str:
        """With the member of a place the last one of the consumer protocol goes, and nobody assigns."""
        return str(self.policy not in DOWNGRADES and self.since_4_3) + f" and {_is_last(i)}"

    def _leaves(self, i: int) -> dict[str, str]:
        """The member of a place has gone, or its session has ended."""
        after = f"(FORGOTTEN if phase == FORGOTTEN or ({self._forgets(i)}) else REBALANCING)"
        return {"phase": f"phase if in_{i} == OUT else (STABLE if present == {1 << i} else {after})",
                "type": f"CLASSIC if {_is_last(i)} else type" if self.policy in DOWNGRADES else "type",
                "present": f"present - {1 << i} if in_{i} != OUT else present", **_is_gone(i)}

    def _moves_over(self, i: int, who: str) -> dict[str, str]:
        """The member of a pod's place is in the fourth from now on."""
        return {"fourth": f"{who} if in_{i} != OUT else fourth", f"in_{MORE}": f"in_{i} if in_{i} != OUT else in_{MORE}",
                **{f"has_{MORE}_{p}": f"has_{i}_{p} if in_{i} != OUT else has_{MORE}_{p}" for p in PARTITIONS},
                "present": f"present - {1 << i} + {1 << MORE} if in_{i} != OUT else present", **_is_gone(i)}

    def _joins(self, actor: str, who: str, i: int, when: str, then: Mapping[str, str]) -> list[Command]:
        """By either protocol, as the policy allows; who is refused is a hazard where the operator brought it."""
        found = []
        for protocol in ("CLASSIC", "CONSUMER"):
            may = "True" if self.policy in UPGRADES else "type == CONSUMER"
            if protocol == "CLASSIC":
                may = "type == CLASSIC" if self.policy == "disabled" else "True"
            kind = protocol if protocol == "CONSUMER" else "CLASSIC if present == 0 else type"
            joins = f"{when.replace('PROTOCOL', protocol)} and in_{i} == OUT and "
            found.append(Command(
                actor, f"{who} joins by the {protocol.lower()} protocol.", joins + f"(present == 0 or {may})",
                {"type": kind, "present": f"present + {1 << i}", f"in_{i}": protocol, "phase": "REBALANCING", **then}))
            if i in PODS:
                found.append(Command(actor, f"{who} is refused by the {protocol.lower()} protocol.",
                                     joins + f"not (present == 0 or {may})", {}, (), {"REFUSED": "True"}))
        return found

    # --- the operator -------------------------------------------------------------------------------------------------

    def _replaced(self, i: int, story: str, when: str, mode: str, guards: tuple[str, ...] = (), *, few: str = "False",
                  surge: bool = False) -> Command:
        """A pod goes, and its successor is on its way."""
        alone = f"in_{i} != OUT and {every('in_{i} == OUT', [j for j in PODS if j != i])}"
        gone = self._moves_over(i, "LEAVING") if surge else self._leaves(i)
        room = f" and (fourth == NOBODY or in_{i} == OUT)" if surge else ""
        return Command("operator", story, when + room, {f"mode_{i}": mode, f"up_{i}": "0", "moving": str(i + 1), **gone},
                       guards, {"TOO_FEW": f"troubles == 0 and {few}", "LAST_MEMBER": f"troubles == 0 and {alone}"})

    def _forward(self) -> list[Command]:
        healthy = ("PODS_ARE_MEMBERS", "CONVERGED", "COVERED")
        commands = [
            Command("operator", "Preflight passes, and Baseline begins.", FORWARD + "step == PREFLIGHT",
                    {"step": "BASELINE"}, ("MIGRATION_POLICY", "ONLINE_ROLLBACK", "NO_FOREIGN_MEMBERS", "PODS_ARE_MEMBERS")),
            Command("operator", "The workloads are claimed, and the canary's step begins.",
                    FORWARD + "step == BASELINE", {"step": "CANARY"}, healthy),
            Command("operator", "Every pod is moved, and the soak begins.",
                    FORWARD + f"step == ROLLOUT and moving == 0 and {every('mode_{i} == NEW')}", {"step": "SETTLE"}),
            Command("operator", "The soak has passed, and the workloads are handed over.",
                    FORWARD + "step == SETTLE", {"step": "HANDED_OVER"}, (*healthy, "ALL_MOVED", "COVERAGE_KEPT"),
                    {"NOT_MOVED": some(f"in_{{i}} == {self.old}", PLACES) + f" or type != {self.new}",
                     "ORPHANED": "phase == FORGOTTEN"}),
        ]
        for i in PODS:
            first = "step == ROLLOUT" if i < max(PODS) else "CANARY <= step <= ROLLOUT"
            commands += [
                self._replaced(
                    i, f"Pod {i} is moved.", FORWARD + f"{first} and moving == 0 and mode_{i} == OLD"
                    f" and {every('mode_{i} == NEW', range(i + 1, 3)) if i < 2 else 'True'}", "NEW",
                    ("CONVERGED", "COVERAGE_KEPT", "NO_FOREIGN_MEMBERS", "OFFSETS_REPLICATED"), surge=self.surge,
                    few=some("in_{i} == OUT", (j for j in PODS if j != i))),
                Command("operator", f"Pod {i} is moved for good.", FORWARD + f"moving == {i + 1} and mode_{i} == NEW",
                        {"moving": "0", "step": "ROLLOUT"}, (*healthy, "GROUP_CONVERTED"),
                        {"NOT_CONVERTED": f"type != {self.new}" if self.new == "CONSUMER" else "False"})]
        return [*commands, Command(
            "operator", "The canary was moved before, and the rollout begins.",
            FORWARD + "step == CANARY and moving == 0 and mode_2 == NEW", {"step": "ROLLOUT"})]

    def _back(self) -> list[Command]:
        owning = some("{i}", (f"has_{i}_{p} == 1" for i in PLACES for p in PARTITIONS))
        commands = [
            Command("person", "A person wants everything back.", FORWARD + "BASELINE <= step <= SETTLE",
                    {"direction": "BACK", "step": "ROLLOUT if step == SETTLE else step"}),
            Command("person", "A person wants it to go forward again.",
                    BACK + "moving == 0", {"direction": "FORWARD"}),
            Command("operator", "Every pod is back, and the moving is taken back.",
                    BACK + f"CANARY <= step <= ROLLOUT and moving == 0 and {every('mode_{i} == OLD')}",
                    {"step": "BASELINE"}),
            Command("operator", "The workloads are given back: everything is as before.",
                    BACK + f"step == BASELINE and moving == 0 and (phase != FORGOTTEN or not {owning})",
                    {"step": "PREFLIGHT"}, ("COVERAGE_KEPT",),
                    {"ORPHANED": "phase == FORGOTTEN"}),
            self._replaced(0, RESTART, BACK + "step == BASELINE and moving == 0 and phase == FORGOTTEN", "OLD"),
        ]
        under_way = some("moving == {i} + 1 and mode_{i} == NEW")
        for i in PODS:
            commands += [
                self._replaced(
                    i, f"Pod {i} is taken back.", BACK + f"CANARY <= step <= ROLLOUT and (moving == 0 or {under_way})"
                    f" and mode_{i} == NEW and {every('mode_{i} == OLD', range(i + 1, 3)) if i < 2 else 'True'}",
                    "OLD", surge=self.surge),
                Command("operator", f"Pod {i} is back for good.", BACK + f"moving == {i + 1} and mode_{i} == OLD",
                        {"moving": "0"}, ("MEMBERS_AGAIN",))]
        return commands

    # --- Kafka --------------------------------------------------------------------------------------------------------

    def _kafka(self) -> list[Command]:
        commands = [
            Command("coordinator", "Every member owns what is its own.", "phase == REBALANCING and " + every(
                "{i}", (f"has_{i}_{p} == (1 if {intended(i, p)} else 0)" for i in PLACES for p in PARTITIONS)),
                {"phase": "STABLE"}),
            Command("coordinator", "Who has a successor leaves.",
                    f"fourth == LEAVING and (moving == 0 or {some('moving == {i} + 1 and in_{i} != OUT')})",
                    {**self._leaves(MORE), "fourth": "NOBODY"}),
            Command("coordinator", "The session of a killed pod ends.", "fourth == GHOST",
                    {**self._leaves(MORE), "fourth": "NOBODY"}, (),
                    {"ORPHANED": f"{ROLLED_BACK} and {self._forgets(MORE)}"}),
        ]
        for i in PLACES:
            lives = "True" if i in PODS else "fourth != GHOST"
            wrong = some("{i}", (f"has_{i}_{p} == 1 and (phase == FORGOTTEN or not {intended(i, p)})" for p in PARTITIONS))
            lacks = some("{i}", (f"has_{i}_{p} == 0 and {intended(i, p)}" for p in PARTITIONS))
            others_live = [j for j in others(i) if j in PODS]
            commands += [
                Command("coordinator", f"The member in place {i} gives up what is not its own.",
                        f"phase != STABLE and {lives} and {wrong}", {
                            f"has_{i}_{p}": f"1 if in_{i} == CONSUMER and has_{i}_{p} == 1 and phase != FORGOTTEN"
                                            f" and {intended(i, p)} else 0" for p in PARTITIONS}),
                Command("coordinator", f"The member in place {i} takes its own.",
                        f"phase == REBALANCING and {lives} and {lacks}",
                        {f"has_{i}_{p}": f"1 if has_{i}_{p} == 1 or {intended(i, p)} else 0" for p in PARTITIONS},
                        (f"GIVEN_UP_{i}",),
                        {"TWO_OWNERS": some("{i}", [_taken(i, p, others_live) for p in PARTITIONS] + [
                            f"fourth != GHOST and {_taken(i, p, [MORE])}" for p in PARTITIONS if i != MORE])})]
        for i in PODS:
            commands += [
                Command("pods", f"Pod {i} comes up.", f"up_{i} == 0", {f"up_{i}": "1"}),
                *self._joins("pods", f"Pod {i}", i, f"up_{i} == 1 and {self._protocol(i)} == PROTOCOL", {})]
        return commands

    def _chaos(self) -> list[Command]:
        more = f"troubles < {self.troubles}"
        commands = [
            Command("chaos", "Another broker becomes the coordinator, and loads the group.",
                    "behind == 0 or moving != 0", {}, (), {"OFFSETS_LOST": FORWARD + "behind == 1"}),
            Command("chaos", "A replica of __consumer_offsets falls behind.", f"moving == 0 and behind == 0 and {more}",
                    {"behind": "1", "troubles": "troubles + 1"}),
            Command("chaos", "The replica catches up.", "behind == 1", {"behind": "0"}),
            *(each for each in self._joins(
                "chaos", "Somebody foreign", MORE, f"fourth == NOBODY and {self.old} == PROTOCOL and {more}",
                {"fourth": "FOREIGN", "troubles": "troubles + 1"})),
            Command("person", "The foreign member is stopped.", "fourth == FOREIGN",
                    {**self._leaves(MORE), "fourth": "NOBODY"}),
        ]
        for i in PODS:
            commands += [
                Command("chaos", f"Pod {i} is killed.",
                        f"up_{i} == 1 and {more} and (fourth == NOBODY or in_{i} == OUT)",
                        {f"up_{i}": "0", "troubles": "troubles + 1", **self._moves_over(i, "GHOST")}),
                Command("chaos", f"Pod {i} stands still until its session has ended, and knows.",
                        f"in_{i} != OUT and {more}", {"troubles": "troubles + 1", **self._leaves(i)})]
        return commands


def _is_last(i: int) -> str:
    """The member of a place is the last one of the consumer protocol, and classic ones stay."""
    return (f"(in_{i} == CONSUMER and type == CONSUMER and present != {1 << i}"
            f" and not {some('in_{i} == CONSUMER', others(i))})")


def _is_gone(i: int) -> dict[str, str]:
    return {f"in_{i}": "OUT", **{f"has_{i}_{p}": "0" for p in PARTITIONS}}


def _taken(i: int, p: int, by: list[int]) -> str:
    """A partition that is intended for a place is another's still."""
    return f"({intended(i, p)} and {some('{i}', (f'has_{j}_{p} == 1' for j in by))})"


LEFT_OUT: Mapping[str, str] = {
    **dict.fromkeys(("WithinWindow", "Soaked", "AuditClean"), "when it goes on, and not what may be wrong then"),
    **dict.fromkeys(("LagHealthy", "GoesOn", "Progressed", "Calm"), "the model has no records and no time"),
    **dict.fromkeys(("WorkloadsAreOurs", "WorkloadsClaimed", "AutoscalersPaused", "WorkloadsReleased", "Workloads"),
                    "nobody else changes the workloads of the model"),
    "OneCoordinator": "the group has one coordinator: under two, members own the same partitions whoever moves a pod",
    "CoordinatorCapacity": "no limit is reached with three pods",
    "NewPodsJoin": "who is refused is a hazard at once, and not a minute later",
    **dict.fromkeys(("PlainAssignments", "ProtocolReady"), "members have no user data, and brokers serve both protocols"),
}
"""Gate -> why the model does without it."""
