"""The sandbox itself: what it offers, and that it leaves nothing behind."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from documents import Block, of, run
from patience import stretched, until

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.yaml")
IMAGE = "localhost/switchover/python:3.11"
TWO_MINUTES = f"--timeout={stretched(120):.0f}s"


@dataclass(frozen=True)
class Sandbox:
    """A sandbox of this test alone."""

    state: Path
    nodes: int

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SANDBOX_STATE": str(self.state), "SANDBOX_NODES": str(self.nodes)}

    @property
    def port(self) -> int:
        return int((self.state / "port").read_text())

    @cached_property
    def name(self) -> str:
        """What its cgroups are called."""
        script = f". {ROOT}/sandbox/lib.sh; echo $id"
        command = ["bash", "-c", script]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout.strip()

    def run(self, command: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        completed = subprocess.run(
            [ROOT / "sandbox" / command, *arguments], env=self.environment, capture_output=True, text=True,
            timeout=stretched(600)
        )
        assert completed.returncode == 0 or not check, completed.stderr
        return completed

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [self.state / "bin" / "kubectl", "--kubeconfig", self.state / "kubeconfig", *arguments]
        completed = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=stretched(180))
        assert completed.returncode == 0 or not check, completed.stderr
        return completed

    def network_namespaces(self) -> set[str]:
        """Of its nodes and of their pods."""
        found = {os.readlink("/proc/self/ns/net")}
        for pid in self.processes():
            with contextlib.suppress(FileNotFoundError):             # it ended meanwhile
                found.add(os.readlink(f"/proc/{pid}/ns/net"))
        return found - {os.readlink("/proc/self/ns/net")}

    def processes(self) -> list[str]:
        return [pid for pid, groups in each_process("cgroup") if f"/{self.name}/" in groups]

    def leftovers(self, namespaces: set[str]) -> list[str]:
        """Everything on the machine that is still the sandbox's, in words."""
        found = [f"process {pid}" for pid in self.processes()]
        found += [f"process {pid} that names the state" for pid, line in each_process("cmdline") if str(self.state) in line]
        found += [
            f"mount {mounts}"
            for _, text in each_process("mountinfo")
            for mounts in text.splitlines()
            if str(self.state) in mounts
        ]
        found += [f"cgroup {path}" for path in Path("/sys/fs/cgroup").glob(f"**/{self.name}")]
        for pid, groups in each_process("cgroup"):
            try:
                namespace = os.readlink(f"/proc/{pid}/ns/net")
            except OSError:
                continue  # ended meanwhile, or the machine's own
            if namespace in namespaces and "/switchover-" not in groups:  # else another sandbox's, with the number anew
                found.append(f"network namespace of process {pid}")
        return found


def each_process(file: str) -> Iterator[tuple[str, str]]:
    """Every process of the machine but this one, with the text of one of its files."""
    for process in Path("/proc").glob("[0-9]*"):
        if process.name == str(os.getpid()):
            continue
        try:
            yield process.name, (process / file).read_text(errors="replace")
        except OSError:
            continue  # ended meanwhile


def settings() -> dict[str, str]:
    """Every setting of the kernel that can be written, but for those that change by themselves."""
    found = {}
    for path in Path("/proc/sys").glob("**/*"):
        try:
            if path.is_file() and path.stat().st_mode & stat.S_IWUSR and path.name != "ns_last_pid":
                found[str(path)] = path.read_text()
        except OSError:
            continue  # write-only, or gone with its namespace
    return found


def others_run(sandbox: Sandbox) -> bool:
    """Whether further sandboxes are up: the one limit that they share is put back by the last."""
    return any(path.name != sandbox.name for path in Path("/sys/fs/cgroup").glob("**/switchover-*"))


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str, int], Sandbox]]:
    """Makes a sandbox, not yet up, of a name and a number of nodes."""
    made = []

    def make_one(name: str, nodes: int) -> Sandbox:
        made.append(Sandbox(tmp_path / name, nodes))
        return made[-1]

    yield make_one
    for sandbox in made:
        sandbox.run("down", "--purge")


def nothing_is_left(sandbox: Sandbox, namespaces: set[str]) -> None:
    """After a moment: a killed process is seen until its parent has taken note."""
    until(lambda: not sandbox.leftovers(namespaces), f"{sandbox.name} has left nothing", 5)


@pytest.mark.long
def test_three_nodes_from_start_to_nothing(make: Callable[[str, int], Sandbox]) -> None:
    sandbox = make("three", 3)
    settings_before = settings()
    printed = sandbox.run("up").stdout.splitlines()
    assert printed[0] == f"KUBECONFIG={sandbox.state}/kubeconfig"
    subprocess.run([ROOT / "sandbox" / "images" / "build", "python"], check=True, stdout=subprocess.DEVNULL)
    sandbox.run("load-image", IMAGE)
    assert "already on all 3 nodes" in sandbox.run("load-image", IMAGE).stderr

    # A StatefulSet spread over the nodes: claims, names, a virtual address.
    sandbox.kubectl("apply", "-f", str(PROBE))
    sandbox.kubectl("-n", "probe", "rollout", "status", "statefulset/probe", TWO_MINUTES)
    pods = json.loads(sandbox.kubectl("-n", "probe", "get", "pods", "-o", "json").stdout)["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0", "node-1", "node-2"}
    for pod in ("probe-0", "probe-1", "probe-2"):
        sandbox.kubectl("-n", "probe", "exec", pod, "--", "sh", "-c", "hostname > /data/name")

    def read(reader: str, url: str) -> str:
        code = f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=5).read().decode())"
        return sandbox.kubectl("-n", "probe", "exec", reader, "--", "python3", "-c", code, check=False).stdout.strip()

    for reader in ("probe-0", "probe-1", "probe-2"):
        for peer in ("probe-0", "probe-1", "probe-2"):
            until(lambda: read(reader, f"http://{peer}.probe:8080/name") == peer, f"{reader} reaches {peer}")  # noqa: B023
        until(lambda: read(reader, "http://probe-address/name").startswith("probe-"), f"{reader} reaches it")  # noqa: B023

    # Eviction: the first pod goes and comes back to its data, the budget refuses a second one meanwhile.
    def evict(pod: str) -> subprocess.CompletedProcess[str]:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "probe"}}
        path = f"/api/v1/namespaces/probe/pods/{pod}/eviction"
        return sandbox.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body), check=False)

    assert evict("probe-0").returncode == 0
    assert "violate the pod's disruption budget" in evict("probe-1").stderr
    sandbox.kubectl("-n", "probe", "wait", "--for=condition=Ready", "pod/probe-1", TWO_MINUTES)
    sandbox.kubectl("-n", "probe", "rollout", "status", "statefulset/probe", TWO_MINUTES)
    data = ("-n", "probe", "exec", "probe-0", "--", "cat", "/data/name")
    until(lambda: sandbox.kubectl(*data, check=False).stdout == "probe-0\n", "the pod is back at its data")

    # The audit log holds the evictions and the bodies of writes.
    events = [json.loads(line) for line in (sandbox.state / "audit.log").read_text().splitlines()]
    evictions = [e["responseStatus"]["code"] for e in events if e["objectRef"].get("subresource") == "eviction"]
    assert evictions == [201, 429]
    created = [e for e in events if e["verb"] == "patch" or e["verb"] == "create"]
    assert any(e["objectRef"]["resource"] == "statefulsets" and e["requestObject"]["spec"]["replicas"] == 3 for e in created)

    namespaces = sandbox.network_namespaces()
    assert len(namespaces) >= 6, "three nodes and three pods"
    port = sandbox.port
    sandbox.run("down")

    nothing_is_left(sandbox, namespaces)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)
    changed = {path for path, value in settings().items() if settings_before.get(path, value) != value}
    if others_run(sandbox):
        changed -= {"/proc/sys/fs/inotify/max_user_instances", "/proc/sys/user/max_inotify_instances"}   # one limit
    assert changed == set()

    # Images outlive it.
    sandbox.run("up")
    assert "already on all 3 nodes" in sandbox.run("load-image", IMAGE).stderr


@pytest.mark.long
@pytest.mark.parametrize("block", of("tests/sandbox/test_sandbox_lifecycle.py"), ids=str)
def test_the_page_brings_it_up(block: Block, make: Callable[[str, int], Sandbox], tmp_path: Path) -> None:
    sandbox = make("build/sandbox", 3)
    run(block, tmp_path, block.script, seconds=600, **sandbox.environment, MAKEFLAGS="")
    assert len(sandbox.kubectl("get", "nodes", "--output", "name").stdout.split()) == 3


@pytest.mark.long
@pytest.mark.parametrize("seconds", [0.4, 1.5])
def test_a_start_that_was_killed_is_cleaned_by_the_next(make: Callable[[str, int], Sandbox], seconds: float) -> None:
    sandbox = make("killed", 1)
    sandbox.run("build")
    start = subprocess.Popen(
        [ROOT / "sandbox" / "up"], env=sandbox.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(sandbox.processes, "the start has started something", 120, pause=0.05)
    time.sleep(seconds)
    start.send_signal(signal.SIGKILL)
    start.wait()
    left, namespaces = set(sandbox.processes()), sandbox.network_namespaces()
    assert left, "the kill left nothing to clean"

    sandbox.run("up")
    assert sandbox.kubectl("get", "nodes", "-o", "name").stdout.split() == ["node/node-0"]
    assert not left & set(sandbox.processes()), "parts of the killed start are still there"
    namespaces |= sandbox.network_namespaces()
    sandbox.run("down")
    nothing_is_left(sandbox, namespaces)


@pytest.mark.long
def test_two_side_by_side(make: Callable[[str, int], Sandbox]) -> None:
    one, plane = make("one", 1), make("plane", 0)
    one.run("up")
    plane.run("up")
    assert one.port != plane.port
    one.kubectl("create", "namespace", "only-here")
    assert "NotFound" in plane.kubectl("get", "namespace", "only-here", check=False).stderr
    assert plane.kubectl("get", "nodes", "-o", "name").stdout == ""
    one.run("down")
    assert plane.kubectl("get", "--raw", "/readyz").stdout == "ok"


@pytest.mark.long
def test_up_again_changes_nothing_and_another_size_is_refused(make: Callable[[str, int], Sandbox]) -> None:
    sandbox = make("again", 0)
    sandbox.run("up")
    processes = sandbox.processes()
    assert "already up" in sandbox.run("up").stderr
    assert sandbox.processes() == processes
    refused = Sandbox(sandbox.state, 1).run("up", check=False)
    assert refused.returncode == 2
    assert "a sandbox of 0 nodes runs in" in refused.stderr
    assert sandbox.processes() == processes


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"SANDBOX_NODES": "many"}, "SANDBOX_NODES is 'many'; it must be 0 (control plane alone) to 9"),
        ({"SANDBOX_STATE": "/var/lib/sandbox"}, "set SANDBOX_STATE or SWITCHOVER_CACHE to another place"),
    ],
)
def test_bad_settings_are_refused_in_words(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    environment = {**Sandbox(tmp_path / "refused", 1).environment, **changed}
    completed = subprocess.run(
        [ROOT / "sandbox" / "up"], env=environment, capture_output=True, text=True, timeout=stretched(60))
    assert completed.returncode == 2
    assert words in completed.stderr


def test_an_unknown_image_is_refused_in_words(make: Callable[[str, int], Sandbox]) -> None:
    sandbox = make("none", 1)
    assert "no sandbox with nodes runs in" in sandbox.run("load-image", IMAGE, check=False).stderr


def test_kind_would_take_its_configuration() -> None:
    subprocess.run(["go", "test", "./..."], cwd=ROOT / "sandbox" / "kind-check", check=True, timeout=stretched(300))
