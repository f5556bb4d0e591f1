import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import switchover
from switchover.api.status import Finding, Severity
from switchover.cluster.rehearsal import report
from switchover.engine.policy import Policy
from switchover.kubernetes.gitops import ARGO_TRACKING, tool_of
from switchover.kubernetes.workloads import Manager
from switchover.network.credentials import AllowedServers
from switchover.text.command import command, kubectl
from switchover.zookeeper.client import znodes
from unit.commands_of_source import not_made, sources
from unit.foreign_text import WORDS
from unit.pictures import Cluster

HOME = Path(switchover.__file__).parent
TEXT = {
    "api/crds.py": "in CEL: the name is the object's own, which the API server has judged",
    "cli/entry.py": "words for click's completion, joined by shlex",
}
"""Files with one command each that is no command to paste, and why."""
TOOLS = ("kubectl", "helm", "argocd", "flux", "switchover", "kafka-consumer-groups.sh", "zookeeper-shell.sh")


def run(line: str, where: Path) -> None:
    """A shell that may refuse the line; nothing but the tools runs of it."""
    where.mkdir(exist_ok=True)
    tools = "\n".join(f"{tool}() {{ :; }}" for tool in TOOLS if "." not in tool)
    subprocess.run(["/bin/bash"], input=f"{tools}\ntouch() {{ : >pwned; }}\n{line}\n".encode(), cwd=where, check=False,
                   capture_output=True, env={"PATH": "/nowhere"})
    assert os.listdir(where) == []


def pasted(commands: Iterable[str], where: Path, shell: str = "/bin/bash") -> list[list[str]]:
    """What a shell runs where these are pasted one after the other: the words of each tool's call. Nothing else may run."""
    where.mkdir(exist_ok=True)
    tools = "\n".join(f"{tool}() {{ printf '%s\\0' $# {tool} \"$@\"; }}" for tool in TOOLS if "." not in tool)
    (where.parent / "bin").mkdir(exist_ok=True)
    for tool in (each for each in TOOLS if "." in each):
        (where.parent / "bin" / tool).write_text(f"#!/bin/sh\nprintf '%s\\0' $# {tool} \"$@\"\n")
        (where.parent / "bin" / tool).chmod(0o755)
    script = "\n".join((tools, 'touch() { : >"$1"; }', *commands, ""))
    done = subprocess.run([shell], input=script.encode(errors="surrogatepass"), cwd=where, capture_output=True, check=False,
                          env={"PATH": str(where.parent / "bin"), "HOME": "/nowhere"})
    assert (done.stderr, done.returncode, os.listdir(where)) == (b"", 0, [])
    words = iter(done.stdout.decode(errors="surrogatepass").split("\0"))
    return [[next(words) for _ in range(int(count) + 1)] for count in words if count]


def meant(word: str) -> str:
    return word.replace("\0", r"\000")


@settings(max_examples=40)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=20))
def test_a_shell_runs_the_words_that_were_meant_and_nothing_else(tmp_path_factory, named) -> None:
    where = tmp_path_factory.mktemp("paste") / "here"
    made = [kubectl(namespace, "patch pod {} --patch {}", f"x{pod}", patch) for namespace, pod, patch in named]
    assert [line for line in made if not line.isprintable()] == []
    assert pasted(made, where) == [
        ["kubectl", *_option("--namespace", namespace), "patch", "pod", meant(f"x{pod}"), *_option("--patch", patch)]
        for namespace, pod, patch in named]


def _option(name: str, value: str) -> list[str]:
    return [f"{name}={meant(value)}"] if value.startswith("-") else [name, meant(value)]


@settings(max_examples=40)
@given(st.lists(WORDS.filter(lambda word: not word.startswith("-")), min_size=1, max_size=20))
def test_a_shell_without_ansi_quotes_runs_nothing_else_either(tmp_path_factory, words) -> None:
    made = [command("kubectl delete pod {}", word) for word in words]
    calls = pasted(made, tmp_path_factory.mktemp("paste") / "here", "/bin/sh")
    assert [call[:3] for call in calls] == [["kubectl", "delete", "pod"]] * len(words)
    assert [call[3] for call, word in zip(calls, words, strict=True) if word.isprintable()] == [
        word for word in words if word.isprintable()]


@pytest.mark.parametrize(("made", "words"), [
    (command("argocd app set {} --sync-policy none", "-x"), ["argocd", "app", "set", "--", "-x", "--sync-policy", "none"]),
    (command("kubectl logs --previous {}", "-x"), ["kubectl", "logs", "--previous=-x"]),
    (command("kubectl delete pod {}", ("a b", "-x")), ["kubectl", "delete", "pod", "--", "a b", "-x"]),
    (command("kubectl patch {} -p {}", "a", {"$(x)": "';\n"}), ["kubectl", "patch", "a", "-p", '{"$(x)":"\';\\n"}']),
    (command("kubectl logs job/{} --tail {}", "a;b", 3), ["kubectl", "logs", "job/a;b", "--tail", "3"]),
    (command("kubectl get {} --output jsonpath={{.a}}", "x"), ["kubectl", "get", "x", "--output", "jsonpath={.a}"]),
    (command("kubectl get {} $({})", "x", command("printf %s {}", "a;b")), ["kubectl", "get", "x", "a;b"]),
    (command("kubectl get {}", ""), ["kubectl", "get", ""]),
])
def test_words_options_and_parts(tmp_path: Path, made: str, words: Sequence[str]) -> None:
    assert pasted([made], tmp_path / "here") == [words]


def test_what_needs_no_quotes_has_none() -> None:
    assert kubectl("kafka", "delete pod {}", "kafka-0") == "kubectl --namespace kafka delete pod kafka-0"


# --- where text of others reaches a command -----------------------------------------------------------------------------

HOST = "x';touch pwned;'"


def test_a_broker_that_registered_a_command_as_its_host_runs_nothing(tmp_path: Path) -> None:
    """The attack: the printed command of a refused server, pasted. Such a host is not read any more."""
    with pytest.raises(ValueError, match="is no name or address of a host"):
        znodes.endpoints(json.dumps({"endpoints": [f"PLAINTEXT://{HOST}:9092"]}).encode())
    servers = znodes.endpoints(b'{"endpoints":["PLAINTEXT://a_b%c:9092"]}').values()
    said = AllowedServers((("kafka", 9092),), "kafka-client", "prod", "bootstrap.servers").why_not(servers)
    patch = json.dumps({"stringData": {"bootstrap.servers": "kafka:9092,a_b%c:9092"}}, separators=(",", ":"))
    assert pasted([said.partition("if they may be: ")[2]], tmp_path / "here") == [
        ["kubectl", "--namespace", "prod", "patch", "secret", "kafka-client", "--patch", patch]]


@settings(max_examples=40)
@given(WORDS.filter(lambda text: "*" not in text))       # which would be a pattern: unit/test_policy.py
def test_an_image_of_any_name_is_one_value_of_the_chart(tmp_path_factory, image: str) -> None:
    for found in Policy().find_image("spec.controllers.template.image", f"reg/{image}"):
        [words] = pasted([found.unblocks.partition("of its version: ")[2]], tmp_path_factory.mktemp("paste") / "here")
        assert (words[:4], words[-2], len(words)) == (["helm", "upgrade", "switchover", "helm/switchover"], "--set-json", 9)


def test_a_name_of_an_application_is_no_option_and_no_second_command(tmp_path: Path) -> None:
    for name in ("-x", "a;touch pwned", "a\ntouch pwned", "$(touch pwned)"):
        marks = {ARGO_TRACKING: f"{name}:apps/StatefulSet:prod/kafka"}
        tool = tool_of(replace(Cluster().workload(), marks=marks), "prod")
        assert tool is not None
        [words] = pasted([tool.suspend], tmp_path / "here")
        assert words == ["argocd", "app", "set", *(["--"] if name == "-x" else []), name, "--sync-policy", "none"]


@pytest.mark.parametrize(("marks", "suspend"), [
    ({ARGO_TRACKING: "team_orders:apps/StatefulSet:prod/kafka"}, "argocd app set team/orders --sync-policy none"),
    ({}, "turn off automated sync in the Argo CD Application that has it")])
def test_an_application_is_named_as_argos_command_line_takes_it_or_not_at_all(marks: dict[str, str], suspend: str) -> None:
    writer = Manager("argocd-controller", "Apply", "", 0.0, frozenset({"mounts"}))
    tool = tool_of(replace(Cluster().workload(), marks=marks, managers=(writer,)), "prod")
    assert tool is not None
    assert tool.suspend == suspend


def test_a_znode_is_one_path_for_whatever_ensemble(tmp_path: Path) -> None:
    path = "/config/topics/x ZOOKEEPER_CONNECT';touch pwned;'"
    finding = report.Finding(report.Stage.COPY, "X", report.Severity.BLOCKER, "", cure=report.delete(path))
    told = report.Report("", (finding,)).at("[::1]:2181/kafka").findings[0].cure
    assert pasted([told], tmp_path / "here") == [
        ["zookeeper-shell.sh", "[::1]:2181/kafka", "delete", path.replace("ZOOKEEPER_CONNECT", "[::1]:2181/kafka")]]


LONG = st.tuples(st.integers(0, 600), WORDS, st.integers(0, 300)).map(lambda each: "l" * each[0] + each[1] + "g" * each[2])


@given(st.lists(LONG, min_size=3, max_size=4))
def test_what_is_left_of_a_command_that_is_too_long_runs_nothing_of_others(tmp_path_factory, words) -> None:
    """Its fields are cut: no quote of it may end where none began."""
    long = "; then ".join([command("kubectl patch {}", words), command("kubectl annotate {}", [*reversed(words)])])
    sentence = Finding(code="X", severity=Severity.BLOCKER, message="", cure=f"{long}; then see the operator's log").cure
    assert len(sentence) <= 1024
    run(sentence, tmp_path_factory.mktemp("paste") / "here")


def test_an_owner_of_a_long_name_runs_nothing(tmp_path: Path) -> None:
    """The attack: the quote that opens what others named is within what was cut out, and another one closes it."""
    marks = {"helm.toolkit.fluxcd.io/name": "r" * 500, "helm.toolkit.fluxcd.io/namespace": ("n" * 600) + ";touch pwned;"}
    tool = tool_of(replace(Cluster().workload(), marks=marks), "prod")
    assert tool is not None
    told = Finding(code="X", severity=Severity.BLOCKER, message="", cure=f"{tool.suspend}; then see the operator's log").cure
    assert "…" in told
    run(told, tmp_path / "here")


# --- no other way -------------------------------------------------------------------------------------------------------

def test_no_command_of_the_source_is_made_of_text() -> None:
    found = list(not_made(sources(HOME)))
    assert [each for each in found if each.partition(":")[0] not in TEXT] == []
    assert sorted(each.partition(":")[0] for each in found) == sorted(TEXT), "no exception that is not needed"


IMPORT = "from switchover.text.command import Command, command, kubectl\n"


@pytest.mark.parametrize("source", [
    'x = f"kubectl --namespace {n} delete pod {p}"',
    '''x = f"; then helm upgrade --set 'a={b}'"''',
    'x = "kubectl delete pod " + name',
    'x = "kubectl delete pod %s" % name',
    'x = "kubectl delete pod {}".format(name)',
    'AGAIN = "kubectl delete pod"\nx = f"{AGAIN} {name}"',
    'AGAIN = "kubectl delete pod {name}"\nx = AGAIN.format(name=name)',
    'x = " ".join(("switchover", act, name))',
    'x = f"look at kafka-topics.sh --topic {name}"',
    'x = f"look at {name}: zookeeper-shell.sh {connect} get /"',
    IMPORT + 'x = kubectl(n, f"delete pod {p}")',
    IMPORT + 'x = command(text, p)',
    IMPORT + 'x = Command(f"anything {p}")',
    IMPORT + '''x = command("kubectl patch x -p '{}'", p)''',
    "from switchover.text import command\nx = command.kubectl(n, text)",
    IMPORT + 'x = command("kafka-consumer-groups.sh --delete-offsets --group {}", g)',
    'x = "kafka-features.sh --bootstrap-server … upgrade"',
])
def test_it_is_refused(source: str) -> None:
    assert list(not_made({"a.py": source})) != []


@pytest.mark.parametrize("source", [
    IMPORT + 'x = f"look at {kubectl(n, \'delete pod {}\', p)} and {y}"',
    IMPORT + 'x = kubectl(n, "logs {}" + (" --container {}" if c else ""), p, c)',
    'x = f"{name}: see `switchover doctor`, then {step}"',
    'x = f"{seen} (switchover doctor)"',
    'x = f"app.kubernetes.io/name=switchover,{label}"',
    'x = f"/etc/switchover-secrets/{secret}"',
])
def test_it_is_left_alone(source: str) -> None:
    assert list(not_made({"a.py": source})) == []
