"""Every gate of a KafkaMigration: it passes on a healthy picture of its moment, and is shut when blind.

What each finds wrong is in test_kraft_findings.py; what else is to be said of one, in the file of its subject
(test_kraft_quorum.py and so on).
"""

from dataclasses import replace

import pytest

from switchover.answers.observed import Unknown
from switchover.api.status import Verdict as Outcome
from switchover.cluster.facts import Facts
from switchover.cluster.picture import Picture
from unit.each_gate import watched
from unit.kraft_gates import GATES, MOMENTS, to_b
from unit.pictures import BROKERS, with_fact, workload_of

BY_CLOCK_OR_SPEC = {
    "Soaked": "compares the clock with the record alone",
    "Retained": "compares the clock with the record alone",
    "BackupsTaken": "compares the spec with the record alone",
    "WindowsFit": "has nothing to compare while there are no windows",
    "ImageAllowed": "has nothing to compare while no image is named",
    "Addresses": "has nothing to compare while no credentials are named",
    "WithinWindow": "has nothing to compare while there are no windows",
}
"""Gates that observe nothing, so that nothing they need can be unknown."""

each_gate = pytest.mark.parametrize("name", sorted(GATES))


def test_every_gate_has_its_moment_here():
    assert MOMENTS.keys() == GATES.keys()


@each_gate
def test_a_gate_passes_on_a_healthy_picture_by_at_least_one_sample_and_no_negative_time(name):
    picture, gate = MOMENTS[name](), GATES[name]
    assert gate.check(picture).outcome is Outcome.PASS
    assert gate.samples(picture) >= 1
    assert gate.hold(picture) >= 0
    assert gate.patience is None or gate.patience(picture) > 0


@each_gate
def test_a_gate_that_sees_nothing_does_not_pass(name):
    seen = GATES[name].check(replace(MOMENTS[name](), facts=Facts()))
    assert (seen.outcome is Outcome.PASS) == (name in BY_CLOCK_OR_SPEC)


def fact_of(picture: Picture, path: str) -> object:
    outer, _, inner = path.partition(".")
    found = getattr(picture.facts, outer)
    return getattr(found, inner) if inner else found


def without_fact(picture: Picture, path: str, observed: object) -> Picture:
    outer, _, inner = path.partition(".")
    return with_fact(picture, outer, replace(picture.facts.examination, **{inner: observed}) if inner else observed)


OUTWEIGHS = "identities"
"""What pods answer outweighs host names, and is not needed where these tell all (test_identity.py)."""
FINDS_REFUSALS_ALONE = "Readable"
"""What is unknown for another reason shuts the gates that need it, not this one."""


@pytest.mark.parametrize("name", sorted(GATES.keys() - {FINDS_REFUSALS_ALONE}))
def test_a_gate_is_shut_as_soon_as_anything_it_read_is_unknown(name):
    picture = MOMENTS[name]()
    read: set[str] = set()
    examination = watched(picture.facts.examination, read, "examination.")
    GATES[name].check(replace(picture, facts=watched(replace(picture.facts, examination=examination), read)))
    assert bool(read) == (name not in BY_CLOCK_OR_SPEC)
    for fact in sorted(read - {"examination", OUTWEIGHS}):
        observed = fact_of(picture, fact)
        several = isinstance(observed, dict)
        blind = [dict.fromkeys(observed, Unknown("no answer")), {}] if several else [Unknown("no answer")]
        for unknown in blind:
            seen = GATES[name].check(without_fact(picture, fact, unknown))
            assert seen.outcome in (Outcome.UNKNOWN, Outcome.WAIT), f"{fact} unknown: {seen}"
            assert seen.message


# --- what a gate must not mind ------------------------------------------------------------------------------------------


def test_all_brokers_of_the_demo_are_in_these_pictures():
    assert set(BROKERS) == set(workload_of(to_b()).pods)
