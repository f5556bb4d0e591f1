"""The operator put together: it watches what it serves, and nothing else."""

from typing import Any

import pytest

from switchover.cli import run
from switchover.settings import read_settings


class Anything:
    """Stands for the API server and for the metrics' server: nobody asks them anything here."""

    async def close(self) -> None: ...

    def shutdown(self) -> None: ...

    def server_close(self) -> None: ...

    def join(self, seconds: float) -> None: ...


@pytest.mark.parametrize(("kinds", "watched"), [
    ("KafkaMigration", ["kafkamigrations"]),
    ("ConsumerGroupMigration", ["consumergroupmigrations"]),
    ("ConsumerGroupMigration,KafkaMigration", ["kafkamigrations", "consumergroupmigrations"]),
])
async def test_it_watches_the_kinds_that_it_serves(kinds: str, watched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be refused the others, and Kopf's watch tries again for ever."""
    found: list[str] = []

    async def nothing(*_: Any, **__: Any) -> Anything:
        return Anything()

    monkeypatch.setattr(run, "connect", nothing)
    monkeypatch.setattr(run.kopf, "operator", nothing)
    monkeypatch.setattr(run, "log_as", lambda _: None)
    monkeypatch.setattr(run, "start_http_server", lambda *_, **__: (Anything(), Anything()))
    monkeypatch.setattr(run.sys, "setrecursionlimit", lambda _: None)
    monkeypatch.setattr(run, "register", lambda _, resource, loops: found.append(resource[2]))
    await run.run_operator(read_settings({"POD_NAMESPACE": "kafka", "POD_NAME": "operator-0", "KINDS": kinds}))
    assert found == watched
