"""The audit log of a real run, in the words of the invariants: what is told there is judged there."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from invariants.jury import judged
from invariants.memory import Limits
from sandbox.history import events
from switchover.api.kafka_migration import NodeMode as Mode

OPERATOR = "system:serviceaccount:demo:switchover"
SPEC = {"brokers": [{"name": "kafka"}], "controllers": {"name": "kafka-controller"}, "desiredState": "Running",
        "rollout": {"steps": [{"pods": 1, "bakeSeconds": 0}]}}


def line(second: int, verb: str, resource: str, name: str, body: Any, *, code: int = 200, by: str = OPERATOR,
         uri: str = "") -> str:
    plural, _, subresource = resource.partition("/")
    target = {"resource": plural, "subresource": subresource, "name": name, "namespace": "demo"}
    return json.dumps({"stageTimestamp": f"2026-11-21T20:00:{second:02d}.000000Z", "verb": verb, "user": {"username": by},
                       "objectRef": target, "responseStatus": {"code": code}, "requestObject": body, "requestURI": uri})


def record(second: int, step: str = "EnableMigration", evicting: str = "p-1", observed: str = Mode.ZOOKEEPER,
           version: str = "",
           **more: Any) -> str:
    nodes = [{"name": "kafka-0", "assigned": Mode.MIGRATION, "evicting": evicting, "observed": observed},
             {"name": "kafka-1", "assigned": Mode.ZOOKEEPER, "observed": Mode.ZOOKEEPER},
             {"name": "kafka-controller-0", "assigned": Mode.MIGRATION_CONTROLLER, "observed": Mode.MIGRATION_CONTROLLER}]
    progress = {"step": step, "direction": "Forward", "openTime": "2026-11-21T20:00:00Z", "batch": 1,
                "batchNodes": ["kafka-0"], **more}
    status = {"progress": progress, "nodes": nodes, "observedGeneration": 1, "phase": str(second)}
    body = [{"op": "test", "path": "/metadata/uid", "value": "u-1"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version or str(second)},
            {"op": "add", "path": "/status", "value": status}]
    return line(second, "patch", "kafkamigrations/status", "kafka", body)


CREATED = line(0, "create", "kafkamigrations", "kafka", {"spec": SPEC}, by="alice", code=201)
EVICTED = line(5, "create", "pods/eviction", "kafka-0", {"deleteOptions": {"preconditions": {"uid": "p-1"}}}, code=201)


def found(tmp_path: Path, *lines: str, starts: tuple[int, ...] = ()) -> list[str]:
    log = tmp_path / "audit.log"
    log.write_text("\n".join(lines) + "\n")
    seconds = [datetime(2026, 11, 21, 20, 0, second, tzinfo=UTC).timestamp() for second in starts]
    return judged(events(log, OPERATOR, "demo", "kafka", seconds), Limits(namespace="demo"))


def test_a_lawful_log(tmp_path: Path) -> None:
    assert found(tmp_path, CREATED, record(1), EVICTED, record(9, observed=Mode.MIGRATION)) == []


@pytest.mark.parametrize(("rule", "lines"), [
    ("O4", (CREATED, record(1, evicting="p-2"), EVICTED)),
    ("O2", (CREATED, record(1, step="Rehearse"), EVICTED)),
    ("O1", (CREATED, record(1), record(2, step="Soak"))),
    ("O7", (CREATED, record(1),
            line(2, "patch", "kafkamigrations", "kafka", {"spec": {"desiredState": "Paused"}}, by="alice"),
            line(50, "create", "pods/eviction", "kafka-0", {"deleteOptions": {"preconditions": {"uid": "p-1"}}}))),
    ("O5", (CREATED, record(1), line(2, "delete", "pods", "kafka-0", {}))),
    ("K1", (CREATED, record(1, observed=Mode.KRAFT))),
    ("K6", (CREATED, record(1), line(2, "delete", "statefulsets", "zookeeper", {}))),
])
def test_what_is_broken_there_is_told(tmp_path: Path, rule: str, lines: tuple[str, ...]) -> None:
    assert [words for words in found(tmp_path, *lines) if words.startswith(f"{rule}: ")]


def test_a_record_whose_sender_was_killed_counts_when_it_took_effect(tmp_path: Path) -> None:
    killed = record(2, step="CopyMetadata", openTime=None, batchNodes=[], version="7").replace('"code": 200', '"code": 504')
    left = record(1, batchNodes=[])
    assert found(tmp_path, CREATED, left, killed, record(3, step="CopyMetadata", version="8")) == []
    refused = found(tmp_path, CREATED, left, killed, record(3, step="CopyMetadata", version="7"))
    assert [words for words in refused if words.startswith("O1: ")], "entered and opened in one record"


@pytest.mark.parametrize(("second", "rule"), [(40, "L1"), (20, "O9")])
def test_a_killed_process_owes_nothing_for_its_silence(tmp_path: Path, second: int, rule: str) -> None:
    lines = CREATED, record(1), record(second).replace(f'"phase": "{second}"', '"phase": "1"')
    assert [words for words in found(tmp_path, *lines, starts=(0,)) if words.startswith(f"{rule}: ")]
    assert found(tmp_path, *lines, starts=(0, 15)) == []


def test_a_dry_run_is_no_effect(tmp_path: Path) -> None:
    asked = line(2, "patch", "statefulsets", "zookeeper", {}, uri="/apis/apps/v1/…?dryRun=All")
    assert found(tmp_path, CREATED, record(1), asked) == []


def test_only_the_brake_may_touch_a_broker_set_while_brokers_move(tmp_path: Path) -> None:
    def strategy(value: Any) -> str:
        body = [{"op": "test", "path": "/metadata/generation", "value": 3},
                {"op": "replace", "path": "/spec/updateStrategy", "value": value}]
        return line(2, "patch", "statefulsets", "kafka", body)

    assert found(tmp_path, CREATED, record(1, step="Soak"), strategy({"type": "OnDelete"})) == []
    released = found(tmp_path, CREATED, record(1, step="Soak"), strategy({"type": "RollingUpdate"}))
    assert [words for words in released if words.startswith("O2: ")]
