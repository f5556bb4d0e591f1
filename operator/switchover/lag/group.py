"""From the partitions' verdicts to what one evaluation says of the group; and what must be true of it besides its lag."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from switchover.lag.samples import Bools
from switchover.lag.verdicts import Effect, Verdict, Verdicts
from switchover.shared.partition import TopicPartition as TopicPartition


@dataclass(frozen=True, slots=True)
class Group:
    """What must be true of the group besides its lag; None is what could not be observed.

    `expected`: every partition of every subscribed topic, from the topics' metadata and never from commits. `stable`: the
    group's state is Stable, or for a ZooKeeper group a consumer is registered. `generation`: generation or epoch.
    `sole_owners`: exactly one side owns each partition.
    """

    expected: frozenset[TopicPartition]
    stable: bool | None
    generation: int | None
    sole_owners: bool | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of a group at `at` (ms since the epoch), made on every poll."""

    at: int
    effect: Effect
    """Worst of the expected partitions and of what must be true besides; PASS only when all of it was seen."""
    generation: int | None
    config: str
    """Names the configuration that was judged by; another one is another gate."""
    ready: bool
    """Stable, one owner each, generation known."""
    strayed: bool
    """Some partition is not known to be within 1.5·T_ok."""
    missing: tuple[TopicPartition, ...] = ()
    """Expected, and nothing was sampled."""
    standing: frozenset[TopicPartition] = frozenset()
    """STALLED or STOPPED."""
    behind: frozenset[TopicPartition] = frozenset()
    """BEHIND."""
    growing: frozenset[TopicPartition] = frozenset()
    """Those of `behind` whose lag grows."""


def evaluate(partitions: Sequence[TopicPartition], judged: Verdicts, group: Group, at: int, config: str) -> Evaluation:
    """Put the verdicts of `partitions` (the rows of `judged`) together.

    A partition that is not expected is left out: commits for topics that nobody subscribes to any more stay for ever. An
    expected one without a row is UNKNOWN, and so is a group of which nothing is expected. Raises ValueError when the rows
    do not fit or a partition comes twice.
    """
    if len(partitions) != len(judged.verdict) or len(set(partitions)) < len(partitions):
        raise ValueError(f"{len(partitions)} partitions, {len(set(partitions))} different, {len(judged.verdict)} verdicts")
    expected = np.fromiter((each in group.expected for each in partitions), dtype=np.bool_, count=len(partitions))
    missing = tuple(sorted(group.expected.difference(partitions)))

    def named(rows: Bools) -> frozenset[TopicPartition]:
        return frozenset(partitions[row] for row in np.flatnonzero(rows & expected).tolist())

    behind = judged.verdict == Verdict.BEHIND
    preconditions = (group.stable, group.sole_owners, None if group.generation is None else True)
    effect = worst([*(Effect(code) for code in judged.effect[expected].tolist()), *map(_precondition, preconditions),
                    Effect.INCONCLUSIVE if missing or not group.expected else Effect.PASS])
    return Evaluation(
        at, effect, group.generation, config, ready=all(preconditions), strayed=bool((judged.strayed & expected).any()),
        missing=missing, standing=named((judged.verdict == Verdict.STALLED) | (judged.verdict == Verdict.STOPPED)),
        behind=named(behind), growing=named(behind & judged.growing))


def worst(effects: Iterable[Effect]) -> Effect:
    """Fail > Inconclusive > Hold > Pass."""
    return max(effects)


def _precondition(seen: bool | None) -> Effect:
    return Effect.INCONCLUSIVE if seen is None else Effect.PASS if seen else Effect.HOLD


@dataclass(frozen=True, slots=True)
class Membership:
    """A group's state as Kafka names it, and what each member (by its id) is assigned."""

    state: str
    assigned: Mapping[str, frozenset[TopicPartition]]

    @property
    def topics(self) -> frozenset[str]:
        """Those of which something is assigned: DescribeGroups gives an ordinary client no subscription."""
        return frozenset(each.topic for owned in self.assigned.values() for each in owned)

    @property
    def generation(self) -> int:
        """Stands for the generation, which no description of a classic group has: another one whenever who owns what
        has changed."""
        owners = sorted((member, sorted(owned)) for member, owned in self.assigned.items())
        return int.from_bytes(blake2b(repr(owners).encode(), digest_size=6).digest())


def group_of(membership: Membership, partitions: Mapping[str, int], committed: frozenset[str]) -> Group:
    """The group's side of an evaluation. `partitions` is how many each topic has.

    While nothing is assigned (no member, or a rebalance) the topics that it has `committed` to stand for the subscribed
    ones. Such a group never passes, so a commit opens no gate here.
    """
    assigned = Counter(each for owned in membership.assigned.values() for each in owned)
    topics = membership.topics or committed
    expected = assigned.keys() | {
        TopicPartition(topic, number) for topic in topics for number in range(partitions.get(topic, 0))}
    return Group(
        frozenset(expected),
        stable=None if membership.state == "Unknown" else membership.state == "Stable",
        generation=membership.generation,
        sole_owners=all(assigned[each] == 1 for each in expected))
