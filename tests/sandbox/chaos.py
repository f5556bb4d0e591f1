"""Troubles by a seed, one after the other: processes die and stand still, links are cut, a person changes their mind."""

import contextlib
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from demo import operator_process
from demo.cluster import Cluster, CommandFailed
from sandbox.faults import cut_off
from switchover.cli.objects import Resource


class World(NamedTuple):
    """Which pods are what, and whose processes a seed may stop; between which links are cut."""

    kinds: Mapping[str, str]
    stopped: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


OF_A_CLUSTER = World(
    {"broker": r"kafka-\d", "controller": r"kafka-controller-\d", "ZooKeeper server": r"zookeeper-\d",
     "operator": "switchover-.*"},
    ("broker", "controller", "ZooKeeper server", "operator"),
    (("controller", "ZooKeeper server"), ("controller", "broker"), ("broker", "ZooKeeper server"), ("broker", "broker"),
     ("operator", "broker")))
OF_A_GROUP = World(
    {"broker": r"kafka-\d", "member": r"orders-(?!producer).*", "operator": "switchover-.*"}, ("broker", "operator"),
    (("member", "broker"), ("broker", "broker"), ("operator", "broker")))
"""A member that dies ends its batch, and one that stands still consumes what another has by then: neither is a trouble that
a migration must bear."""
LASTS = 3.0, 25.0
"""Seconds for which a process stands still, or a link is cut."""
CALM = 2.0, 25.0
"""Seconds between two troubles."""
WISHES = (None, None, ("EnableMigration", 2), ("CopyMetadata", 0), ("DualWrite", 0), ("MoveBrokers", 1), ("MoveBrokers", 2),
          ("MoveBrokers", 3), ("Soak", 0))
"""Step and batch at which a person may want everything back."""


@dataclass
class Chaos:
    """What happens to one namespace while it is entered. `done` says what did, each after seconds since it began."""

    cluster: Cluster
    seed: int
    say: Callable[[str], None]
    world: World = OF_A_CLUSTER
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._begun = 0.0

    def __enter__(self) -> "Chaos":
        self._begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stands still any more, and nothing is cut."""
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._over.wait(self._dice.uniform(*CALM)):
            trouble = self._dice.choice((self._kill, self._kill, self._freeze, self._cut))
            with contextlib.suppress(CommandFailed):               # the API server was busy, or the pod is gone
                trouble()

    def _kill(self) -> None:
        pod, container = self._dice.choice(self._running(*self.world.stopped))
        if operator_process.kill(container):
            self._note(f"{pod} is killed")

    def _freeze(self) -> None:
        pod, container = self._dice.choice(self._running(*self.world.stopped))
        if operator_process.kill(container, signal.SIGSTOP):
            seconds = self._dice.uniform(*LASTS)
            self._note(f"{pod} stands still for {seconds:.0f} s")
            self._over.wait(seconds)
            operator_process.kill(container, signal.SIGCONT)

    def _cut(self) -> None:
        some, others = ([pod for pod, _ in self._running(kind)] for kind in self._dice.choice(self.world.links))
        pods = self._dice.sample(some, self._dice.randint(1, len(some))) if some else []
        rest = [pod for pod in others if pod not in pods]
        if not pods or not rest:
            return
        seconds = self._dice.uniform(*LASTS)
        with cut_off(self.cluster, pods, rest):
            self._note(f"{', '.join(pods)} cut off from {', '.join(rest)} for {seconds:.0f} s")
            self._over.wait(seconds)

    def _running(self, *kinds: str) -> list[tuple[str, str]]:
        """The pods of these kinds that run: name and container."""
        found = {pod["metadata"]["name"]: operator_process.container_id(pod) for pod in self.cluster.items("pods")}
        return [(name, container) for name, container in sorted(found.items()) if container
                and any(re.fullmatch(self.world.kinds[kind], name) for kind in kinds)]

    def _note(self, what: str) -> None:
        self.done.append(f"{time.monotonic() - self._begun:.0f} s: {what}")
        self.say(f"chaos: {what}")


@dataclass
class Wish:
    """Whether and when a person wants everything back: an observer of a migration."""

    want: Callable[..., None]
    seed: int
    at: tuple[str, int] | None = field(init=False)
    wished: bool = False

    def __post_init__(self) -> None:
        self.at = random.Random(f"wish {self.seed}").choice(WISHES)

    def __call__(self, resource: Resource, _: str) -> str | None:
        progress = resource.get("status", {}).get("progress", {})
        if self.at is None or self.wished or progress.get("step") != self.at[0] or progress.get("batch", 0) < self.at[1]:
            return None
        self.want(desiredState="RolledBack")
        self.wished = True
        return f"a person wants everything back, at {self.at[0]}, batch {self.at[1]}"
