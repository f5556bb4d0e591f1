"""The pages and pictures that are made are those in docs/, and nothing of what they describe goes without words."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import batch_pictures
import member_pictures
import reference
import step_pictures
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cli import gates
from switchover.cluster.gates.replicas import check_all_in_sync
from switchover.cluster.plan import PLAN
from switchover.consumer.member.states import Table
from switchover.process.metrics import METRICS
from switchover.reasons import REASONS
from unit.group_walk import PLANS

DOCS = Path(__file__).parents[2] / "docs"


def texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_the_reasons_are_there_once_and_below_a_step_that_can_give_them() -> None:
    page = reference.reasons()
    assert [name for name in REASONS if page.count(f"| [{name}](") != 1] == []
    (finalize,) = [each for each in page.split("\n## ") if each.startswith("KafkaMigration: Finalize\n")]
    assert "[NotFinalized](../runbooks/ending.md#notfinalized)" in finalize
    assert gates.given(check_all_in_sync) >= {"OutOfSync"}


def test_the_gates_are_there_with_their_steps_and_reasons() -> None:
    page = reference.all_gates()
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == gates.names()
    assert "ReplaceWithOldConsumers" in gates.explained("Covered")
    assert "[OutOfSync](../runbooks/" in page


def test_the_pictures_are_current() -> None:
    """What fails is mended by `make pictures`."""
    found = texts(step_pictures.PICTURES)
    made = {**step_pictures.pictures(), **batch_pictures.pictures(), **member_pictures.pictures()}
    assert [name for name in {*found, *made} if found.get(name) != made.get(name)] == []


def test_the_concepts_show_each_step_of_the_plan_once_and_in_its_order() -> None:
    assert re.findall(r"\]\(pictures/(\w+)\.svg\)", (DOCS / "concepts.md").read_text()) == list(PLAN.names)


def test_the_concepts_show_the_batches_of_each_plan_of_a_group() -> None:
    shown = re.findall(r"\]\(pictures/group-([\w-]+)\.svg\)", (DOCS / "concepts.md").read_text())
    assert shown == list(batch_pictures.SPECS)


def test_the_consumers_page_shows_the_states_of_a_member() -> None:
    shown = re.findall(r"\]\(pictures/([\w-]+)\.svg\)", (DOCS / "consumer.md").read_text())
    assert shown == list(member_pictures.FILES)


# --- nothing is left out ------------------------------------------------------------------------------------------------


def paths(schema: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Every field below an object, however it is reached."""
    while schema.get("type") == "array":
        schema, prefix = schema["items"], f"{prefix}[]"
    for name, field in schema.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from paths(field, f"{prefix}.{name}")


@pytest.mark.parametrize("file", sorted((reference.ROOT / "crds").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_field_has_a_row_below_the_object_that_it_is_of(file: Path) -> None:
    schema = yaml.safe_load(file.read_text())["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]["properties"]
    sections = dict(section.split("\n", 1) for section in reference.resource(file).split("\n## ")[1:])
    wanted = [path for part in ("spec", "status") for path in paths(schema[part], part)]
    assert len(wanted) > 100
    assert [path for path in wanted
            if f"| `{path.rpartition('.')[2]}` |" not in sections.get(path.rpartition(".")[0], "")] == []


def test_every_metric_and_command_is_there() -> None:
    metrics, commands = reference.metrics(), reference.commands()
    assert [name for name in METRICS if not re.search(rf"\| `{name}(_total)?` \|", metrics)] == []
    assert {"switchover_pass_seconds", "switchover_migration_info"} <= set(re.findall(r"^\| `(\w+)`", metrics, re.MULTILINE))
    app = typer.main.get_command(reference.app)
    assert re.findall(r"^## switchover (\S+)$", commands, re.MULTILINE) == sorted(app.commands)   # type: ignore[attr-defined]


def test_what_has_no_words_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"^spec\.size has no words$"):
        list(reference.fields("spec", {"description": "x", "type": "object", "properties": {"size": {"type": "integer"}}}))
    app = typer.Typer()
    app.command(help="Known.")(lambda: None)
    app.command("mute")(lambda size: None)
    monkeypatch.setattr(reference, "app", app)
    with pytest.raises(ValueError, match=r"^switchover mute has no words$"):
        reference.commands()


def test_words_of_others_break_no_table() -> None:
    assert reference.said("a | b\n  <c> *d* [e]", "x") == r"a \| b &lt;c> \*d\* \[e\]"


# --- what the pictures say ----------------------------------------------------------------------------------------------


def test_the_pictures_follow_the_plan_to_its_end() -> None:
    scenes = {step.name: scene for step, scene in step_pictures.scenes()}
    assert scenes["EnableMigration"].brokers == (Mode.MIGRATION, Mode.MIGRATION, Mode.ZOOKEEPER)
    assert (scenes["EnableMigration"].claimed, scenes["CopyMetadata"].claimed) == (False, True)
    assert scenes["Soak"].brokers == (Mode.KRAFT, Mode.KRAFT, Mode.KRAFT)
    assert scenes["Soak"].restarted == {("controller", 0)}
    assert (scenes["Soak"].dual_write, scenes["Finalize"].dual_write) == (True, False)
    assert scenes["Finalize"].controllers == (Mode.KRAFT_CONTROLLER, Mode.KRAFT_CONTROLLER, Mode.KRAFT_CONTROLLER)
    assert scenes["ReleaseZooKeeper"].restarted == {("broker", 0), ("controller", 0)}
    assert [name for name, scene in scenes.items() if not scene.zookeeper] == ["ReleaseZooKeeper"]


def test_a_rollout_that_the_pictures_do_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {mode: words for mode, words in step_pictures.BROKERS.items() if mode != Mode.OWN_KRAFT}
    monkeypatch.setattr(step_pictures, "BROKERS", known)
    with pytest.raises(ValueError, match="a rollout to mode OwnKRaft has no picture"):
        list(step_pictures.scenes())


@pytest.mark.parametrize(("name", "plan"), [
    ("protocol", "StatefulSet"), ("protocol-bridged", "StatefulSet bridged"), ("strategy", "strategy, StatefulSet")])
def test_the_pictures_of_a_group_have_the_batches_of_a_walk_along_its_plan(
        name: str, plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_pictures, "PODS", 4)
    walk = PLANS[plan]()
    walk.wants(rollout={"steps": [{**each, "bakeSeconds": 3} for each in batch_pictures.BATCHES["steps"]]})
    walk.until()
    walked = [(each.to, sorted(int(pod) for pod in re.findall(r"orders/(\d+)", each.message)))
              for each in walk.migration.status.history if re.match(r"batch \d+: ", each.message)]
    drawn = [(f"{scene.step.name}/{scene.batch}", sorted(scene.replaced))
             for scene in batch_pictures.scenes(batch_pictures.spec_of(name)) if scene.replaced]
    assert len(walked) > 2
    assert drawn == walked


@pytest.mark.parametrize("table", [table for tables in member_pictures.FILES.values() for table in tables.values()])
def test_the_pictures_of_a_member_have_every_row_of_its_tables(table: Table[Any]) -> None:
    arrows, common = member_pictures.arrows(table)
    states = list(table)
    drawn = {(states[arrow.start], cause, states[arrow.end]) for arrow in arrows for cause in arrow.causes}
    told = {(start, cause, end) for (cause, end), starts in common.items() for start in starts}
    assert not drawn & told
    assert drawn | told == {
        (state, cause, then) for state, row in table.items() for cause, then in row.items() if then != state}


def test_arrows_of_one_lane_are_not_beside_each_other() -> None:
    arrows = [member_pictures.Arrow(start, end, ()) for start, end in ((0, 4), (1, 3), (3, 6), (2, 5), (5, 0))]
    lanes = member_pictures.lanes(arrows)
    for lane in set(lanes.values()):
        ways = sorted(sorted((arrow.start, arrow.end)) for arrow in arrows if lanes[arrow] == lane)
        assert [(one, other) for one, other in pairwise(ways) if other[0] < one[1]] == []
    assert (lanes[arrows[1]], lanes[arrows[2]]) == (0, 0), "one after the other"
