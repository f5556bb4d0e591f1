"""The commands of the person on call against a real API server, on objects whose statuses an operator has written."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from apiserver.terminal import CTRL_C, Terminal, terminal
from patience import stretched, until
from switchover.answers.clock import WallClock
from switchover.cli import acts_written, doctor, objects
from switchover.cli.command import Place
from switchover.cli.main import app
from switchover.cli.objects import CONSUMER_GROUP_MIGRATION, KAFKA_MIGRATION, KINDS
from switchover.engine.intent import RETRY
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.migrations import KubernetesMigrations

Kubectl = Callable[..., Any]
Run = Callable[..., tuple[int, str, str]]

RECORDED = Path(__file__).parents[1] / "unit" / "last_release"
PROGRAM = Path(sys.executable).parent / "switchover"
HIDDEN_CURSOR, SHOWN_CURSOR, ONE_LINE_UP = "\x1b[?25l", "\x1b[?25h", "\x1b[1A"
EVIL = "\x1b[2Jkafka\u202egnp\n"


def recorded(kind: Any) -> dict[str, Any]:
    """An object in the middle of a batch, as the operator has written it."""
    found: dict[str, Any] = json.loads((RECORDED / f"{kind.name.lower()}.json").read_text())
    for each in found["spec"].get("brokers", ()):
        each.pop("configuration", None)                                     # a field of that release
    return found


@pytest.fixture
def run(kubeconfig: Path, namespace: str) -> Run:
    """A command in the test's namespace: its exit code, what it prints, and what it says of errors."""
    def command(*arguments: str, where: tuple[str, ...] = ("-n", namespace), env: dict[str, str] | None = None,
                ) -> tuple[int, str, str]:
        environment = {"KUBECONFIG": str(kubeconfig), "COLUMNS": "250"} | (env or {})
        answer = CliRunner().invoke(app, [*arguments, *where], env=environment)
        assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
        return answer.exit_code, answer.stdout, answer.stderr

    return command


@pytest.fixture
def apart(kubeconfig: Path, namespace: str) -> Run:
    """The same as a process of its own: several may run at once."""
    def command(*arguments: str) -> tuple[int, str, str]:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "COLUMNS": "250"}
        done = subprocess.run([PROGRAM, *arguments, "-n", namespace], env=environment, capture_output=True, text=True,
                              timeout=stretched(60))
        return done.returncode, done.stdout, done.stderr

    return command


@pytest.fixture
def change(server: ApiServer) -> Callable[..., None]:
    """Writes a status as the operator does: over the one that there is."""
    async def write(kind: Any, name: str, status: dict[str, Any]) -> None:
        migrations = KubernetesMigrations(server, WallClock(), kind.name, kind.plural)
        found = await migrations.get(name)
        assert found is not None
        metadata = found["metadata"]
        told = {"observedGeneration": metadata["generation"], "uid": metadata["uid"]}
        await migrations.record(name, metadata["uid"], metadata["resourceVersion"], {**status, **told})

    return write                                                              # type: ignore[return-value]


@pytest.fixture
async def world(crds: object, apply: Callable[..., None], change: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    """One object of each kind, in the middle of a batch."""
    statuses: dict[str, dict[str, Any]] = {}
    for kind, name in ((KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")):
        found = recorded(kind)
        spec = {key: value for key, value in found["spec"].items() if key != "approvals"}
        apply({"apiVersion": "switchover.dev/v1alpha1", "kind": kind.name, "metadata": {"name": name}, "spec": spec})
        await change(kind, name, found["status"])
        statuses[name] = found["status"]
    return statuses


async def spec_of(server: ApiServer, kind: Any, name: str) -> dict[str, Any]:
    found = await KubernetesMigrations(server, WallClock(), kind.name, kind.plural).get(name)
    assert found is not None
    spec: dict[str, Any] = found["spec"]
    return spec


# --- looking ------------------------------------------------------------------------------------------------------------


async def test_both_kinds_are_listed_and_drawn(world: dict[str, dict[str, Any]], run: Run, namespace: str) -> None:
    code, table, _ = await asyncio.to_thread(run, "list")
    assert code == 0
    assert [line.split()[0] for line in table.splitlines()] == ["NAME", "cgmig/orders", "kmig/kafka"]
    for name, status in world.items():
        step = status["progress"]["step"]
        code, text, _ = await asyncio.to_thread(run, "status", name)
        assert (code, f"{namespace}/{name}" in text, f"▶ {step}" in text) == (0, True, True), text
        code, text, _ = await asyncio.to_thread(run, "status", name, "-o", "json")
        found = json.loads(text)
        assert (found["status"]["progress"]["step"], "managedFields" in found["metadata"]) == (step, False)
        code, text, _ = await asyncio.to_thread(run, "status", name, "-o", "yaml")
        assert yaml.safe_load(text) == found
    code, everywhere, _ = await asyncio.to_thread(run, "list", "-A", where=())
    assert namespace in everywhere


async def test_what_others_have_named_does_nothing_to_a_terminal(
        world: dict[str, dict[str, Any]], run: Run, change: Callable[..., Any]) -> None:
    status = deepcopy(world["kafka"])
    status["waitingForSummary"] = EVIL
    status["waitingFor"] = [{"gate": "G", "verdict": "Wait", "reason": "R", "subject": EVIL, "message": EVIL}]
    await change(KAFKA_MIGRATION, "kafka", status)
    for arguments in (("list",), ("status", "kafka"), ("status", "kafka", "-o", "json"), ("status", "kafka", "-o", "yaml")):
        code, text, _ = await asyncio.to_thread(run, *arguments)
        assert code == 0
        assert not {"\x1b", "\u202e"} & {*text}, arguments
        assert "202egnp" in text.replace("E", "e")


async def test_waiting_says_what_changes_and_ends_where_it_is_to(
        world: dict[str, dict[str, Any]], run: Run, change: Callable[..., Any]) -> None:
    code, text, why = await asyncio.to_thread(run, "wait", "kafka", "--timeout", "1s")
    assert (code, "kmig/kafka has not come to Succeeded within 1s: " in why, "step MoveBrokers" in text) == (3, True, True)
    waiting = asyncio.create_task(asyncio.to_thread(run, "wait", "kafka", "--for", "Hold", "--timeout", "60s"))
    await asyncio.sleep(1)
    held = {"type": "AwaitingApproval", "status": "True", "reason": "AwaitingApproval",
            "lastTransitionTime": "2026-11-27T00:00:00Z", "message": ""}
    status = world["kafka"] | {"phase": "AwaitingApproval", "conditions": [held]}
    await change(KAFKA_MIGRATION, "kafka", status)
    code, text, why = await waiting
    assert (code, "phase AwaitingApproval" in text) == (0, True), why
    await change(KAFKA_MIGRATION, "kafka", world["kafka"] | {"phase": "RolledBack"})
    code, _, why = await asyncio.to_thread(run, "wait", "kmig/kafka")
    assert (code, why) == (1, "switchover: kmig/kafka has ended as RolledBack and not as Succeeded\n")


# --- acting -------------------------------------------------------------------------------------------------------------


async def test_an_approval_drops_no_other_one(
        world: dict[str, dict[str, Any]], run: Run, server: ApiServer) -> None:
    code, text, why = await asyncio.to_thread(run, "approve", "kafka", "Finalize", "--reason", "CHG-1", "--yes")
    assert code == 0, why
    assert "Finalize is the point of no return" in text
    assert text.endswith("Finalize of kmig/kafka is approved\n")
    code, text, _ = await asyncio.to_thread(run, "approve", "kafka", "HandOver", "-y")
    (first, second) = (await spec_of(server, KAFKA_MIGRATION, "kafka"))["approvals"]
    assert (first["name"], first["reason"], second["name"]) == ("Finalize", "CHG-1", "HandOver")
    assert first["planHash"] == second["planHash"] == world["kafka"]["planHash"]
    assert first["approver"] != ""
    code, text, _ = await asyncio.to_thread(run, "approve", "kafka", "Finalize", "-y")
    assert (code, f"was approved by {first['approver']} already" in text) == (0, True)


async def test_of_two_who_approve_at_once_none_is_lost(
        world: dict[str, dict[str, Any]], server: ApiServer, kubeconfig: Path, namespace: str) -> None:
    """All have read the same object before the first one writes."""
    place, everybody = Place(namespace, "", str(kubeconfig)), ("Finalize", "HandOver", "Soak", "ReleaseZooKeeper")
    told = await asyncio.gather(*(
        acts_written.approve(place, "kafka", step, "", "alice", "m", lambda _: None) for step in everybody))
    assert all(line.endswith("is approved") for line in told)
    spec = await spec_of(server, KAFKA_MIGRATION, "kafka")
    assert {each["name"] for each in spec["approvals"]} == {*everybody}


async def test_a_plan_that_changes_before_it_is_written_is_not_approved(
        world: dict[str, dict[str, Any]], kubeconfig: Path, namespace: str, change: Callable[..., Any],
        server: ApiServer) -> None:
    place = Place(namespace, "", str(kubeconfig))
    loop = asyncio.get_running_loop()

    def meanwhile(_: Any) -> None:
        changed = change(KAFKA_MIGRATION, "kafka", world["kafka"] | {"planHash": "0" * 32})
        asyncio.run_coroutine_threadsafe(changed, loop).result(30)

    def approving() -> str:
        return asyncio.run(acts_written.approve(place, "kafka", "Finalize", "", "alice", "m", meanwhile))

    with pytest.raises(Exception, match="the plan of kmig/kafka has changed since it was shown"):
        await asyncio.to_thread(approving)
    assert not (await spec_of(server, KAFKA_MIGRATION, "kafka")).get("approvals")


@pytest.mark.parametrize(("kind", "name"), [(KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")],
                         ids=lambda each: getattr(each, "short", each))
async def test_pause_resume_and_rollback_change_what_is_wanted(
        kind: Any, name: str, world: dict[str, dict[str, Any]], run: Run, server: ApiServer) -> None:
    for act, wanted in (("pause", "Paused"), ("resume", "Running"), ("rollback", "RolledBack")):
        code, _, why = await asyncio.to_thread(run, act, name)
        assert (code, why) == (
            2, "switchover: nothing was done: standard input is no terminal, so nobody can be asked; add --yes\n")
        code, text, _ = await asyncio.to_thread(run, act, name, "--yes")
        assert (code, text.splitlines()[-1]) == (0, f"{kind.short}/{name} now wants {wanted}")
        assert (await spec_of(server, kind, name))["desiredState"] == wanted


@pytest.mark.parametrize(("kind", "name"), [(KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")],
                         ids=lambda each: getattr(each, "short", each))
async def test_what_rolled_back_by_itself_is_begun_again_by_one_command(
        kind: Any, name: str, world: dict[str, dict[str, Any]], run: Run, server: ApiServer,
        change: Callable[..., Any], namespace: str) -> None:
    rollback = {"available": True, "failure": "GroupLag", "failureStep": "Canary", "failureGate": "LagHealthy"}
    await change(kind, name, {**world[name], "phase": "RolledBack", "attempt": 2, "rollback": rollback, "progress": {
        "step": "Preflight", "direction": "Backward", "completeTime": "2026-11-29T10:00:00Z"}})
    code, _, why = await asyncio.to_thread(run, "resume", name, "--yes")
    assert code == 2
    assert "has rolled back automatically from Canary because of GroupLag" in why
    assert why.endswith(f"switchover retry {kind.short}/{name} --namespace {namespace} begins attempt 3\n")
    code, text, _ = await asyncio.to_thread(run, "retry", name, "--yes")
    assert (code, text.splitlines()[-1]) == (0, f"{kind.short}/{name} begins attempt 3")
    found = await KubernetesMigrations(server, WallClock(), kind.name, kind.plural).get(name)
    assert found is not None
    assert found["metadata"]["annotations"][RETRY] == f"{found['metadata']['uid']}/2"
    code, _, why = await asyncio.to_thread(run, "retry", name, "--yes")
    assert (code, "attempt 3 begins by itself after that" in why) == (2, True)


async def test_an_act_says_when_no_operator_or_another_release_will_do_it(
        world: dict[str, dict[str, Any]], run: Run, server: ApiServer, apply: Callable[..., None], kubectl: Kubectl,
        kubeconfig: Path, namespace: str, tmp_path: Path) -> None:
    """It is recorded all the same: an operator that comes back must find that it is to stand still."""
    absent = f"no operator is seen in namespace {namespace}: your request is recorded, and nothing happens until one runs"
    code, text, _ = await asyncio.to_thread(run, "pause", "kafka", "--yes")
    assert (code, absent in text) == (0, True), text
    assert (await spec_of(server, KAFKA_MIGRATION, "kafka"))["desiredState"] == "Paused"
    code, text, _ = await asyncio.to_thread(run, "approve", "kafka", "Finalize", "--yes")
    assert (code, absent in text) == (0, True), text

    labels = {"app.kubernetes.io/name": "switchover", "app.kubernetes.io/version": "0.0.9"}
    metadata = {"name": "switchover", "labels": labels}
    pod = {"containers": [{"name": "operator", "image": "registry.example/operator:0.0.9"}]}
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
          {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
              "selector": {"matchLabels": {"of": "it"}},
              "template": {"metadata": {"labels": {"of": "it"}}, "spec": pod}, "replicas": 0}})
    code, text, _ = await asyncio.to_thread(run, "resume", "kafka", "--yes")
    assert (code, "the operator's pod switchover is Pending: your request is recorded" in text) == (0, True), text
    kubectl("-n", namespace, "patch", "pod", "switchover", "--subresource", "status",
            "--patch", '{"status": {"phase": "Running"}}')
    code, text, _ = await asyncio.to_thread(run, "pause", "kafka", "--yes")
    assert (code, "is recorded, and nothing happens" in text) == (0, False), text
    assert f"the operator is release 0.0.9 and this program {version('switchover')}: your request is recorded" in text

    nobody = await asyncio.to_thread(without_rights, kubeconfig, kubectl, namespace, tmp_path)
    kubectl("-n", namespace, "create", "role", "writer", "--verb", "list,get,patch", "--resource",
            "kafkamigrations.switchover.dev,consumergroupmigrations.switchover.dev")
    kubectl("-n", namespace, "create", "rolebinding", "writer", "--role", "writer",
            "--serviceaccount", f"{namespace}:nobody")
    code, text, why = await asyncio.to_thread(run, "resume", "kafka", "--yes", "--kubeconfig", str(nobody))
    assert (code, "whether an operator runs cannot be seen: the API server forbids" in text) == (0, True), text + why


async def test_what_is_abandoned_is_marked_and_deleted(
        world: dict[str, dict[str, Any]], run: Run, server: ApiServer) -> None:
    code, text, why = await asyncio.to_thread(run, "abandon", "orders", "-y")
    assert (code, "cgmig/orders is deleted, and its operator released it" in text) == (0, True), why
    code, _, why = await asyncio.to_thread(run, "status", "orders")
    assert (code, "there is no migration orders" in why) == (2, True)


async def test_events_of_the_object_alone_are_printed(
        world: dict[str, dict[str, Any]], run: Run, server: ApiServer) -> None:
    for kind, name in ((KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")):
        migrations = KubernetesMigrations(server, WallClock(), kind.name, kind.plural)
        found = await migrations.get(name)
        assert found is not None
        await migrations.announce(name, found["metadata"]["uid"], "Moved", f"{name} moved\nby {EVIL}", warning=False)
    code, text, _ = await asyncio.to_thread(run, "events", "kafka")
    assert (code, len(text.splitlines()), "Moved: kafka moved\\nby" in text) == (0, 1, True), text


async def test_a_report_is_of_the_object_with_its_events_and_says_what_it_may_not_read(
        world: dict[str, dict[str, Any]], run: Run, server: ApiServer, kubeconfig: Path, kubectl: Kubectl, namespace: str,
        tmp_path: Path) -> None:
    for kind, name in ((KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")):
        migrations = KubernetesMigrations(server, WallClock(), kind.name, kind.plural)
        found = await migrations.get(name)
        assert found is not None
        await migrations.announce(name, found["metadata"]["uid"], "Moved", f"<b>moved</b> {EVIL}", warning=False)
        page, told = tmp_path / f"{name}.html", tmp_path / f"{name}.json"
        assert await asyncio.to_thread(run, "report", name, "-o", str(page)) == (0, f"wrote {page}\n", "")
        assert (await asyncio.to_thread(run, "report", name, "-o", str(told)))[0] == 0
        report = json.loads(told.read_text())
        assert [each["message"] for each in report["events"]] == ["<b>moved</b> \\x1b[2Jkafka\\u202egnp\\n"]
        assert report["stages"][-1]["step"] == world[name]["progress"]["step"] in page.read_text()
        assert "&lt;b&gt;moved&lt;/b&gt;" in page.read_text()
    code, text, _ = await asyncio.to_thread(run, "report", "kmig/kafka", "--format", "md")
    assert (code, text.splitlines()[0]) == (0, f"# KafkaMigration {namespace}/kafka: Running")
    nobody = without_rights(kubeconfig, kubectl, namespace, tmp_path)
    kubectl("-n", namespace, "create", "role", "sees", "--verb=list", "--resource=kafkamigrations.switchover.dev")
    kubectl("-n", namespace, "create", "rolebinding", "sees", "--role=sees", f"--serviceaccount={namespace}:nobody")
    code, text, _ = await asyncio.to_thread(run, "report", "kmig/kafka", "--format", "json", "--kubeconfig", str(nobody))
    assert code == 0
    assert [note for note in json.loads(text)["notes"] if note.startswith("Events could not be read: ")], text
    why = one_line(await asyncio.to_thread(run, "report", "kafka", "-o", str(tmp_path / "report.pdf")))
    assert "its ending is none of .html, .json, .md; say --format" in why


# --- refusals -----------------------------------------------------------------------------------------------------------


def without_rights(kubeconfig: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig of an account that may do nothing."""
    kubectl("-n", namespace, "create", "serviceaccount", "nobody")
    token = kubectl("-n", namespace, "create", "token", "nobody").stdout.strip()
    settings = yaml.safe_load(kubeconfig.read_text())
    settings["users"] = [{"name": user["name"], "user": {"token": token}} for user in settings["users"]]
    path = tmp_path / "nobody"
    path.write_text(yaml.safe_dump(settings))
    return path


def one_line(answer: tuple[int, str, str]) -> str:
    code, out, why = answer
    assert (code, out, why.count("\n")) == (2, "", 1), answer
    return why


def test_every_refusal_is_one_line_and_exit_code_2(
        crds: object, run: Run, kubeconfig: Path, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    nowhere = yaml.safe_load(kubeconfig.read_text())
    nowhere["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    silent, broken = tmp_path / "silent", tmp_path / "broken"
    silent.write_text(yaml.safe_dump(nowhere))
    broken.write_text("contexts: 7\n")
    assert "there is no migration kafka in namespace" in one_line(run("status", "kafka"))
    assert "has no context elsewhere; it has " in one_line(run("list", "--context", "elsewhere"))
    assert "the kubeconfig /nowhere does not exist" in one_line(run("list", "--kubeconfig", "/nowhere"))
    assert "cannot read the API server's address" in one_line(run("list", "--kubeconfig", str(broken)))
    why = one_line(run("list", "--kubeconfig", str(silent)))
    assert "https://127.0.0.1:1 cannot be reached: Connection refused; does `kubectl cluster-info`" in why
    assert "there is no kubeconfig" in one_line(run("list", env={"KUBECONFIG": "", "HOME": str(tmp_path)}))
    nobody = without_rights(kubeconfig, kubectl, namespace, tmp_path)
    why = one_line(run("status", "kafka", "--kubeconfig", str(nobody)))
    assert f'cannot list resource "kafkamigrations" in API group "switchover.dev" in the namespace "{namespace}"' in why
    assert "--for Elsewhere is none of Succeeded, Hold, RolledBack" in one_line(run("wait", "kafka", "--for", "Elsewhere"))


def test_a_cluster_without_the_crds_is_told_as_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a group that this API server does not serve: without our CRDs every test of the layer would be without."""
    for module in (objects, doctor):
        monkeypatch.setattr(module, "GROUP", "absent.dev")
        monkeypatch.setattr(module, "API_VERSION", "absent.dev/v1alpha1")
    words = "Switchover's CRDs are not installed on https://"
    assert words in one_line(run("list"))
    code, text, _ = run("doctor")
    assert (code, f"BAD CRDs: {words}" in text) == (1, True)


async def test_doctor_tells_what_is_there_and_what_is_not(
        world: dict[str, dict[str, Any]], run: Run, kubeconfig: Path, kubectl: Kubectl, namespace: str,
        tmp_path: Path) -> None:
    def published() -> bool:
        return run("doctor")[1].count("has every field that this program knows") == 2

    await asyncio.to_thread(until, published, "the API server publishes the schemas", 60)
    code, text, _ = await asyncio.to_thread(run, "doctor")
    lines = text.splitlines()
    assert code == 1, "there is no operator"
    nobody = ("nor one elsewhere that serves it: nothing moves until the chart is installed here, or names this namespace "
              "in watch.namespaces")
    assert f"BAD operator: none in namespace {namespace}, {nobody}" in lines
    for kind in KINDS:
        assert f"ok  CRD {kind.name}: has every field that this program knows" in lines
    assert "ok  rights: all that the commands need" in lines
    assert "ok  migrations: 2, each with a status of its present spec" in lines
    nobody = await asyncio.to_thread(without_rights, kubeconfig, kubectl, namespace, tmp_path)
    code, text, _ = await asyncio.to_thread(run, "doctor", "--kubeconfig", str(nobody))
    assert "?   rights: you may not get kafkamigrations.switchover.dev, " in text
    assert "?   operator: the API server forbids get or list on deployments" in text
    code, _, why = await asyncio.to_thread(run, "logs", "kafka")
    assert (code, "no operator runs in namespace" in why) == (2, True)


# --- completion ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(each, marks=pytest.mark.long) for each in ("zsh", "fish"))])
async def test_the_names_that_exist_are_completed(
        shell: str, world: dict[str, dict[str, Any]], kubeconfig: Path, namespace: str) -> None:
    def completed(line: str) -> str:
        words = {"bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}}.get(
            shell, {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"})
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "_SWITCHOVER_COMPLETE": f"complete_{shell}", **words}
        done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True, timeout=stretched(30))
        assert done.stderr == ""
        return done.stdout

    assert "kmig/kafka" in await asyncio.to_thread(completed, f"switchover status -n {namespace} km")
    assert "Finalize" in await asyncio.to_thread(completed, f"switchover approve -n {namespace} kafka Fin")
    assert "kmig" not in await asyncio.to_thread(completed, "switchover status --kubeconfig /nowhere km")


# --- looking ahead ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "name"), [(KAFKA_MIGRATION, "kafka"), (CONSUMER_GROUP_MIGRATION, "orders")],
                         ids=lambda each: getattr(each, "short", each))
async def test_where_nothing_answers_preflight_and_plan_say_so_and_blame_nobody(
        kind: Any, name: str, world: dict[str, dict[str, Any]], apart: Run, tmp_path: Path) -> None:
    """At once: each waits until ZooKeeper has not answered for long enough."""
    spec = {key: value for key, value in recorded(kind)["spec"].items() if key != "approvals"}
    file = tmp_path / "migration.yaml"
    file.write_text(yaml.safe_dump({"kind": kind.name, "metadata": {"name": "new"}, "spec": spec}))
    commands = ("preflight", "-f", str(file), "-o", "json"), ("plan", "-f", str(file)), ("plan", name)
    told = await asyncio.gather(*(asyncio.to_thread(apart, *each) for each in commands))
    assert {why for _, _, why in told} == {""}
    assert {code for code, _, _ in told} <= {1, 3}
    judged, ahead, here = (text for _, text, _ in told)
    found = json.loads(judged)
    assert found["step"] == "Preflight"
    assert {each["verdict"] for each in found["gates"]} >= {"Unknown"}
    assert not {"BrokersNotIdentified", "KubernetesRightMissing", "TopicsHidden"} & {
        each["code"] for each in found["findings"] if each["severity"] == "Blocker"}
    assert ahead.splitlines()[0] == "> Preflight"
    assert any(line.startswith("next: ") for line in ahead.splitlines())
    assert f"> {world[name]['progress']['step']}" in here.splitlines()


# --- on a terminal ------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_terminal(kubeconfig: Path, namespace: str) -> Callable[..., AbstractContextManager[Terminal]]:
    """The program as it is installed, on a pseudo terminal."""
    def begin(*arguments: str) -> AbstractContextManager[Terminal]:
        return terminal((PROGRAM, *arguments, "-n", namespace), {**os.environ, "KUBECONFIG": str(kubeconfig)})

    return begin


async def test_watching_on_a_terminal_refreshes_the_tree_until_it_is_interrupted(
        world: dict[str, dict[str, Any]], on_terminal: Callable[..., AbstractContextManager[Terminal]],
        change: Callable[..., Any]) -> None:
    status = deepcopy(world["kafka"])
    with on_terminal("status", "kafka", "--watch") as screen:
        await asyncio.to_thread(screen.until, "\u25b6 MoveBrokers")
        assert HIDDEN_CURSOR in screen.shown
        assert "\x1b[1m" in screen.shown, "bold, on a terminal"
        await change(KAFKA_MIGRATION, "kafka", {**status, "phase": "Paused"})
        await asyncio.to_thread(screen.until, "Paused")
        assert ONE_LINE_UP in screen.shown, "the tree is drawn over the one before"
        screen.type(CTRL_C)
        assert await asyncio.to_thread(screen.leaves) == 0
    assert screen.shown.rindex(SHOWN_CURSOR) > screen.shown.rindex(HIDDEN_CURSOR), "the cursor is there again"
    assert "Traceback" not in screen.shown


async def test_what_a_person_is_asked_on_a_terminal_is_done_for_yes_alone(
        world: dict[str, dict[str, Any]], on_terminal: Callable[..., AbstractContextManager[Terminal]], server: ApiServer,
        ) -> None:
    """Ctrl-C ends the question; asyncio's handler of it would not."""
    for typed, code, said in (("n\n", 1, "nothing was done"), ("\n", 1, "nothing was done"), (CTRL_C, 1, "Aborted"),
                              ("y\n", 0, "kmig/kafka now wants Paused")):
        assert (await spec_of(server, KAFKA_MIGRATION, "kafka"))["desiredState"] == "Running"
        with on_terminal("pause", "kafka") as screen:
            await asyncio.to_thread(screen.until, "Do it? [y/N]: ")
            assert "no step and no batch begins" in screen.shown
            await asyncio.sleep(stretched(1))            # until it reads: Python misses a signal of the moment before
            screen.type(typed)
            assert await asyncio.to_thread(screen.leaves) == code, screen.shown
        assert said in screen.shown
        assert "Traceback" not in screen.shown
    assert (await spec_of(server, KAFKA_MIGRATION, "kafka"))["desiredState"] == "Paused"
    with on_terminal("approve", "kafka", "Finalize", "--reason", "CHG-1") as screen:
        await asyncio.to_thread(screen.until, "Do it? [y/N]: ")
        assert f"plan {world['kafka']['planHash']}" in screen.shown
        screen.type("y\n")
        assert await asyncio.to_thread(screen.leaves) == 0
    assert [each["name"] for each in (await spec_of(server, KAFKA_MIGRATION, "kafka"))["approvals"]] == ["Finalize"]


def test_colour_is_for_terminals_alone(world: dict[str, dict[str, Any]], run: Run) -> None:
    for arguments in (("list",), ("status", "kafka"), ("pause", "kafka", "--yes")):
        code, text, _ = run(*arguments)
        assert (code, "\x1b" in text) == (0, False), arguments
