"""The tree and change lines, on statuses as the API server returns them."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo.picture import picture
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.status import NEVER_LOOKED_AT, UNSEEN
from switchover.cli.display import NOT_LOOKED_AT_AGAIN, changes, clock, seconds, tree

NOW = "2026-11-21T20:02:00Z"

MOVING: dict[str, Any] = {
    "metadata": {"name": "kafka", "namespace": "demo", "creationTimestamp": "2026-11-21T20:00:00Z"},
    "status": {
        "phase": "Running",
        "metadataState": "MigrationActive",
        "progress": {
            "step": "MoveBrokers",
            "percent": 55,
            "batch": 2,
            "batchNodes": ["kafka-1"],
            "stepStartTime": "2026-11-21T20:01:30Z",
        },
        "steps": [
            {
                "name": "Preflight",
                "startTime": "2026-11-21T20:00:00Z",
                "endTime": "2026-11-21T20:00:03Z",
                "seconds": 3,
            },
            {"name": "MoveBrokers", "startTime": "2026-11-21T20:01:30Z"},
        ],
        "nodes": [
            {"name": "kafka-0", "nodeId": 1, "assigned": Mode.KRAFT, "observed": Mode.KRAFT},
            {"name": "kafka-1", "nodeId": 2, "assigned": Mode.KRAFT, "observed": Mode.MIGRATION},
            {"name": "kafka-2", "nodeId": 3, "assigned": Mode.NONE},
        ],
        "waitingFor": [
            {
                "gate": "AllInSync",
                "verdict": "Wait",
                "reason": "BrokerNotInSync",
                "subject": "kafka-1",
                "message": "3 partitions lack it in their ISR",
                "since": "2026-11-21T20:01:50Z",
                "unblocks": "the broker catches up",
            }
        ],
        "conditions": [{"type": "RollbackAvailable", "status": "True", "reason": "Possible",
                        "lastTransitionTime": "2026-11-21T20:00:00Z"}],
    },
}


def rendered(resource: dict[str, Any], at: str = NOW) -> str:
    console = Console(width=240)
    with console.capture() as capture:
        console.print(tree(resource, seconds(at)))
    return capture.get()


def line(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


def test_the_tree_shows_done_current_and_coming_steps() -> None:
    text = rendered(MOVING)
    assert "✔ Preflight" in text
    assert "0:03" in line(text, "Preflight")
    assert "▶ MoveBrokers" in text
    assert "0:30" in line(text, "▶ MoveBrokers")
    assert "· Finalize" in text
    assert "RaiseProtocolVersion" not in text, "an optional step shows only once it is on record"
    assert "elapsed 2:00" in text


def test_the_current_step_shows_batch_nodes_and_what_it_waits_for() -> None:
    text = rendered(MOVING)
    assert "batch 2: kafka-1 (gates)" in text
    assert "Migration → KRaft" in line(text, "kafka-1  ")
    assert "→" not in line(text, "kafka-0")
    assert "kafka-2" not in text, "a node without an assigned mode is the user's own"
    assert "BrokerNotInSync kafka-1" in text
    assert "0:10" in line(text, "BrokerNotInSync")
    assert "unblocks: the broker catches up" in text


def test_a_node_whose_mode_cannot_be_read_stays_on_the_list() -> None:
    later = deepcopy(MOVING)
    later["status"]["nodes"][0]["assigned"] = "Dreaming"
    assert "KRaft → unknown" in line(rendered(later), "kafka-0")


def test_a_fresh_resource_without_status_is_a_tree_too() -> None:
    text = rendered({"metadata": {"name": "kafka", "namespace": "demo"}})
    assert "Pending" in text
    assert "· Preflight" in text
    assert "metadata unknown" in text
    assert "rollback unknown" in text


@pytest.mark.parametrize("phase", ["Stalled", "Succeeded", "RolledBack", "Terminating"])
def test_what_no_step_shows_is_said_in_the_words_of_the_summary(phase: str) -> None:
    """Of a spec that is refused, say, the steps show nothing at all."""
    after = deepcopy(MOVING)
    after["status"] |= {"phase": phase, "summary": "spec.brokers: must not be empty"}
    assert "spec.brokers: must not be empty" in rendered(after).splitlines()[1]
    assert f"phase {phase}: spec.brokers: must not be empty" in changes(MOVING, after)
    after["status"]["phase"] = "Running"
    assert "spec.brokers" not in rendered(after)


def test_what_nobody_has_looked_at_says_so() -> None:
    fresh = {"metadata": {"name": "kafka", "namespace": "demo"}, "status": dict(UNSEEN)}
    assert NEVER_LOOKED_AT in rendered(fresh)
    assert list(changes(None, fresh)) == [f"phase Pending: {NEVER_LOOKED_AT}"]


def test_a_phase_that_a_newer_release_has_is_unknown_and_not_pending() -> None:
    after = deepcopy(MOVING)
    after["status"] |= {"phase": "Asleep", "observedGeneration": 3}
    assert "Unknown" in rendered(after).splitlines()[0]
    assert NEVER_LOOKED_AT not in rendered(after)
    assert list(changes(MOVING, after)) == ["phase Unknown"]


def test_what_cannot_be_read_ends_in_no_traceback() -> None:
    """A wait without its reason, and a node that is no object."""
    after = deepcopy(MOVING)
    after["status"]["nodes"].append("kafka-3")
    del after["status"]["waitingFor"][0]["reason"]
    assert "left out, since this program cannot read it: waitingFor.0.reason: Field required; nodes.3: " in rendered(after)
    assert not list(changes(MOVING, after))


def test_a_status_of_an_earlier_spec_says_so() -> None:
    """What was asked for since, a pause say, does not show in it."""
    after = deepcopy(MOVING)
    after["metadata"]["generation"] = after["status"]["observedGeneration"] = 3
    assert NOT_LOOKED_AT_AGAIN not in rendered(after)
    after["metadata"]["generation"] = 4
    assert NOT_LOOKED_AT_AGAIN in rendered(after)


def test_the_end_leaves_no_current_step() -> None:
    done = deepcopy(MOVING)
    done["status"]["steps"][1] |= {"endTime": NOW, "seconds": 30}
    assert "▶" not in rendered(done)


def test_the_picture_loads_nothing_from_elsewhere() -> None:
    svg = picture(MOVING, seconds(NOW))
    assert "MoveBrokers" in svg
    assert "url(http" not in svg


def test_every_change_is_one_line_and_no_change_is_none() -> None:
    assert list(changes(MOVING, deepcopy(MOVING))) == []
    after = deepcopy(MOVING)
    after["status"]["waitingFor"][0]["message"] = "2 partitions lack it in their ISR"
    assert list(changes(MOVING, after)) == [], "a figure that moves is no change"
    after["status"]["nodes"][1]["observed"] = Mode.KRAFT
    after["status"]["progress"] |= {"batch": 3, "batchNodes": ["kafka-2"]}
    after["status"]["waitingFor"] = [{"gate": "AllInSync", "verdict": "Unknown", "reason": "NoAnswer"}]
    assert list(changes(MOVING, after)) == [
        "batch 3: kafka-2",
        "kafka-1 runs in mode KRaft",
        "waits for AllInSync Unknown NoAnswer",
    ]


def test_the_first_reading_tells_where_it_stands() -> None:
    lines = list(changes(None, MOVING))
    assert "phase Running" in lines
    assert "step Preflight done in 3 s" in lines
    assert "step MoveBrokers" in lines


def test_what_one_more_gate_found_is_not_told_again() -> None:
    after = deepcopy(MOVING)
    silent = {"gate": "A", "verdict": "Unknown", "reason": "ZooKeeperUnknown", "message": "silent"}
    after["status"]["waitingFor"].append(silent)
    assert list(changes(MOVING, after)) == ["waits for A Unknown ZooKeeperUnknown: silent"]
    more = deepcopy(after)
    more["status"]["waitingFor"][-1]["gate"] = "A, B"
    assert list(changes(after, more)) == []
    assert "A, B ZooKeeperUnknown" in rendered(more)


def test_the_end_of_the_way_back_is_told() -> None:
    after = deepcopy(MOVING)
    after["status"]["conditions"][0]["status"] = "False"
    assert list(changes(MOVING, after)) == ["rollback is no longer available"]


# --- what other migrations look like ------------------------------------------------------------------------------------


def recorded(kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(__file__).parent / "last_release" / f"{kind}.json").read_text())
    return found


def test_a_group_is_drawn_by_its_own_plan_with_its_slots() -> None:
    group = recorded("consumergroupmigration")
    text = rendered(group)
    assert "ConsumerGroupMigration" in text
    assert f"group {group['spec']['group']}" in text
    step = group["status"]["progress"]["step"]
    assert f"▶ {step}" in text
    assert "· HandOver" in text
    assert "Finalize" not in text
    assert all(slot["name"] in text for slot in group["status"]["slots"])


def test_modes_that_were_letters_are_drawn_and_told_by_name() -> None:
    cluster = recorded("kafkamigration")
    first, last = cluster["status"]["nodes"][0], cluster["status"]["nodes"][-1]
    assert (first["observed"], first["assigned"], last["assigned"]) == ("B", "C", "P")
    text = rendered(cluster)
    assert f"{first['name']:<20} Migration → KRaft" in text
    assert f"{last['name']:<20} MigrationController" in text
    after = deepcopy(cluster)
    after["status"]["nodes"][0]["observed"] = Mode.KRAFT
    assert list(changes(cluster, after)) == [f"{first['name']} runs in mode KRaft"]
    by_name = deepcopy(cluster)
    by_name["status"]["nodes"][0]["observed"] = Mode.MIGRATION
    assert not list(changes(cluster, by_name)), "the same mode is no news"


def test_the_slots_of_a_group_are_told_as_they_change() -> None:
    before = recorded("consumergroupmigration")
    after = deepcopy(before)
    after["status"]["slots"][0]["observed"] = "Intermediate"
    name, mode = (after["status"]["slots"][0][key] for key in ("name", "observed"))
    assert list(changes(before, after)) == [f"{name} runs as {mode}"]


def test_on_the_way_back_what_was_taken_back_is_no_longer_done() -> None:
    back = deepcopy(MOVING)
    back["status"]["progress"] = {"step": "DualWrite", "direction": "Backward"}
    back["status"]["steps"] = [
        {"name": name, "startTime": NOW, "endTime": NOW, "seconds": 1} for name in ("Preflight", "DualWrite", "MoveBrokers")]
    text = rendered(back)
    assert "✔ Preflight" in text
    assert "◀ DualWrite" in text
    assert "↶ MoveBrokers" in text
    assert "· Soak" in text
    assert [line for line in changes(MOVING, back) if "back" in line] == ["turned back"]


def test_holds_and_the_estimate_are_shown() -> None:
    held = deepcopy(MOVING) | {"spec": {"holds": ["Finalize"]}}
    held["status"]["progress"]["estimatedCompletionTime"] = "2026-11-21T22:02:05Z"
    held["status"]["rollback"] = {"available": True, "estimatedSeconds": 200}
    text = rendered(held)
    assert "hold" in line(text, "· Finalize")
    assert "hold" not in line(text, "· Soak")
    assert "ETA in 2:00:05" in text.replace("\n", " ")
    assert "rollback available, takes 3:20" in text.replace("\n", " ")


@pytest.mark.parametrize(("progress", "words"), [
    ({"step": "Preflight", "direction": "Forward"}, "nothing to roll back"),
    ({"step": "ProvisionControllers", "direction": "Forward"}, "available"),
    ({"step": "DualWrite", "direction": "Backward"}, "under way"),
    ({"step": "Preflight", "direction": "Backward", "completeTime": NOW}, "done")])
def test_a_rollback_that_restarts_nothing_takes_no_time(progress: dict[str, str], words: str) -> None:
    """It said "available, takes 0:00", in the middle of a rollback and after it, too."""
    found = deepcopy(MOVING)
    found["status"] |= {"progress": progress, "rollback": {"available": True, "estimatedSeconds": 0}}
    assert str(tree(found, seconds(NOW)).label).endswith(f"rollback {words}")


def test_a_rollback_that_nobody_asked_for_says_why_it_began() -> None:
    back = deepcopy(MOVING)
    back["status"] |= {"phase": "RollingBack", "summary": "rolling back by itself from MoveBrokers for GroupLag; …",
                       "rollback": {"failure": "GroupLag"}}
    assert "rolling back by itself from MoveBrokers for GroupLag" in rendered(back)
    del back["status"]["rollback"]
    assert "rolling back by itself" not in rendered(back)


@pytest.mark.parametrize(("duration", "words"), [(59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (90_061, "1d 1:01:01")])
def test_a_duration_is_read_at_a_glance(duration: float, words: str) -> None:
    assert clock(duration) == words


def test_of_many_nodes_those_that_have_not_arrived_are_named() -> None:
    many = deepcopy(MOVING)
    many["status"]["nodes"] = [
        {"name": f"kafka-{index}", "assigned": Mode.KRAFT, "observed": Mode.KRAFT if index < 70 else Mode.MIGRATION}
                               for index in range(100)]
    text = rendered(many)
    assert [f"kafka-{index} " in text for index in (0, 69, 70, 89, 90)] == [False, False, True, True, False]
    assert "in all 100, of which 70 have arrived" in text
