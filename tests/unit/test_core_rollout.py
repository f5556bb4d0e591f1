"""One rollout: the batch is recorded, its nodes are assigned, evicted by uid, proven, baked; then the next."""

from dataclasses import replace

import pytest

from made_reasons import fail, unknown, wait
from switchover.engine.effects import DeletePod, Evict, WriteNodeFiles
from switchover.engine.gate import Judge, Streak, Verdict, passed
from switchover.engine.position import NodeRecord
from switchover.engine.rollout import SETTLE_SECONDS, BatchSize, Move, Phase, roll
from unit.small_plan import BAKE, LONG_AGO, NEW, NOW, OLD, Scene, moving, rollout

CLOSED = [wait("Waiting", "not yet"), fail("Failed", "somebody must act"), unknown("NotObserved", "no answer")]
TO_NEW = rollout(NEW)


class Rolling:
    """Rolls a scene pass by pass, keeping the streaks between them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.streaks: dict[str, Streak] = {}
        self.judge: Judge[Scene] = Judge("", {}, 0.0)

    def roll(self, now: float = NOW, **verdicts: Verdict) -> Move:
        asked = replace(self.scene, verdict=lambda name: verdicts.get(name, passed()))
        self.judge = Judge(f"scope/{self.scene.position.batches_done}", self.streaks, now)
        move = roll(TO_NEW, asked, self.judge, now)
        self.streaks = dict(self.judge.next_streaks())
        self.scene = self.scene.at(move.position)
        return move

    def change(self, name: str, **changes: object) -> None:
        node = replace(self.scene.world.node(name), **changes)
        self.scene = replace(self.scene, world=self.scene.world.with_node(name, node))

    def write_files(self) -> None:
        for name, record in self.scene.position.nodes.items():
            self.change(name, file=record.assigned)

    @property
    def reasons(self) -> set[str]:
        return {item.verdict.reason for item in self.judge.judged.values() if not item.open}


def recorded(name: str = "n0", evicting: str = "u1", evictions: int = 1, **scene: object) -> Rolling:
    """A batch whose node has its pod on record to be evicted."""
    rolling = Rolling(moving(batch=(name,), **scene))  # type: ignore[arg-type]
    at = rolling.scene.position
    record = replace(at.nodes[name], evicting=evicting, evictions=evictions)
    rolling.scene = rolling.scene.at(at.with_node(name, record))
    return rolling


# --- choosing the batch -------------------------------------------------------------------------------------------------


def test_the_canary_goes_alone_and_the_last_size_repeats():
    assert Rolling(moving()).roll().position.batch.nodes == ("n0",)
    assert Rolling(moving(assigned=(NEW, OLD, OLD), done=1)).roll().position.batch.nodes == ("n1", "n2")
    sizes = (BatchSize(1, 0.0),)
    scene = moving(assigned=(NEW, NEW, OLD), done=2)
    move = roll(rollout(NEW, sizes), scene, Judge("scope", {}, NOW), NOW)
    assert move.position.batch.nodes == ("n2",)


def test_batches_count_from_one():
    assert Rolling(moving()).roll().position.batch.index == 1
    assert Rolling(moving(assigned=(NEW, OLD, OLD), done=1)).roll().position.batch.index == 2


def test_gates_before_a_batch_are_asked_about_that_very_batch():
    asked = []

    def check(scene: Scene) -> Verdict:
        asked.append(scene.position.batch.nodes)
        return passed()

    roll(replace(TO_NEW, before=(replace(TO_NEW.before[0], look=check),)), moving(), Judge("scope", {}, NOW), NOW)
    assert asked == [("n0",)]


def test_without_an_order_no_batch_is_chosen():
    rolling = Rolling(replace(moving(), unseen={"order": "no broker tells who leads what"}))
    assert rolling.roll() == Move(rolling.scene.position)
    assert rolling.reasons == {"OrderUnknown"}


def test_a_rollout_is_complete_when_every_node_is_assigned_and_no_batch_is_open():
    assert Rolling(moving(assigned=(NEW, NEW, NEW))).roll().complete
    assert not Rolling(moving(assigned=(OLD, NEW, NEW), runs=(NEW, NEW, NEW), batch=("n0",))).roll().complete


# --- assigning and replacing --------------------------------------------------------------------------------------------


def test_files_are_written_before_a_pod_is_put_on_record():
    rolling = Rolling(moving(batch=("n0",)))
    rolling.change("n0", file=OLD)
    move = rolling.roll()
    assert move.effects == (WriteNodeFiles("files", {"n0": NEW, "n1": OLD, "n2": OLD}, {}),)
    assert move.position == rolling.scene.position


def test_the_uid_is_recorded_first_and_the_pod_is_evicted_in_a_later_pass():
    rolling = Rolling(moving(batch=("n0",)))
    first = rolling.roll()
    assert first.effects == ()
    assert first.position.nodes["n0"] == NodeRecord(0, NEW, evicting="u1", evictions=1, settled=False)
    second = rolling.roll()
    assert second.effects == (Evict("n0", "u1"),)
    assert second.position == first.position


def test_a_pod_that_is_not_ready_is_deleted_since_a_budget_would_protect_it_from_its_repair():
    rolling = recorded()
    rolling.change("n0", ready=False)
    assert rolling.roll().effects == (DeletePod("n0", "u1"),)


def test_an_eviction_that_was_refused_is_tried_again():
    rolling = recorded()
    assert rolling.roll().effects == rolling.roll().effects == (Evict("n0", "u1"),)
    assert rolling.scene.position.nodes["n0"].evictions == 1


def test_another_pod_than_the_recorded_one_is_never_evicted_for_it():
    rolling = recorded(evicting="u1")
    rolling.change("n0", uid="u2", started_at=NOW - SETTLE_SECONDS - 1)
    move = rolling.roll()
    assert move.effects == ()
    assert move.position.nodes["n0"] == NodeRecord(0, NEW, evicting="u2", evictions=2, settled=False)


def test_a_node_that_came_back_in_its_assigned_mode_by_itself_is_left_alone():
    rolling = Rolling(moving(batch=("n0",), runs=(NEW, OLD, OLD)))
    rolling.roll()
    assert rolling.roll().position.batch.proven == NOW
    assert rolling.scene.position.nodes["n0"].evictions == 0


def test_nodes_of_a_batch_are_recorded_and_evicted_one_a_pass():
    rolling = Rolling(moving(assigned=(NEW, OLD, OLD), batch=("n1", "n2"), done=1))
    moves = [rolling.roll()]
    assert [rolling.scene.position.nodes[name].evictions for name in ("n1", "n2")] == [1, 0]
    moves.append(rolling.roll())
    assert moves[1].effects == (Evict("n1", "u1"),)
    rolling.change("n1", uid="", ready=False)
    rolling.roll()
    assert rolling.scene.position.nodes["n2"].evicting == "u1"
    assert rolling.roll().effects == (Evict("n2", "u1"),)


# --- a node on its way --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pod", [{"uid": "", "ready": False}, {"uid": "u2", "ready": False},
                                 {"uid": "u2", "ready": True, "runs": OLD, "started_at": NOW - SETTLE_SECONDS},
                                 {"uid": "u2", "ready": True, "runs": "", "started_at": LONG_AGO}],
                         ids=["gone", "starting", "ready a moment ago", "ready for long, and silent"])
@pytest.mark.parametrize("evictions", [1, 2])
def test_a_pod_on_its_way_is_waited_for(pod, evictions):
    rolling = recorded(evictions=evictions)
    rolling.change("n0", **pod)
    assert rolling.roll() == Move(rolling.scene.position)
    assert rolling.reasons == {"PodComingUp"}


@pytest.mark.parametrize(("pod", "words"), [
    ({"uid": "u2", "ready": False}, "container kafka ended with 143: Error"),
    ({"uid": "u1", "ready": False, "terminating": True}, "n0 is on its way into mode New")])
def test_what_keeps_a_pod_from_coming_up_is_told_and_its_end_is_not(pod, words):
    rolling = recorded()
    rolling.change("n0", trouble="container kafka ended with 143: Error", **pod)
    rolling.roll()
    assert rolling.judge.judged["Replace/n0"].verdict.message == words


@pytest.mark.parametrize(("in_trouble", "terminating", "reason", "message", "unblocks"), [
    (False, False, "PodComingUp", "n0 is on its way into mode New: pod n0 pulls an image",
     "wait until the pod starts and answers"),
    (True, False, "PodInTrouble", "pod n0 pulls an image", "find out why: kubectl describe pod n0"),
    (True, True, "PodComingUp", "n0 is on its way into mode New", "wait until the pod starts and answers")],
    ids=["in time", "too long", "ending"])
def test_how_far_a_pod_has_come_is_told(in_trouble, terminating, reason, message, unblocks):
    rolling = recorded()
    phase = Phase("pod n0 pulls an image", in_trouble, "kubectl describe pod n0")
    rolling.change("n0", uid="u2", ready=False, terminating=terminating, phase=phase)
    assert rolling.roll() == Move(rolling.scene.position)
    verdict = rolling.judge.judged["Replace/n0"].verdict
    assert (verdict.outcome, verdict.reason) == ("Wait", reason), "what takes long fails nothing: the step has a patience"
    assert (verdict.message, verdict.unblocks) == (message, unblocks)


def test_a_pod_in_the_wrong_mode_is_evicted_once_more_and_then_a_person_is_asked():
    rolling = recorded()
    rolling.change("n0", uid="u2", runs=OLD, started_at=LONG_AGO)
    assert rolling.roll().position.nodes["n0"].evictions == 2
    assert rolling.roll().effects == (Evict("n0", "u2"),)
    rolling.change("n0", uid="u3", runs=OLD, started_at=LONG_AGO)
    before = rolling.scene.position
    assert rolling.roll() == Move(before)
    assert rolling.judge.judged["Replace/n0"].verdict.outcome == "Fail"
    assert rolling.reasons == {"ModeMismatch"}


@pytest.mark.parametrize(("trouble", "end"), [
    ("", "and does not run in its assigned mode"),
    ("nobody started it", "and does not run in its assigned mode: nobody started it")])
def test_what_is_known_of_a_pod_that_stays_in_the_wrong_mode_is_told(trouble, end):
    rolling = recorded(evictions=2)
    rolling.change("n0", uid="u3", runs=OLD, started_at=LONG_AGO, trouble=trouble)
    rolling.roll()
    assert rolling.judge.judged["Replace/n0"].verdict.message.endswith(end)


def test_a_node_that_cannot_be_seen_is_neither_recorded_nor_evicted():
    for rolling in (Rolling(moving(batch=("n0",))), recorded()):
        rolling.scene = replace(rolling.scene, unseen={"n0": "the API server does not answer"})
        assert rolling.roll() == Move(rolling.scene.position)
        assert rolling.reasons == {"NodeUnknown"}


# --- proof and bake -----------------------------------------------------------------------------------------------------


def in_mode() -> Rolling:
    """The canary runs in its mode."""
    return Rolling(moving(batch=("n0",), runs=(NEW, OLD, OLD)))


def proven() -> Rolling:
    rolling = in_mode()
    rolling.roll()
    assert rolling.roll().position.batch.proven == NOW
    return rolling


@pytest.mark.parametrize("closed", CLOSED[:2], ids=lambda verdict: verdict.outcome)
def test_a_gate_that_closes_during_the_bake_starts_it_anew(closed):
    rolling = proven()
    move = rolling.roll(NOW + 4, InSync=closed)
    assert (move.position.batch.proven, move.note) == (None, "gate InSync closed: the bake of n0 begins again")
    rolling.roll(NOW + 5)
    assert rolling.roll(NOW + 6).position.batch.proven == NOW + 6
    assert rolling.roll(NOW + BAKE + 5).position.batch is not None
    assert rolling.roll(NOW + BAKE + 6).position.batch is None


def test_a_node_that_leaves_its_mode_during_the_bake_starts_it_anew():
    rolling = proven()
    rolling.change("n0", ready=False)
    assert rolling.roll(NOW + 1).position.batch.proven is None


def test_a_bake_outlives_the_operator():
    rolling = proven()
    rolling.streaks = {}
    assert rolling.roll(NOW + 2).position.batch.proven == NOW
    assert rolling.roll(NOW + BAKE).position.batch is None


def test_a_closed_gate_is_seen_even_when_the_bake_is_over():
    rolling = proven()
    late = rolling.roll(NOW + BAKE + 1, InSync=CLOSED[0]).position
    assert late.batch is not None
    assert late.batch.proven is None


def test_what_could_not_be_observed_neither_ends_a_bake_nor_starts_it_anew():
    rolling = proven()
    assert rolling.roll(NOW + 4, InSync=CLOSED[2]).position.batch.proven == NOW
    assert rolling.roll(NOW + BAKE + 1, InSync=CLOSED[2]).position.batch.proven == NOW
    assert rolling.roll(NOW + BAKE + 2).position.batch.proven == NOW, "one sample is not enough"
    assert rolling.roll(NOW + BAKE + 3).position.batch is None
