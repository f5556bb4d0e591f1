"""Windows and the preview, by the real operator in virtual time: nothing starts outside, what is under way ends."""

from typing import Any

from fakes.api_server import Object
from simulation.migration_world import NAME, MigrationWorld
from simulation.moments import second_batch, waits_for
from switchover.api.kafka_migration import NodeMode as Mode
from switchover.api.meta import Window
from switchover.engine.windows import Calendar

CLOSED = {"name": "night", "cron": "0 3 * * *", "durationSeconds": 3600}
SHORT = {"name": "short", "cron": "5-59/10 * * * *", "durationSeconds": 300}
"""The world begins at 14:14 UTC. 300 s are enough for everything in one piece, and too short for a whole migration."""


def with_spec(world: MigrationWorld, **spec: Any) -> None:
    world.api.edit("kafkamigrations", NAME, lambda found: found["spec"].update(spec))


class Replaced:
    """Looks at every pod that is replaced: which batch it belongs to, and whether a window was open then."""

    def __init__(self, world: MigrationWorld, window: dict[str, Any]) -> None:
        self.world = world
        self.windows = (Window.model_validate(window),)
        self.outside: list[str] = []
        self.openings: set[int] = set()
        self._begun: set[object] = set()
        judge = world.api.on_write

        def look(method: str, plural: str, name: str, subresource: str, body: Any, found: Object) -> None:
            judge(method, plural, name, subresource, body, found)
            if plural == "pods":
                self._look(name)

        world.api.on_write = look

    def _look(self, pod: str) -> None:
        progress, now = self.world.status["progress"], self.world.timeline.now()
        whole = progress["step"] if progress["step"] in ("CopyMetadata", "Finalize") else None
        unit = whole or (progress["step"], progress["batchStartTime"])
        open_ = Calendar(self.windows, now).open_now(0) is not None
        self.openings.add(int((now - 300) // 600))
        if not open_ and unit not in self._begun:
            self.outside.append(f"{pod} of {unit}")
        self._begun.add(unit)


def test_a_batch_that_is_slow_ends_outside_of_its_window_and_the_next_waits_for_one(world: MigrationWorld) -> None:
    with_spec(world, windows=[SHORT])
    replaced = Replaced(world, SHORT)
    assert world.live(lambda: waits_for(world, "OutsideWindow"), limit=600)
    assert world.step == "UpgradeBrokers"
    assert world.status["phase"] == "Running"
    assert not world.kafka.starts.get(("kafka-controller-0", Mode.MIGRATION_CONTROLLER)), (
        "nothing is created before the window opens")

    def second_is_slow() -> bool:
        """As soon as the second broker of MoveBrokers starts, it is made to take until the window has closed."""
        progress = world.status.get("progress") or {}
        slow = [pod for pod in progress.get("batchNodes", ()) if world.kafka.starts.get((pod, Mode.KRAFT))]
        if not slow or progress["step"] != "MoveBrokers" or progress["batch"] != 2:
            return False
        opening = Calendar(replaced.windows, world.timeline.now()).open_now(0)
        assert opening is not None
        node = world.kafka.nodes[slow[0]]
        node.open_at, node.in_sync_at = opening.closes + 20, opening.closes + 25
        return True

    assert world.live(second_is_slow, limit=7200)
    (slow,) = world.status["progress"]["batchNodes"]
    assert world.live(lambda: world.step == "MoveBrokers" and waits_for(world, "OutsideWindow"), limit=1200)
    assert world.kafka.nodes[slow].mode == Mode.KRAFT
    assert world.kafka.nodes[slow].ready, "the batch that was under way has ended"
    progress = world.status["progress"]
    assert not progress.get("batchNodes"), "and the next has not begun"
    told = next(item for item in world.status["waitingFor"] if item["reason"] == "OutsideWindow")
    assert "short opens at" in told["message"]
    before = progress["humanWaitSeconds"]
    assert world.status["phase"] == "Running"
    assert {each["type"]: each["status"] for each in world.status["conditions"]}["Stalled"] == "False"
    starts = dict(world.kafka.starts)
    slowest = {each["name"]: each["slowestSeconds"] for each in world.status["restarts"]}
    assert slowest[Mode.KRAFT] > 25, "the pace that the next batches are reckoned with"
    quiet, openings = world.timeline.now() + 100, len(replaced.openings)
    assert world.live(lambda: world.timeline.now() > quiet)
    assert world.kafka.starts == starts
    assert world.live(lambda: len(replaced.openings) > openings, limit=3600)
    assert world.status["progress"]["humanWaitSeconds"] > before + 60
    assert replaced.outside == []


def test_a_window_may_be_lifted_at_any_time(world: MigrationWorld) -> None:
    with_spec(world, windows=[CLOSED])
    assert world.live(lambda: waits_for(world, "OutsideWindow"))
    with_spec(world, windows=[])
    assert world.live(lambda: world.step == "ProvisionControllers")


def test_the_way_back_waits_for_no_window_and_takes_about_as_long_as_was_told(world: MigrationWorld) -> None:
    second_batch(world)
    told = world.status["rollback"]["estimatedSeconds"]
    with_spec(world, windows=[CLOSED], desiredState="RolledBack")
    begun = world.timeline.now()
    assert world.live(lambda: world.status["phase"] == "RolledBack")
    taken = world.timeline.now() - begun
    assert Calendar((Window.model_validate(CLOSED),), world.timeline.now()).open_now(0) is None
    assert told / 3 < taken < told * 1.5, f"{told} s were told, {taken:.0f} s it took"
    assert {Mode.ZOOKEEPER, Mode.STOPPED} <= {each["name"] for each in world.status["restarts"]}
    assert world.status["progress"]["humanWaitSeconds"] < 5


def test_planned_shows_everything_and_touches_nothing(world: MigrationWorld) -> None:
    with_spec(world, desiredState="Planned")
    before = {key: found for key, found in world.api.objects.items() if key[0] != "kafkamigrations"}
    assert world.live(lambda: world.status.get("phase") == "Planned" and bool(world.status.get("plan")))
    assert world.live(lambda: False or world.timeline.now() > 1_790_000_400)
    written = {write.text.split()[1] for write in world.api.writes}
    assert written == {"kafkamigrations", "leases"}, [write.text for write in world.api.writes]
    on_itself = {write.text for write in world.api.writes if "kafkamigrations" in write.text}
    assert all(text.endswith(" status") or text == f"PATCH kafkamigrations {NAME}" for text in on_itself), on_itself
    assert {key: found for key, found in world.api.objects.items()
            if key[0] not in ("kafkamigrations", "leases", "events")} == before
    plan = world.status["plan"]
    assert plan["restarts"] == 2 * 3 + 3 + 1
    assert not world.status.get("planHash"), "the spec may still change"
