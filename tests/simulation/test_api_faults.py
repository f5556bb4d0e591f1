"""The API server answers 429 or 5xx, late or not at all, for each verb, before a write took effect and after it."""

import random
from collections.abc import Callable
from functools import partial

import pytest

import samples
from fakes.incarnation import APPLIED, BEFORE, LATE, Fault
from simulation.migration_world import MigrationWorld
from simulation.moments import before_finalize, reference, to_step, until_step
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.kubernetes.client.api_server import SECONDS_PER_CALL

READS, WRITES = ("get", "list"), ("create", "patch", "status", "update", "delete", "evict", "lease", "event")
KINDS = {
    "too many requests": Fault(code=429), "internal error": Fault(code=500), "unavailable": Fault(code=503, seconds=1.0),
    "slow": Fault(seconds=0.8 * SECONDS_PER_CALL, comes=True), "silent": Fault(seconds=3 * SECONDS_PER_CALL),
    "reset": Fault(),
}
FAULTS = {(kind, moment): Fault(moment, fault.code, fault.seconds, fault.comes)
          for kind, fault in KINDS.items() for moment in (BEFORE, APPLIED, LATE) if moment == BEFORE or not fault.comes}
OF_READS = {of: fault for of, fault in FAULTS.items() if of[1] == BEFORE}


CALM, STORM = 45.0, 15.0
SHARE = 0.4
"""Seconds of calm and of storm, by turns; and how many of the requests fail in a storm."""
LASTS = 100.0
HEARTBEAT, SILENCE = "O9", "L1"
"""The rule that nothing is written twice but the heartbeat: one whose answer is lost is written again. And the rule that a
step which stands says why: no status does, while none can be written."""
WHEN: dict[str, Callable[[MigrationWorld], None]] = {
    "as it begins": lambda world: None,
    "controllers come": lambda world: to_step(world, "ProvisionControllers"),
    "brokers move": lambda world: until_step(world, "MoveBrokers", 1),
    "it goes back": lambda world: until_step(world, "MoveBrokers", 1),
    "before Finalize": before_finalize,
}
CASES = [(verb, *of, when) for when in WHEN for verb in (*READS, *WRITES) for of in (OF_READS if verb in READS else FAULTS)]


def storms(world: MigrationWorld, seed: int) -> Callable[[str, str], Fault | None]:
    """Storms that come and go, in which requests fail in any way."""
    chance = random.Random(seed)

    def fault(verb: str, path: str) -> Fault | None:
        if world.timeline.now() % (CALM + STORM) < CALM or chance.random() > SHARE:
            return None
        return chance.choice(list((OF_READS if verb in READS else FAULTS).values()))

    return fault


def seconds_without_pass(world: MigrationWorld) -> float:
    """As Prometheus is told."""
    found = world.metrics[0].get_sample_value("switchover_oldest_pass_age_seconds", {"kind": "KafkaMigration"})
    return (found or 0.0) - world.timeline.began


def persists(verb: str, kind: str, moment: str, when: str, *, whole: bool = True) -> None:
    """Each request of a verb fails for LASTS seconds, or longer until the first is given up. What fails is named while it
    lasts, and then it goes on."""
    with pytest.MonkeyPatch.context() as patch:
        world = MigrationWorld(patch)
        WHEN[when](world)
        if when == "it goes back":
            world.want("RolledBack")
        world.jury.excused |= {HEARTBEAT, *((SILENCE,) if verb == "status" else ())}
        begin, met, named = world.timeline.now(), list[float](), list[float]()

        def fault(asked: str, path: str) -> Fault | None:
            if asked != verb:
                return None
            met.append(world.timeline.now())
            return FAULTS[kind, moment]

        def over() -> bool:
            if "the API server" in str(world.status.get("waitingFor")) or seconds_without_pass(world) > LASTS / 2:
                named.append(world.timeline.now())
            return world.timeline.now() > max(begin + LASTS, met[0] + 2 * SECONDS_PER_CALL if met else 0.0)

        assert world.live(world.approved_and(over), fault=fault)
        logged = [line for _, line in world.story if "the API server" in line]
        silent = verb == "event" or FAULTS[kind, moment].comes
        assert silent or not met or named or logged, f"{len(met)} requests failed, and nobody is told"
        if when == "it goes back":
            assert world.live(lambda: world.phase == "RolledBack")
            assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}
        else:
            world.goes_on(whole)
            assert not whole or world.end_state() == reference()[0]


def test_storms_there(world: MigrationWorld) -> None:
    world.jury.excused.add(HEARTBEAT)
    assert world.run_to_the_end(fault=storms(world, samples.SAMPLE), limit=6000)
    assert world.end_state() == reference()[0], f"SAMPLE={samples.SAMPLE}"


def test_storms_back(world: MigrationWorld) -> None:
    before_finalize(world)
    world.jury.excused.add(HEARTBEAT)
    assert world.roll_back(fault=storms(world, samples.SAMPLE), limit=6000)
    assert {node.mode for node in world.kafka.nodes.values()} == {Mode.ZOOKEEPER}, f"SAMPLE={samples.SAMPLE}"


def test_one_verb_fails_for_a_while(counted: Callable[[str], None]) -> None:
    samples.each(2, CASES, "faults that last", partial(persists, whole=False), counted)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("when", WHEN)
def test_each_verb_fails_for_a_while_in_each_way(counted: Callable[[str], None], when: str) -> None:
    cases = [case for case in CASES if case[-1] == when]
    samples.each(len(cases), cases, "faults that last", persists, counted)
