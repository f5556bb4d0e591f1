"""Conducts a rehearsal: claim, copy, dual write, canary, rollback and end, by Kafka's own code on a throwaway replica.

What happens is seen here; what it means is judged by `rehearsal.judge`. Facts: docs/facts/rehearsal.md.
"""

import asyncio
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

from switchover.answers.errors import Fenced, Refused, Unreachable
from switchover.cluster.modes import CONTROLLERS_REGISTER, METADATA_LEVELS
from switchover.cluster.rehearsal import culprits
from switchover.cluster.rehearsal.course import Canary, Course, Process, Reached, troubles
from switchover.cluster.rehearsal.judge import End, Seen, report
from switchover.cluster.rehearsal.replica_job import NO_SCRIPTS
from switchover.cluster.rehearsal.report import TO_DUAL_WRITE, Report
from switchover.cluster.rehearsal.settings import JUTE_MAXBUFFER, Attempt, Command, Ids, Place, zookeeper
from switchover.kafka.ports import KafkaNodes, Registrar
from switchover.metadata.cluster import Difference, difference
from switchover.metadata.names import cluster_id
from switchover.metadata.node_json import document, text
from switchover.metadata.parity import LogImage, MigrationState
from switchover.network.addresses import Address
from switchover.zookeeper.ports import ReplicaNodes, ReplicaTree
from switchover.zookeeper.tree import Tree


class ReplicaProcesses(Protocol):
    """The processes of a rehearsal's replica, by name; of each name one runs at a time."""

    def start(self, name: str, command: Command) -> None:
        """Start it, once the one of that name has ended."""
        ...

    def exit_code(self, name: str) -> int | None:
        """Of the newest of that name; None while it runs."""
        ...

    def log(self, name: str) -> Iterator[str]:
        """The lines of the newest of that name."""
        ...

    def stop(self, name: str) -> None:
        """Ask it to end; SIGKILL after 10 s."""
        ...

    def data_directory(self, path: str, files: Mapping[str, str]) -> None:
        """Make a directory with these files, in which every process may write."""
        ...


MOST_ATTEMPTS, MOST_SECONDS = 20, 900.0
"""After so many no other attempt is begun: what was found by then is told."""
POLL_SECONDS = 0.1
START_SECONDS = 300.0
"""Longest start of ZooKeeper or the controller."""
CANARY_SECONDS = 60.0
"""Longest start of the canary until it lists the topics twice alike, on a machine of the usual speed."""
USUAL_START_SECONDS = 5.0
PATIENCE_SECONDS = 15.0
"""Without progress, on a machine where a controller starts in the usual time; longer ones in proportion."""
NODES_A_SECOND = 2000
"""More patience for each so many nodes: of copying no progress is told."""
FEW = 5
"""Of so many nodes one need not find which it is."""
LARGE = "-Xms64m -Xmx512m -XX:+ExitOnOutOfMemoryError"
HEAP = {"zookeeper": f"-Xmx256m -Djute.maxbuffer={JUTE_MAXBUFFER} -Dzookeeper.forceSync=no -Dzookeeper.preAllocSize=4096",
        "format": "-Xmx128m", "controller": f"{LARGE} -Djute.maxbuffer={JUTE_MAXBUFFER}", "broker": LARGE}


class NoReplica(Exception):
    """The replica did not come up, so nothing was rehearsed; the message names the process and what it told."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a rehearsal works with."""

    place: Place
    processes: ReplicaProcesses
    zookeeper: ReplicaTree
    nodes: Callable[[], KafkaNodes]
    """A new one for each controller: a metadata log of another is another log."""
    register: Registrar


class Rehearsal:
    """One rehearsal of `tree`. `release` is the brokers' protocol version, `classes` those of their settings that name
    classes which are not Kafka's, `told` gets what is being done."""

    def __init__(self, tree: Tree, release: str, classes: Mapping[str, str], parts: Parts,
                 told: Callable[[str], None]) -> None:
        self._tree = tree
        self._release = release
        self._classes = classes
        self._parts = parts
        self._told = told
        self._ids = Ids.beside({*tree.registered, *tree.assigned})
        self._cluster_id = _cluster_id(tree)
        self._known = culprits.known_names(tree)
        self._begun = time.monotonic()
        self._attempts = 0
        self._slowness = 1.0
        self._seconds: dict[str, float] = {}

    async def run(self) -> Report:
        """Raises NoReplica, Unreachable and Refused when it could not be carried through."""
        await self._start_zookeeper()
        tree, ends = self._tree, []
        course = await self._attempt(tree, whole=True)
        while course.reached is not Reached.DUAL_WRITE:
            found, rest, after = await self._without(tree, culprits.suspects(tree, course.controller, course.reached))
            if after is None or _alike(after, course):
                found, rest, after = await self._without(tree, await self._halve(tree, course))
            ends.append(End(course, found))
            if after is None:
                break
            tree, course = rest, after
        self._seconds["all"] = time.monotonic() - self._begun
        return report(Seen(self._tree, tuple(ends), course),
                      {part: round(seconds, 1) for part, seconds in self._seconds.items()})

    async def _without(self, tree: Tree, paths: tuple[str, ...]) -> tuple[tuple[str, ...], Tree, Course | None]:
        """These nodes, the tree without them, and its course: None where there are none, or after too many attempts."""
        rest = culprits.without(tree, paths)
        if rest.nodes.keys() == tree.nodes.keys() or not self._may_go_on:
            return paths, rest, None
        self._told(f"rehearsing without {', '.join(paths[:FEW])}")
        return paths, rest, await self._attempt(rest, whole=True)

    @property
    def _may_go_on(self) -> bool:
        return self._attempts < MOST_ATTEMPTS and time.monotonic() - self._begun < MOST_SECONDS

    # --- the parts of an attempt --------------------------------------------------------------------------------------

    async def _start_zookeeper(self) -> None:
        file = f"{self._parts.place.directory}/commands/zookeeper.properties"
        self._parts.processes.start("zookeeper", Command(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", (file,), HEAP["zookeeper"],
            {file: zookeeper(self._parts.place)}))
        self._told("starting ZooKeeper")
        with self._timed("zookeeper"):
            await self._up("zookeeper", self._parts.zookeeper.listens)

    async def _attempt(self, tree: Tree, *, whole: bool) -> Course:
        """Load a tree, claim it, and see what comes of it; `whole` goes on after dual write has begun."""
        self._attempts += 1
        attempt = Attempt(self._attempts, self._parts.place, self._ids)
        self._told(f"loading {len(tree.nodes)} nodes")
        with self._timed("load"):
            await self._parts.zookeeper.load(attempt.chroot, tree.nodes)
        with self._timed("controller"):
            await self._start_controller(attempt, tree)
        try:
            with self._timed(TO_DUAL_WRITE):
                course = await self._claim(attempt, tree)
            if whole and course.reached is Reached.DUAL_WRITE:
                course = await self._after_dual_write(attempt, tree, course)
            return course
        finally:
            await self._stop("controller")

    async def _start_controller(self, attempt: Attempt, tree: Tree) -> None:
        self._told("starting a controller")
        begun = time.monotonic()
        self._nodes = self._parts.nodes()
        file = self._file(attempt, "controller")
        self._parts.processes.start("controller", Command(
            "kafka.tools.StorageTool",
            ("format", f"--cluster-id={self._cluster_id}", f"--release-version={self._release}", f"--config={file}"),
            HEAP["format"], {file: attempt.migrating()}))
        await self._ended("controller")
        if self._parts.processes.exit_code("controller"):
            raise NoReplica(f"the controller's directory could not be formatted: {self._words('controller')}")
        self._parts.processes.start("controller", Command("kafka.Kafka", (file,), HEAP["controller"]))
        await self._up("controller", self._is_ready)
        self._slowness = max(1.0, (time.monotonic() - begun) / USUAL_START_SECONDS)

    async def _is_ready(self) -> bool:
        image = await self._image()
        registered = image.controllers.get(self._ids.controller, METADATA_LEVELS[self._release] < CONTROLLERS_REGISTER)
        return image.migration_state is MigrationState.PRE_MIGRATION and registered

    async def _claim(self, attempt: Attempt, tree: Tree) -> Course:
        """Register the brokers that are registered with ZooKeeper, and only when that is not enough those of assignments."""
        self._told("registering the brokers")
        refused = dict(await self._register(tree.registered))
        missing = tree.assigned - {*tree.registered}
        reached = await self._watch(attempt, tree, patience=self._patience(tree) / 3 if missing else None)
        if reached is Reached.NOTHING and missing and self._parts.processes.exit_code("controller") is None:
            self._told(f"brokers {sorted(missing)} are waited for: registering them as well")
            refused |= await self._register(sorted(missing))
            reached = await self._watch(attempt, tree)
        else:
            missing = frozenset()
        return Course(reached, await self._process("controller"), missing, refused)

    async def _register(self, brokers: Sequence[int]) -> dict[int, str]:
        return dict(await self._parts.register(
            self._controller, brokers, self._cluster_id, METADATA_LEVELS[self._release], START_SECONDS))

    async def _watch(self, attempt: Attempt, tree: Tree, patience: float | None = None) -> Reached:
        """How far the controller gets until it ends, or goes no further.

        Dual write writes /migration's offset twice a second; while it cannot, the offset stays where the copy ended.
        """
        limit = self._patience(tree) if patience is None else patience
        reached, copied, since = Reached.NOTHING, -1, time.monotonic()
        while time.monotonic() - since < limit and self._parts.processes.exit_code("controller") is None:
            if (code := self._parts.processes.exit_code("zookeeper")) is not None:
                raise NoReplica(f"the replica's ZooKeeper ended with code {code}: {self._words('zookeeper')}")
            nodes = await self._parts.zookeeper.replica_nodes(attempt.chroot)
            offset = nodes.migration.offset if nodes.migration is not None else -1
            now = (Reached.DUAL_WRITE if 0 < copied < offset else Reached.COPIED if offset > 0
                   else Reached.CLAIMED if self._is_claimed(nodes) else Reached.NOTHING)
            copied = offset if copied <= 0 else copied
            if now > reached:
                self._told({Reached.CLAIMED: "claimed", Reached.COPIED: "copied", Reached.DUAL_WRITE: "dual write"}[now])
                reached, since = now, time.monotonic()
            if reached is Reached.DUAL_WRITE:
                break
            await asyncio.sleep(POLL_SECONDS)
        return reached

    def _is_claimed(self, nodes: ReplicaNodes) -> bool:
        return nodes.controller is not None and nodes.controller.node_id == self._ids.controller

    async def _after_dual_write(self, attempt: Attempt, tree: Tree, course: Course) -> Course:
        self._told("comparing the metadata")
        try:
            course = replace(course, differences=await self._differences(tree))
        except Refused as error:
            course = replace(course, unread=str(error))
        course = replace(course, after=(await self._parts.zookeeper.export(attempt.chroot)).nodes)
        self._told("starting a broker in KRaft mode")
        with self._timed("broker"):
            course = replace(course, canary=await self._canary(attempt, tree))
        course = replace(course, controller=await self._process("controller"))
        await self._stop("controller")
        self._told("rolling back")
        course = replace(course, back=await self._back(attempt))
        self._told("ending the migration")
        with self._timed("finalize"):
            course = await self._finalize(attempt, tree, course)
        if self._classes and course.finalized and course.canary is not None and course.canary.topics is not None:
            self._told(f"starting with the brokers' own {', '.join(self._classes)}")
            with self._timed("classes"):
                course = replace(course, ended_by=await self._ended_by(attempt))
        return course

    async def _ended_by(self, attempt: Attempt) -> Mapping[str, Process]:
        """The settings with which a controller or a broker does not start: tried together, and then each alone."""
        if await self._fails(attempt, self._classes) is None:
            return {}
        alone = {key: await self._fails(attempt, {key: value}) for key, value in self._classes.items()}
        return {key: process for key, process in alone.items() if process is not None}

    async def _fails(self, attempt: Attempt, classes: Mapping[str, str]) -> Process | None:
        """How the controller or else the broker fared that did not come up with these settings; None where both did."""
        try:
            for name, address, properties in (("controller", self._controller, attempt.finalized(classes)),
                                              ("broker", self._broker, attempt.canary(classes))):
                await self._stop(name)
                file = self._file(attempt, f"{name}-own")
                self._parts.processes.start(name, Command("kafka.Kafka", (file,), HEAP[name], {file: properties}))
                if not await self._answers(name, address):
                    return await self._process(name)
        finally:
            await self._stop("broker")
        return None

    async def _answers(self, name: str, node: Address) -> bool:
        """Whether it does before it ends, or takes too long."""
        until = time.monotonic() + self._slowness * CANARY_SECONDS
        while time.monotonic() < until and self._parts.processes.exit_code(name) is None:
            with suppress(Unreachable):
                await self._nodes.api_versions(node)
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False

    async def _differences(self, tree: Tree) -> tuple[Difference, ...]:
        return difference(tree.metadata(), (await self._image()).metadata)

    async def _canary(self, attempt: Attempt, tree: Tree) -> Canary:
        file = self._file(attempt, "canary")
        self._parts.processes.data_directory(attempt.canary_dir, {"meta.properties": (
            f"version=1\ncluster.id={self._cluster_id}\nnode.id={self._ids.canary}\ndirectory.id={_uuid()}\n")})
        self._parts.processes.start("broker", Command("kafka.Kafka", (file,), HEAP["broker"], {file: attempt.canary()}))
        listed: frozenset[str] | None = None
        until = time.monotonic() + self._slowness * CANARY_SECONDS
        while time.monotonic() < until and self._parts.processes.exit_code("broker") is None:
            await asyncio.sleep(10 * POLL_SECONDS)
            try:
                view = await self._nodes.metadata(self._broker)
            except Unreachable:
                continue
            before, listed = listed, frozenset(partition.topic for partition in view.partitions)
            if before == listed:
                break
        found = Canary(await self._process("broker"), listed)
        await self._stop("broker")
        return found

    async def _back(self, attempt: Attempt) -> str:
        """What a rollback does once the controllers are stopped; why it could not."""
        nodes = await self._parts.zookeeper.replica_nodes(attempt.chroot)
        if nodes.controller is None or nodes.migration is None or nodes.controller_epoch is None:
            return "the controllers left no /controller, /migration or /controller_epoch"
        try:
            for path, version in (("/migration", nodes.migration.version), ("/controller", nodes.controller.version)):
                await self._parts.zookeeper.delete(attempt.chroot, path, version, nodes.controller_epoch)
        except (Fenced, Refused) as error:
            return str(error)
        return ""

    async def _finalize(self, attempt: Attempt, tree: Tree, course: Course) -> Course:
        """Start the same controller without ZooKeeper."""
        self._nodes = self._parts.nodes()
        file = self._file(attempt, "finalized")
        self._parts.processes.start("controller", Command(
            "kafka.Kafka", (file,), HEAP["controller"], {file: attempt.finalized()}))

        async def finalized() -> bool:
            return (await self._image()).migration_state is MigrationState.POST_MIGRATION

        try:
            await self._up("controller", finalized)
            return replace(course, finalized=True, after_finalize=await self._differences(tree))
        except NoReplica:
            return replace(course, finalized=False, controller=await self._process("controller"))
        except Refused as error:
            return replace(course, unread=course.unread or str(error))

    async def _halve(self, tree: Tree, course: Course) -> tuple[str, ...]:
        """The smallest part of the tree found after which a controller fares alike; () when none was."""
        found = culprits.units(tree)
        while len(found) > 1 and self._may_go_on:
            self._told(f"looking for the node among {len(found)}")
            middle = len(found) // 2
            for part in (found[:middle], found[middle:]):
                alone = await self._attempt(culprits.only(tree, part), whole=False)
                if _alike(alone, course):
                    found = part
                    break
            else:
                break
        return tuple(culprits.named(unit) for unit in found) if len(found) <= FEW else ()

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Add what the block takes to the seconds of a part."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._seconds[part] = self._seconds.get(part, 0.0) + time.monotonic() - begun

    # --- processes ----------------------------------------------------------------------------------------------------

    @property
    def _controller(self) -> Address:
        return Address(self._parts.place.host, self._parts.place.controller)

    @property
    def _broker(self) -> Address:
        return Address(self._parts.place.host, self._parts.place.broker)

    async def _image(self) -> LogImage:
        return await self._nodes.log({self._ids.controller: self._controller})

    def _patience(self, tree: Tree) -> float:
        return self._slowness * (PATIENCE_SECONDS + len(tree.nodes) / NODES_A_SECOND)

    def _file(self, attempt: Attempt, name: str) -> str:
        return f"{self._parts.place.directory}/commands/{name}-{attempt.number}.properties"

    async def _up(self, name: str, answers: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a process does what is asked. Raises NoReplica."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if (code := self._parts.processes.exit_code(name)) == NO_SCRIPTS:
                there = next((line for line in self._parts.processes.log(name) if line), "/PATH/kafka-server-start.sh")
                raise NoReplica("the image has no kafka-run-class next to the brokers' start script: set in spec.brokers:"
                                f" start: {{script: {there}}}")
            if code is not None:
                raise NoReplica(f"the replica's {name} ended with code {code} while it started: {self._words(name)}")
            try:
                if await answers():
                    return
            except Unreachable:
                pass
            await asyncio.sleep(POLL_SECONDS)
        raise NoReplica(f"the replica's {name} did not come up within {START_SECONDS:g} s: {self._words(name)}")

    async def _ended(self, name: str) -> None:
        until = time.monotonic() + START_SECONDS
        while self._parts.processes.exit_code(name) is None:
            if time.monotonic() > until:
                raise NoReplica(f"the replica's {name} did not end within {START_SECONDS:g} s")
            await asyncio.sleep(POLL_SECONDS)

    async def _stop(self, name: str) -> None:
        if self._parts.processes.exit_code(name) is None:
            self._parts.processes.stop(name)
            await self._ended(name)

    async def _process(self, name: str) -> Process:
        """A process as it is now; one that ends is a moment behind its last words."""
        return Process(self._parts.processes.exit_code(name), troubles(self._parts.processes.log(name), self._known))

    def _words(self, name: str) -> str:
        found = Process(None, troubles(self._parts.processes.log(name), self._known))
        return str(found.cause or "no error in its log")


def _alike(one: Course, other: Course) -> bool:
    """Whether two attempts failed in one way."""
    return (one.reached, one.controller.exit_code, one.controller.cause) == (
        other.reached, other.controller.exit_code, other.controller.cause)


def _cluster_id(tree: Tree) -> str:
    """Of the cluster; where it cannot be read, which ends every broker, another one."""
    try:
        return cluster_id(text(document(tree.nodes.get("/cluster/id")), "id"))
    except ValueError:
        return _uuid()


def _uuid() -> str:
    """As Kafka writes its own."""
    return urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
