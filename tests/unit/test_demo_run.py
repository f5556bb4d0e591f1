"""Around every demo: its exit code, and a summary.json also of a story that breaks off."""

import json
import sys
from pathlib import Path

import pytest
from rich.table import Table

from demo import __main__ as forward
from demo import migration
from demo import run as demo
from demo.cluster import Cluster, CommandFailed
from demo.migration import MigrationFailed
from demo_groups import __main__ as groups
from demo_groups.follow import StoryFailed
from demo_pipeline import __main__ as pipeline
from demo_zkcc import __main__ as zkcc


class Summary:
    def __init__(self, good: bool) -> None:
        self.good = good

    def as_json(self):
        return {"result": "Succeeded" if self.good else "Failed"}

    def as_table(self):
        return Table()


@pytest.fixture
def output(tmp_path: Path, monkeypatch) -> Path:
    """Without a sandbox, and in a directory of its own."""
    monkeypatch.setattr(demo, "ROOT", tmp_path)
    monkeypatch.setattr(demo, "BUILD", tmp_path)
    monkeypatch.setattr(demo, "bring_up", lambda images: None)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "summary.json").write_text("of an earlier run")
    return tmp_path / "demo"


def found(output: Path):
    return json.loads((output / "summary.json").read_text())


@pytest.mark.parametrize(("good", "code", "result"), [(True, 0, "Succeeded"), (False, 1, "Failed")])
def test_only_a_good_summary_is_a_success(output, good, code, result):
    assert demo.run("make demo", output, lambda *_: Summary(good)) == code
    assert found(output) == {"result": result}


@pytest.mark.parametrize("error", [CommandFailed, MigrationFailed, StoryFailed, ValueError])
def test_a_story_that_breaks_off_leaves_the_reason_and_what_is_known(output, error):
    def tell(*_):
        raise error("the canary stalls")

    assert demo.run("make demo", output, tell, so_far=lambda: {"forward": "Succeeded", "result": "Succeeded"}) == 1
    assert found(output) == {"forward": "Succeeded", "result": "Failed", "reason": "the canary stalls"}


def test_what_an_earlier_run_found_does_not_outlive_an_interruption(output):
    def tell(*_):
        raise KeyboardInterrupt

    assert demo.run("make demo", output, tell) == 130
    assert not (output / "summary.json").exists()


def test_a_second_demo_of_any_kind_is_refused_while_one_runs(output, capsys):
    codes = []

    def tell(*_):
        codes.append(demo.run("make demo-groups", output.with_name("groups"), lambda *_: Summary(True)))
        return Summary(True)

    assert demo.run("make demo", output, tell) == 0
    assert codes == [2]
    assert "another one runs in this checkout" in capsys.readouterr().err
    assert not (output.with_name("groups") / "summary.json").exists()


@pytest.mark.parametrize(("story", "arguments", "directory"), [
    (forward, [], "demo"), (forward, ["--kill", "5"], "demo"), (forward, ["--rollback"], "demo-rollback"),
    (groups, [], "demo-groups"), (zkcc, [], "demo-zkcc"), (pipeline, [], "demo-pipeline"),
], ids=["demo", "demo KILL=5", "demo-rollback", "demo-groups", "demo-zkcc", "demo-pipeline"])
def test_every_demo_tells_of_a_cluster_that_does_not_answer(output, monkeypatch, capsys, story, arguments, directory):
    """The way of every command from its arguments to its first word with the cluster, and out again."""
    class Silent(Cluster):
        def kubectl(self, *arguments, **options):
            raise CommandFailed("the connection to the server was refused")

    monkeypatch.setattr(demo, "bring_up", lambda images: Silent("demo", {}))
    for name in ("OUTPUT", "ROLLBACK_OUTPUT"):
        if hasattr(story, name):
            monkeypatch.setattr(story, name, output.with_name(directory))
    monkeypatch.setattr(sys, "argv", ["demo", *arguments])
    assert story.main() == 1
    assert found(output.with_name(directory))["reason"] == "the connection to the server was refused"
    assert "FAILED: the connection to the server was refused" in capsys.readouterr().out


def asked(unblocks: str, monkeypatch) -> list[tuple[str, ...]]:
    """What is run where the migration asks for ZooKeeper's end with this."""
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(migration.world, "connections", lambda _: {"zookeeper-0": 0})
    monkeypatch.setattr(Cluster, "kubectl", lambda _, *words: ran.append(words))
    run = migration.Run(resource={"status": {"waitingFor": [{"reason": "ZooKeeperRuns", "unblocks": unblocks}]}})
    migration._stop_zookeeper(Cluster("demo", {}), run, lambda _: None)
    return ran


def test_zookeeper_is_stopped_by_the_commands_that_the_migration_names(monkeypatch):
    one, two = (f"kubectl --namespace demo scale statefulset/{name} --replicas=0" for name in ("pzoo", "zoo"))
    assert asked(f"stop ZooKeeper, and keep its volumes: {one} && {two}; then one broker", monkeypatch) == [
        ("scale", "statefulset/pzoo", "--replicas=0"), ("scale", "statefulset/zoo", "--replicas=0")]
    with pytest.raises(MigrationFailed, match="without a command that can be run"):
        asked("kubectl --namespace demo scale statefulset/NAME --replicas=0, where NAME is the StatefulSet", monkeypatch)
