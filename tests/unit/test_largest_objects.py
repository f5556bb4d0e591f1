"""A budget for a pass: whatever a spec or a status may hold, one object costs the others nothing that they feel.

Every list, map, string and number of both kinds is filled as far as its schema allows, alone and (long) two of them
together: reading, deciding, recording, figures, story and report of it are timed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import pytest

from apiserver.examples import documented_of
from patience import within_processor_time
from switchover.cli.objects import KINDS, Found
from switchover.cli.report import report_of
from switchover.cli.report_page import json_of, markdown
from switchover.cluster.kind import kafka_migrations
from switchover.engine.policy import NOTHING_MORE
from switchover.engine.reconcile import Reconciler, _Memory
from switchover.groups.kind import consumer_group_migrations
from unit import group_pictures, pictures
from unit.group_pictures import workload_of
from unit.largest import LARGEST_OBJECT, Place, Schema, filled, places, schema_of, size, type_of
from unit.pictures import ACTIVE, NOW, Mode
from unit.test_report import WRITTEN
from unit.told_walks import told_walk

SECONDS = 1.0
"""0.25 on a quiet machine; one whose memory is slow takes three times that. What grows by the square takes far more."""
FREE = frozenset({"approvals", "gates", "holds", "rollout", "soakSeconds", "windows", "zookeeperRetentionSeconds"})
"""Parts of a spec that may change while pods are moved; whatever else is large is so from Preflight on."""


@dataclass(frozen=True)
class Sort:
    """One kind: specs of which one has each field, an object with a record, and the moments to decide in."""

    kind: Any
    specs: tuple[dict[str, Any], ...]
    recorded: dict[str, Any]
    moments: tuple[Any, ...]
    schema: Schema

    def passes(self, what: str, resource: Mapping[str, Any]) -> None:
        """All that is worked out of it in a pass, and for a report."""
        recorded = what.startswith("status")
        free = recorded or all(each.split(".")[1] in FREE for each in what.split(" and "))
        reconciler: Any = Reconciler(self.kind, "kafka", "me", None, None, None, None, None, None)   # type: ignore[arg-type]
        migration = self.kind.read(resource)
        for moment in self.moments if free else self.moments[:1]:
            picture = self.kind.picture(migration, "kafka", NOW) if recorded else moment
            picture = replace(picture, spec=migration.spec, facts=moment.facts, now=NOW)
            found = reconciler._work_out(migration, picture, _Memory(picture.uid, None, None, last_pass=NOW - 1), "")
            assert found.after.status.phase
        [kind] = (each for each in KINDS if each.name == resource["kind"])
        report = report_of(Found(kind, dict(resource)), (), ["0.1.0"], "0.1.0", WRITTEN)
        assert all((markdown(report), json_of(report)))

    def objects(self, part: str, at_once: int = 1) -> Iterator[tuple[str, dict[str, Any]]]:
        """With so many places at their largest together, as far as such an object is stored at all."""
        found = [(place, schema) for place, schema in places(self.schema) if place[0] == part]
        if at_once > 1:
            found = [each for each in found if type_of(each[1]) != "string" and "affinity" not in each[0]]
        for together in combinations(found, at_once):
            made = self._made(together)
            if made is not None and size(made) < LARGEST_OBJECT:
                yield " and ".join(".".join(place) for place, _ in together), made

    def _made(self, together: tuple[tuple[Place, Schema], ...]) -> dict[str, Any] | None:
        for made in self.specs if together[0][0][0] == "spec" else (self.recorded,):
            for place, schema in together:
                made = made and filled(made, place, schema, self.schema, self.kind.read)
            if made is not None:
                return made
        return None


def _with(resource: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """An object as the API server has it."""
    metadata = {"namespace": "kafka", "uid": pictures.UID, "generation": 1, "resourceVersion": "7", **resource["metadata"]}
    return {**resource, "metadata": metadata, "spec": {**resource["spec"], **spec}, "status": {}}


def clusters() -> Sort:
    full = documented_of("KafkaMigration")[1]
    moved = pictures.moment("MoveBrokers", (Mode.KRAFT, Mode.MIGRATION), Mode.MIGRATION_CONTROLLER, ("kafka-0",), ACTIVE)
    brokers = [{"name": "kafka", "start": {"script": "/opt/kafka/bin/kafka-server-start.sh"}}]
    return Sort(kafka_migrations(NOTHING_MORE, "switchover:1"),
                (_with(full), _with(full, backups={"skipReason": "none"}, brokers=brokers, rollout=PERCENT)),
                told_walk("cluster done").resource, (pictures.moment("Preflight"), moved), schema_of("KafkaMigration"))


def groups() -> Sort:
    whole = documented_of("ConsumerGroupMigration")
    more = {key: clusters().specs[0]["spec"][key] for key in ("windows", "approvals")}
    approvals = [{**more["approvals"][0], "name": "HandOver"}]
    change = {"image": "a", "env": [{"name": "a", "value": "b"}], "args": ["a"], "patch": "spec: {}"}
    rolled = {**workload_of(), "template": change, "bridge": change}
    specs = tuple(_with(each, windows=more["windows"], holds=["HandOver"], approvals=approvals, workloads=[
        rolled if "protocol" in each["spec"] else {**each["spec"]["workloads"][0], "name": "orders"}]) for each in whole)
    specs = (*specs, _with(specs[0], rollout=PERCENT))
    return Sort(consumer_group_migrations(NOTHING_MORE), specs, told_walk("group done").resource,
                (group_pictures.moment("Preflight", ""), group_pictures.moment("Rollout", "OOOOTT", (4, 5))),
                schema_of("ConsumerGroupMigration"))


PERCENT = {"steps": [{"percent": 10}]}
SORTS = {"KafkaMigration": clusters, "ConsumerGroupMigration": groups}


@pytest.mark.parametrize("part", ["spec", "status"])
@pytest.mark.parametrize("kind", SORTS)
def test_no_field_at_its_largest_takes_long(kind, part):
    sort, tried = SORTS[kind](), set()
    for what, resource in sort.objects(part):
        tried.add(what)
        with within_processor_time(SECONDS, what):
            sort.passes(what, resource)
    missing = {".".join(place) for place, _ in places(sort.schema) if place[0] == part} - tried
    assert not missing, "fields that were not filled"


@pytest.mark.long
@pytest.mark.parametrize("part", ["spec", "status"])
@pytest.mark.parametrize("kind", SORTS)
def test_no_two_fields_at_their_largest_take_long(kind, part):
    sort, tried = SORTS[kind](), 0
    for what, resource in sort.objects(part, 2):
        tried += 1
        with within_processor_time(SECONDS, what):
            sort.passes(what, resource)
    assert tried > 100
