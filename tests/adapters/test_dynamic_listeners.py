"""A listener that was added to a broker at run time (KIP-226): what Preflight says of it, and what its cure comes to."""

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from adapters.admin import changed
from adapters.clusters import COMMON
from adapters.eventually import eventually
from adapters.pasting import Tools
from adapters.test_modes import Story, stories  # noqa: F401 - the fixture
from switchover.answers.errors import NotListening
from switchover.answers.observed import Known
from switchover.api.status import Verdict as Outcome
from switchover.engine.gate import Verdict
from switchover.network.addresses import Address
from unit.pictures import NOW, moment, with_fact
from unit.preflight_pictures import check, wanted


class Added:
    """The broker of a story with a listener NEW beside its own, set at run time."""

    def __init__(self, story: Story) -> None:
        self.story, self.address = story, story.broker.address
        self.new = Address(self.address.host, 9098)
        self.listeners = f"PLAINTEXT://{self.address},NEW://{self.new}"

    def file(self, listeners: str) -> str:
        """The user's own."""
        return COMMON + (
            f"broker.id=1\nlisteners={listeners}\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT\n"
            f"log.dirs={self.story.directory / 'broker' / 'data'}\nzookeeper.connect={self.story.zookeeper.address}/kafka\n"
            "zookeeper.session.timeout.ms=10000\ninter.broker.protocol.version=3.9\n")

    async def begin(self) -> None:
        await self.story.begin(self.file(f"PLAINTEXT://{self.address}"))
        settings = {"listeners": self.listeners, "advertised.listeners": self.listeners, "background.threads": "3"}
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()])
        changed(str(self.address), lambda admin: admin.incremental_alter_configs([resource]))
        assert await self.is_served()

    async def is_served(self) -> bool:
        """Whether clients find the broker at its new listener, and are told of that."""
        view = await eventually(lambda: self.story.wire.metadata(self.new), lambda view: bool(view.brokers))
        return view.brokers == {1: self.new}

    async def preflight(self) -> Verdict:
        """What the check says of it: it is pod kafka-1."""
        found = Known(await self.story.wire.examine(self.address, 1), NOW)
        picture = wanted(kafka={"bootstrapServers": str(self.address)})(moment("Preflight"))
        brokers = {**picture.facts.examination.brokers, 1: found}
        return check("Listeners", with_fact(picture, "examination", replace(picture.facts.examination, brokers=brokers)))

    async def as_it_is_told(self, unblocks: str) -> None:
        """The settings into the user's own file, a restart, and the command."""
        for server in (self.story.broker, *self.story.controllers.values()):
            text = self.file(self.listeners) + f"advertised.listeners={self.listeners}\n"
            (server.directory / "users.properties").write_text(text)
        assert f"listeners={self.listeners} and advertised.listeners={self.listeners}" in unblocks
        self.story.broker.restart("")
        assert await self.is_served()
        Tools(self.story.directory).paste_of(unblocks)


def added(directory: Path, stories: list[Story]) -> Added:  # noqa: F811
    stories.append(story := Story(directory, 1, "PLAINTEXT", {}))
    return Added(story)


@pytest.mark.case("ListenersSetAtRunTime")
async def test_a_listener_of_run_time_goes_into_the_brokers_configuration(
        tmp_path: Path, stories: list[Story]) -> None:  # noqa: F811
    broker = added(tmp_path, stories)
    await broker.begin()
    found = await broker.preflight()
    assert (found.reason, found.subject) == ("ListenersSetAtRunTime", "kafka-1")
    assert "and with it its other dynamic settings (background.threads)" in found.message
    await broker.as_it_is_told(found.unblocks)
    assert (await eventually(broker.preflight, lambda found: found.outcome is Outcome.PASS)).findings == ()
    assert await broker.is_served()


@pytest.mark.long
@pytest.mark.case("ListenersSetAtRunTime")
async def test_it_is_served_on_kraft_then(tmp_path: Path, stories: list[Story]) -> None:  # noqa: F811
    broker = added(tmp_path, stories)
    await broker.begin()
    await broker.as_it_is_told((await broker.preflight()).unblocks)
    before = await broker.story.state()
    await broker.story.start_controllers()
    await broker.story.migrate_to_dual_write()
    await broker.story.move_to_kraft()
    assert await broker.is_served()
    assert (await broker.story.wire.settings(broker.address, 1))["background.threads"] == "3"
    await broker.story.move_back_to_zookeeper(before)
    assert await broker.is_served()


@pytest.mark.long
async def test_without_that_nobody_listens_on_kraft_and_all_else_of_run_time_is_lost(
        tmp_path: Path, stories: list[Story]) -> None:  # noqa: F811
    broker = added(tmp_path, stories)
    await broker.begin()
    await broker.story.start_controllers()
    await broker.story.migrate_to_dual_write()
    await broker.story.move_to_kraft()
    with pytest.raises(NotListening):
        await broker.story.wire.metadata(broker.new)
    assert (await broker.story.wire.settings(broker.address, 1))["background.threads"] == "2"
