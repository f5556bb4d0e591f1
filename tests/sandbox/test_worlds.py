"""Kafka as public charts set it up, in real pods: half-way to KRaft, all the way back, and again to the end, under traffic.

Each world (sandbox/worlds) is told in a namespace of its own. Nothing of it is changed for the migration, and the migration
says no more than it must. In the end a Helm release takes its brokers over, by KRaft settings of its own.
"""

import dataclasses
import json
import re
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import metadata, migration, rollback, tools, traffic, world
from demo.cluster import Cluster
from demo.diagnostics import collect
from demo.sandbox import bring_up, take_down
from demo.summary import Traffic
from sandbox import audit
from sandbox.quick import QUICK
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.cli.display import condition
from switchover.cli.objects import Resource

pytestmark = [pytest.mark.long, pytest.mark.timeout(4000)]

WORLDS = world.MANIFESTS.with_name("worlds")
FIRST_IDS: Mapping[str, int] = {"variables": 0, "generated": 100, "words": 5, "older": 0}
"""The id of the first broker of each world."""
AT_ONCE = 2
"""Worlds that are told at the same time: they wait more than they work, but three of them want more than two cores."""
OLDER = "older"
"""The world of an older Kafka, which is upgraded first, and rolled back to."""
ASTRAY = ("variables", "/opt/kafka/bin/kafka-server-start.sh")
"""The world that is first told a wrong start script, and which."""
RELEASES: Mapping[str, tuple[str, ...]] = {"generated": ("--server-side=true", "--force-conflicts"),
                                           "variables": ("--server-side=false",),
                                           "words": ("--server-side=false",)}
"""The worlds whose brokers are a Helm release, and how it is applied: as Helm 4 does it, and as Helm 3 does."""
BUILD = Path(__file__).parents[2] / "build"
SETTLED_SECONDS = 10
"""In which a StatefulSet controller that has something to replace begins to."""
STATE, NODES = BUILD / "sandbox-worlds", 2
OUTPUT = BUILD / "worlds"
PASSWORDS = ("hunter2-client", "hunter2-brokers")
"""Of the user's manifests; there are more in the Secrets that are written for Switchover."""
SHORT: Mapping[str, Any] = {**QUICK, "zookeeperRetentionSeconds": 0, "backups": {"skipReason": "a test"}}


def manifest(name: str, **spec: Any) -> str:
    """The world's migration with these fields of its spec, and waits as short as they can be."""
    return migration.manifest(WORLDS / name / "migration.yaml", **SHORT, **spec)


@dataclass
class Turn:
    """Asks for the way back in the second batch of MoveBrokers, and notes first what the first batch shows."""

    cluster: Cluster
    name: str
    turned: float = 0.0
    shown: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)
    heaps: set[str] = field(default_factory=set)
    ours: str = ""

    def __call__(self, resource: Resource, _: str) -> str | None:
        progress = resource.get("status", {}).get("progress", {})
        if self.turned or (progress.get("step"), progress.get("batch")) != ("MoveBrokers", 2):
            return None
        moved = [node["name"] for node in resource["status"]["nodes"] if node["name"] in world.BROKERS
                 and node.get("observed") == Mode.KRAFT and node["name"] not in progress["batchNodes"]]
        self.shown = {pod: marker(self.cluster, self.name, pod) for pod in moved}
        self.wanted = {pod: edits(self.cluster)[pod] for pod in moved}
        self.heaps = {heap(self.cluster, pod) for pod in moved}
        self.ours = our_secrets(self.cluster)
        patch = json.dumps({"spec": {"desiredState": "RolledBack"}})
        self.cluster.kubectl("patch", "kmig", "kafka", "--type", "merge", "--patch", patch)
        self.turned = time.time()
        return f"everything back, {', '.join(moved)} in mode KRaft"


@dataclass
class Upgrade:
    """Brings KRaft settings by an upgrade of the brokers' release, once HandOver waits for them."""

    cluster: Cluster
    name: str
    exported: str = ""

    def __call__(self, resource: Resource, _: str) -> str | None:
        waits = {item["reason"] for item in resource.get("status", {}).get("waitingFor", ())}
        if self.exported or self.name not in RELEASES or "TemplateNotBrought" not in waits:
            return None
        self.exported = self.cluster.kubectl("exec", "deployment/switchover", "--", "switchover", "export", "kafka")
        self.upgrade()
        return "helm upgrade to settings of KRaft"

    def upgrade(self, *more: str) -> None:
        """`helm upgrade` of the brokers, with the cluster's id where the image wants it."""
        directory = WORLDS / self.name
        told = re.search(r"CLUSTER_ID=(\S+) as a variable", self.exported)
        own = ("--set", f"customEnv.CLUSTER_ID={told[1]}") if told is not None else ()
        self.cluster.helm("upgrade", world.RELEASE, str(directory / world.CHART), "--values",
                          str(directory / "kraft-values.yaml"), *RELEASES[self.name], *own, *more)


@dataclass
class Afterwards:
    """A release that has taken its brokers over, Switchover gone: the brokers' template, what is left of us, and the
    brokers' uids and revisions before and after two more upgrades."""

    described: str
    left: tuple[str, ...]
    before: dict[str, str]
    after: dict[str, str]
    outdated: bool


@dataclass
class Astray:
    """What became of a migration with a wrong start script. `generation`: the brokers' StatefulSet's, before and after."""

    told: str
    replaced: int
    generation: tuple[int, int]
    left: tuple[str, ...]


@dataclass
class Story:
    """What the migration there and back, and the one to the end, left behind."""

    name: str
    astray: Astray | None
    before: tuple[str, frozenset[str]]
    turn: Turn
    between: tuple[str, frozenset[str]]
    modes_between: dict[str, str]
    left: tuple[str, ...]
    whole: Traffic
    first: migration.Run
    second: migration.Run
    modes: dict[str, str]
    shown: dict[str, str]
    wanted: dict[str, str]
    ours: str
    exported: str
    afterwards: Afterwards | None
    told: str
    connections: dict[str, int]
    logs: list[str]
    traffic: Traffic
    requests: list[audit.Request]

    def figures(self) -> dict[str, Any]:
        replaced = audit.replaced(self.requests)
        return {
            "toTheMiddleSeconds": round(self.turn.turned - self.first.start), "backSeconds": round(
                self.first.end - self.turn.turned), "toTheEndSeconds": round(self.second.end - self.second.start),
            "steps": self.second.steps(), "acknowledged": self.traffic.acknowledged, "lost": self.traffic.lost,
            "duplicates": self.traffic.duplicates, "evictions": len(replaced),
            "evictionsOfBrokers": sum(name in world.BROKERS for name in replaced)}


def described(cluster: Cluster) -> str:
    """The brokers' template and update strategy, as text."""
    spec = cluster.get("statefulset", "kafka")["spec"]
    return json.dumps([spec["template"], spec["updateStrategy"]], sort_keys=True)


def marker(cluster: Cluster, name: str, pod: str) -> str:
    """What a broker says of the edits that it was started with."""
    broker_id = FIRST_IDS[name] + int(pod.rpartition("-")[2])
    return tools.run(cluster, "kafka-configs.sh --bootstrap-server kafka:9092 --describe --all --entity-type brokers"
                              f" --entity-name {broker_id} | grep -o 'switchover[.][A-Z]*[.][0-9a-f]*' | sort -u").strip()


def heap(cluster: Cluster, pod: str) -> str:
    """The heap of a broker's JVM, as its process was started."""
    found = cluster.kubectl("exec", pod, "--", "bash", "-c", "grep -aho -- '-Xmx[0-9][0-9a-zA-Z]*' /proc/[0-9]*/cmdline")
    return " ".join(sorted(set(found.split())))


def edits(cluster: Cluster, name: str = "kafka") -> dict[str, str]:
    """Of every pod of a StatefulSet, by its name."""
    found = cluster.get("secret", f"{name}-switchover")["data"]
    return {key: b64decode(value).decode() for key, value in found.items() if key != "door.sh"}


def our_secrets(cluster: Cluster) -> str:
    """All that stands in the Secrets that Switchover wrote."""
    found = [item for item in cluster.items("secrets") if item["metadata"]["name"].endswith("-switchover")]
    assert found, "there are none: nothing is proved"
    return "\n".join(b64decode(value).decode() for item in found for value in item["data"].values())


def logs_of_a_controller(cluster: Cluster) -> list[str]:
    """Logs for people, on the volume of the metadata log and beside the door's own files."""
    pod = "kafka-controller-0"
    directory = next(line.partition("=")[2] for line in edits(cluster, "kafka-controller")[pod].splitlines()
                     if line.startswith("set log.dirs="))
    container = next(each["name"] for each in cluster.get("pod", pod)["spec"]["containers"]
                     if any(mount.get("subPath") == "door.sh" for mount in each["volumeMounts"]))
    found = cluster.kubectl("exec", pod, "--container", container, "--", "find", str(Path(directory).parent),
                            "/run/switchover", "-name", "*.log")
    metadata_log = f"{directory}/__cluster_metadata-0/"
    assert metadata_log in found, "this is not where the metadata log is: nothing is proved"
    return [path for path in found.split() if not path.startswith(metadata_log)]


def brokers_of(cluster: Cluster) -> dict[str, str]:
    """The brokers' pods, which each is."""
    return {pod: cluster.get("pod", pod)["metadata"]["uid"] for pod in world.BROKERS}


def leave(cluster: Cluster, upgrade: Upgrade) -> Afterwards:
    """The migration and the operator go; the release is upgraded twice, to the same values and to its own strategy."""
    cluster.kubectl("delete", "kmig", "kafka", timeout=120)
    cluster.helm("uninstall", "switchover", "--wait")
    before = brokers_of(cluster)
    upgrade.upgrade()
    upgrade.upgrade("--set", "updateStrategy.type=RollingUpdate")
    cluster.kubectl("rollout", "status", "statefulset/kafka", timeout=120)
    time.sleep(SETTLED_SECONDS)
    kafka = cluster.get("statefulset", "kafka")
    names = [item["metadata"]["name"] for item in cluster.items("secrets,configmaps,controllerrevisions")]
    return Afterwards(
        json.dumps([kafka["metadata"], kafka["spec"]]),
        tuple(name for name in names if name.startswith(("kafka-switchover", "kafka-before-switchover"))),
        before, brokers_of(cluster), kafka["status"]["currentRevision"] != kafka["status"]["updateRevision"])


def go_astray(cluster: Cluster, name: str, script: str) -> Astray:
    """Into ProvisionControllers and back, without a rehearsal, which would tell it before."""
    def told(resource: Resource) -> str:
        words = (item.get("message", "") for item in resource.get("status", {}).get("waitingFor", ()))
        return next((each for each in words if "its start script is" in each), "")

    def generation() -> int:
        return int(cluster.get("statefulset", "kafka")["metadata"]["generation"])

    run, before, wrong = migration.Run(), generation(), {
        "brokers": [{"name": "kafka", "start": {"script": script}}], "rehearsal": {"enabled": False}}
    migration.follow(cluster, run, manifest(name, **wrong), lambda _: None, say(name), ended=lambda found: bool(told(found)))
    words = told(run.resource)
    migration.follow(cluster, run, manifest(name, desiredState="RolledBack", **wrong), lambda _: None, say(name),
                     ended=migration.rolled_back)
    brokers = sum(len(run.pods[pod]) - 1 for pod in world.BROKERS)
    return Astray(words, brokers, (before, generation()), rollback.leftovers(cluster))


def say(name: str) -> Any:
    return lambda line: print(f"[{time.strftime('%H:%M:%S')}] {name}: {line}", flush=True)


def tell(cluster: Cluster, name: str, audit_log: Path) -> Story:
    world.deploy(cluster, say(name), WORLDS / name, *RELEASES.get(name, ())[:1])
    before = described(cluster), metadata.tell(cluster)
    migration.install_operator(cluster)
    astray = go_astray(cluster, *ASTRAY) if name == ASTRAY[0] else None

    first, turn, upgrade = migration.Run(), Turn(cluster, name), Upgrade(cluster, name)
    applied = manifest(name, desiredState="Running", handOver="OwnConfiguration" if name in RELEASES else "Export")
    migration.follow(cluster, first, applied, lambda _: None, say(name), [turn],
                     lambda resource: turn.turned > 0 and migration.rolled_back(resource))
    world.await_in_sync(cluster)
    between, left = (described(cluster), metadata.tell(cluster)), rollback.leftovers(cluster)
    modes_between, whole = world.modes(cluster), traffic.verify(cluster)

    second = migration.Run()
    migration.follow(cluster, second, applied, lambda _: None, say(name), [upgrade])
    shown = {pod: marker(cluster, name, pod) for pod in world.BROKERS}
    logs = logs_of_a_controller(cluster)
    connections = second.connections or world.connections(cluster)
    world.await_in_sync(cluster)
    told = cluster.kubectl("get", "kafkamigrations,events,configmaps,statefulsets,pods", "--output", "yaml", timeout=120)
    told += cluster.kubectl("logs", "--selector", migration.OPERATOR, "--tail=-1")
    story = Story(
        name, astray, before, turn, between, modes_between, left, whole, first, second, world.modes(cluster), shown,
        edits(cluster) if name not in RELEASES else {}, our_secrets(cluster), upgrade.exported,
        leave(cluster, upgrade) if name in RELEASES else None, told, connections, logs, traffic.verify(cluster),
        audit.requests(audit_log, f"system:serviceaccount:{cluster.namespace}:switchover"))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / f"{name}.json").write_text(json.dumps(story.figures(), indent=2) + "\n")
    return story


@pytest.fixture(scope="module")
def stories(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Story]]]:
    """Of the worlds that tests of this run are about, in one sandbox."""
    asked = {item.callspec.params["story"] if hasattr(item, "callspec") else ASTRAY[0] for item in request.session.items
             if isinstance(item, pytest.Function) and item.module is request.module}
    names = [name for name in FIRST_IDS if name in asked]
    take_down(STATE)                    # what a run that was killed has left
    images = {image for name in names for image in world.images(WORLDS / name).values()}
    sandbox = bring_up(STATE, sorted(images), NODES)

    def begin(name: str) -> Story:
        cluster = dataclasses.replace(sandbox, namespace=name)
        try:
            return tell(cluster, name, STATE / "audit.log")
        except BaseException:
            collect(cluster, OUTPUT / "diagnostics" / name)
            raise

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield {name: pool.submit(begin, name) for name in names}
        finally:
            take_down(STATE)            # whatever is still being told ends with it


@pytest.fixture(scope="module", params=FIRST_IDS)
def story(request: pytest.FixtureRequest, stories: Mapping[str, Future[Story]]) -> Story:
    """What one world's story left."""
    return stories[request.param].result()


def test_in_the_middle_a_broker_showed_the_marker_of_its_edits(story: Story) -> None:
    assert story.turn.shown
    for pod, shown in story.turn.shown.items():
        assert shown.startswith("switchover.C.")
        assert f"marker {shown.removeprefix('switchover.')}\n" in story.turn.wanted[pod]


def test_its_jvms_have_the_heap_of_its_settings(story: Story) -> None:
    """Where the entry script edits the start script, that edit counts behind the door, too."""
    assert {each.casefold() for each in story.turn.heaps} == {"-xmx256m"}


def test_rolled_back_it_was_as_before(story: Story) -> None:
    assert story.modes_between == dict.fromkeys(world.BROKERS, "ZooKeeper")
    assert story.between[0] == story.before[0], "template and update strategy"
    assert story.between[1] == story.before[1], "metadata"
    scram = [line for line in story.before[1] if "SCRAM-SHA-256=" in line]
    assert len(scram) == (story.name == "generated"), "what its entrypoint writes to ZooKeeper, past dual write"
    assert story.left == ()
    assert story.whole.lost == 0


def test_in_the_end_it_succeeded(story: Story) -> None:
    assert condition(story.second.resource, "Succeeded") == "True"
    assert story.modes == dict.fromkeys(world.BROKERS, "KRaft")
    for pod, shown in story.shown.items():
        if story.name in RELEASES:
            assert shown == "", "it runs by its own configuration"
        else:
            assert shown.startswith("switchover.C.")
            assert f"marker {shown.removeprefix('switchover.')}\n" in story.wanted[pod]


def test_zookeeper_is_no_longer_used(story: Story) -> None:
    """It was gone, when a broker was restarted and told its mode."""
    assert story.connections == {"zookeeper-0": 0}
    assert condition(story.second.resource, "ZooKeeperRemovable") == "True"


def test_a_release_has_its_brokers_back_and_its_next_upgrades_restart_none(story: Story) -> None:
    if story.name not in RELEASES:
        assert story.afterwards is None
        return
    assert story.afterwards is not None
    assert "switchover" not in story.afterwards.described.replace("localhost/switchover/", "")
    assert story.afterwards.left == ()
    assert story.afterwards.after == story.afterwards.before
    assert not story.afterwards.outdated


def test_what_the_release_says_is_what_the_export_prints(story: Story) -> None:
    """Key by key; of a list that has the brokers' own listeners the export can only say what to add."""
    if story.name not in RELEASES:
        return
    values = yaml.safe_load((WORLDS / story.name / "kraft-values.yaml").read_text())
    lines = values.get("extraConfig", "").splitlines()
    settings = values.get("configurationOverrides") or dict(line.split("=", 1) for line in lines)
    told = story.exported.partition("Or nothing of Switchover's")[2]
    for key, value in settings.items():
        if key == "listener.security.protocol.map":
            assert f"{key}: add {value.rpartition(',')[2]};" in told
        elif key.endswith("jaas.config"):
            assert f"{key}=<hidden>" in told
        else:
            assert f"#   {key}={value}" in told


def test_no_acknowledged_record_is_lost(story: Story) -> None:
    assert story.traffic.lost == 0
    assert story.traffic.acknowledged > 5_000, "the load did not run: nothing is proved"


def test_no_pod_was_evicted_in_vain_or_before_the_status_named_it(story: Story) -> None:
    """Migration; KRaft and Migration again for the first two; ZooKeeper; Migration and KRaft once more, a release's own
    settings, and one without ZooKeeper; an older Kafka's upgrade, twice. Controllers stop once, then are restarted once, and
    the leader once more in the soak."""
    replaced = audit.replaced(story.requests)
    brokers = [name for name in replaced if name in world.BROKERS]
    assert len(brokers) <= 3 + 2 + 2 + 3 + 3 + 3 + 3 * (story.name in RELEASES) + 1 + 6 * (story.name == OLDER)
    assert audit.acts_before_record(story.requests) == []
    assert story.second.restarts == 0, "the operator died"


def test_the_users_passwords_stay_where_they_are(story: Story) -> None:
    for password in PASSWORDS:
        assert password not in story.turn.ours + story.ours
    assert "hunter2" not in story.told


def test_kafkas_own_logs_are_not_on_the_metadata_volume(story: Story) -> None:
    assert story.logs == (["/run/switchover/logs/server.log"] if story.name != OLDER else []), "its image has none"


def test_a_wrong_start_script_is_told_before_any_broker_is_touched(stories: Mapping[str, Future[Story]]) -> None:
    astray = stories[ASTRAY[0]].result().astray
    assert astray is not None
    assert f"the image has no {ASTRAY[1]}" in astray.told
    assert "set in spec.brokers: start: {script: /usr/bin/kafka-server-start}" in astray.told, "the one that it has"
    assert astray.replaced == 0
    assert astray.generation[0] == astray.generation[1]
    assert astray.left == ()
