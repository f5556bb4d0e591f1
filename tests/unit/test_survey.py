"""Which rights Preflight asks for: those of its kind, and to Secrets by their names."""

from collections.abc import Callable
from typing import Any

import pytest

from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.client.survey import GROUP_RIGHTS, RIGHTS, KubernetesSurvey

Attributes = dict[str, str]


class Authorizer(ApiServer):
    """Allows what `allowed` says, and notes what it was asked."""

    def __init__(self, allowed: Callable[[Attributes], bool]) -> None:
        self.namespace = "kafka"
        self._allowed = allowed
        self.asked: list[Attributes] = []

    async def request(self, method: str, path: str, body: Any = None, **parameters: Any) -> dict[str, Any]:
        attributes = body["spec"]["resourceAttributes"]
        self.asked.append(attributes)
        return {"status": {"allowed": self._allowed(attributes)}}


async def test_secrets_are_asked_for_by_name() -> None:
    server = Authorizer(lambda asked: asked["name"] != "b-switchover" or asked["verb"] == "create")
    missing = await KubernetesSurvey(server).missing_rights(["a-switchover", "b-switchover"])
    assert missing == ("get secrets b-switchover", "patch secrets b-switchover", "delete secrets b-switchover")
    named = {(asked["resource"], asked["name"]) for asked in server.asked if asked["name"]}
    assert named == {("secrets", "a-switchover"), ("secrets", "b-switchover")}
    assert {asked["namespace"] for asked in server.asked} == {"kafka"}


@pytest.mark.parametrize(("rights", "secrets", "count"), [
    (RIGHTS, ["a"], 4), (GROUP_RIGHTS, ["a"], 1), (GROUP_RIGHTS, [], 0)])
async def test_without_credentials_no_secret_is_asked_for(rights: Any, secrets: list[str], count: int) -> None:
    server = Authorizer(lambda asked: False)
    missing = await KubernetesSurvey(server, rights).missing_rights(secrets)
    assert len([each for each in missing if " secrets" in each]) == count
    others = {f"{verb} {resource}{'.' + group if group else ''}"
              for (group, resource), verbs in rights.items() for verb in verbs if resource != "secrets"}
    assert {each for each in missing if " secrets" not in each} == others
