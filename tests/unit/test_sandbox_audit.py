"""The judge of the sandbox test: it must find an operator that acts before its record."""

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.audit import acts_before_record, evictions, requests

OPERATOR = "system:serviceaccount:demo:switchover"


def event(second: int, verb: str, resource: str, name: str, body: Any, *, code: int = 200, by: str = OPERATOR) -> str:
    plural, _, subresource = resource.partition("/")
    return json.dumps(
        {
            "stageTimestamp": f"2026-11-21T20:00:{second:02d}.000000Z",
            "verb": verb,
            "user": {"username": by},
            "objectRef": {"resource": plural, "subresource": subresource, "name": name},
            "responseStatus": {"code": code},
            "requestObject": body,
        }
    )


def record(second: int, pod: str, uid: str) -> str:
    status = {"nodes": [{"name": pod, "evicting": uid}, {"name": "kafka-9"}]}
    body = [{"op": "test", "path": "/metadata/uid", "value": "x"}, {"op": "add", "path": "/status", "value": status}]
    return event(second, "patch", "kafkamigrations/status", "kafka", body)


def evict(second: int, pod: str, uid: str, code: int = 201) -> str:
    body = {"kind": "Eviction", "deleteOptions": {"preconditions": {"uid": uid}}}
    return event(second, "create", "pods/eviction", pod, body, code=code)


def delete(second: int, pod: str, uid: str) -> str:
    return event(second, "delete", "pods", pod, {"kind": "DeleteOptions", "preconditions": {"uid": uid}})


@pytest.mark.parametrize(
    ("lines", "guilty"),
    [
        ([record(1, "kafka-0", "a"), evict(2, "kafka-0", "a")], 0),
        ([record(1, "kafka-0", "a"), delete(2, "kafka-0", "a")], 0),
        ([evict(1, "kafka-0", "a"), record(2, "kafka-0", "a")], 1),
        ([record(1, "kafka-0", "a"), evict(2, "kafka-0", "b")], 1),
        ([record(1, "kafka-1", "a"), evict(2, "kafka-0", "a")], 1),
        ([delete(1, "kafka-0", "a")], 1),
        ([evict(1, "kafka-0", "a", code=429)], 0),
    ],
)
def test_an_act_needs_an_earlier_record_of_that_very_pod(tmp_path: Path, lines: list[str], guilty: int) -> None:
    log = tmp_path / "audit.log"
    log.write_text("\n".join(lines) + "\n")
    assert len(acts_before_record(requests(log, OPERATOR))) == guilty


def test_other_accounts_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(event(1, "delete", "pods", "kafka-0", {}, by="system:admin") + "\n")
    assert evictions(requests(log, OPERATOR)) == []
