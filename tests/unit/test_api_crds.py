"""The rendered CRDs: as checked in, structural, and bounded everywhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from switchover.api import crds
from switchover.api.schema import Model
from switchover.api.status import UNSEEN

ROOT = Path(__file__).parents[2]
CHECKED_IN = ROOT / "crds"
CHART = ROOT / "helm" / "switchover" / "files" / "crds"
ORDERED = ("rollout.steps", "tolerations", "waitingFor", "history", "findings")
"""Lists of objects whose order matters and whose items have no name."""
KUBERNETES_OWN = ("apiVersion", "kind")
AFFINITY = "spec.controllers.template.affinity."
"""Kubernetes' own as well: lists without names, and namespaces of other pods."""

FILES = crds.files()
Schema = dict[str, Any]


def schema_of(crd: Schema) -> Schema:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema of the tree, with its path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{path}.{name}".lstrip("."))
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from walk(schema[key], f"{path}[]")


def every_field() -> Iterator[tuple[str, Schema]]:
    for crd in crds.definitions():
        yield from walk(schema_of(crd))


@pytest.mark.parametrize("directory", [CHECKED_IN, CHART], ids=["crds", "chart"])
def test_checked_in_files_are_as_the_models_say(directory):
    assert crds.differences(directory) == []


def test_a_changed_missing_or_left_over_file_fails_the_check(tmp_path, capsys):
    assert crds.main(["--write", str(tmp_path)]) == 0
    assert crds.main(["--check", str(tmp_path)]) == 0
    first, second = sorted(tmp_path.iterdir())
    first.write_text(first.read_text().replace("maxItems: 20", "maxItems: 21"))
    second.rename(tmp_path / "old.yaml")
    assert crds.main(["--check", str(tmp_path)]) == 1
    complaint = capsys.readouterr().err
    assert f"{first} differs from the models: run make crds" in complaint
    assert f"{second} is missing" in complaint
    assert f"{tmp_path / 'old.yaml'} is no CRD of the models" in complaint


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_files_are_small_plain_yaml(text):
    assert len(text.encode()) < 256 * 1024
    assert "&id" not in text
    assert yaml.safe_load(text)["kind"] == "CustomResourceDefinition"


def test_there_is_one_crd_for_each_resource():
    names = {crd["metadata"]["name"]: crd["spec"]["names"]["shortNames"] for crd in crds.definitions()}
    assert names == {
        "kafkamigrations.switchover.dev": ["kmig"],
        "consumergroupmigrations.switchover.dev": ["cgmig"],
    }


def test_schemas_are_structural():
    for path, schema in every_field():
        assert not schema.keys() & {"$ref", "$defs", "oneOf", "allOf", "const", "title", "propertyNames"}, path
        if schema.get("x-kubernetes-int-or-string"):
            assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
        else:
            assert "anyOf" not in schema, path
            assert isinstance(schema["type"], str), path
        assert "null" not in str(schema.get("type")), path


def test_nowhere_may_any_field_stand():
    """What nests without end ends Kopf's watch, and with it the migrations of everybody in the namespace."""
    assert [path for path, schema in every_field() if "x-kubernetes-preserve-unknown-fields" in schema] == []


def unbounded(path: str, schema: Schema) -> str | None:
    """What is missing for the schema to be bounded."""
    wanted: tuple[str, ...] = ()
    match schema.get("type"):
        case "string" if "enum" not in schema and schema.get("format") != "date-time":
            wanted = ("maxLength",)
        case "integer" | "number":
            wanted = ("minimum", "maximum")
        case "array":
            wanted = ("maxItems", "x-kubernetes-list-type")
        case "object" if "additionalProperties" in schema:
            wanted = ("maxProperties",)
        case "object" if "properties" not in schema:
            wanted = ("properties",)
        case None:
            wanted = ("x-kubernetes-int-or-string", "maxLength", "pattern")
    missing = [keyword for keyword in wanted if keyword not in schema]
    return f"{path} lacks {', '.join(missing)}" if missing else None


def test_every_string_number_list_and_map_is_bounded():
    complaints = [unbounded(path, schema) for path, schema in every_field() if path not in KUBERNETES_OWN]
    assert [complaint for complaint in complaints if complaint] == []
    assert len(complaints) > 300


def test_lists_of_objects_are_maps_unless_their_order_matters():
    for path, schema in every_field():
        if schema.get("type") != "array" or schema["items"].get("type") != "object":
            continue
        if path.endswith(ORDERED) or path.startswith(AFFINITY):
            assert schema["x-kubernetes-list-type"] == "atomic", path
        else:
            assert schema["x-kubernetes-list-type"] == "map", path
            (key,) = schema["x-kubernetes-list-map-keys"]
            assert key == ("type" if path.endswith("conditions") else "name"), path
            assert key in schema["items"]["required"], path


def test_every_field_is_described():
    bare = [
        path
        for path, schema in every_field()
        if not schema.get("description")
        and path
        and not path.startswith((*KUBERNETES_OWN, "metadata"))
        # The items of a list of plain values, the values of a map and the two halves themselves need none.
        and not path.endswith("[]")
        and path not in ("spec", "status")
    ]
    assert bare == []


def test_durations_are_integers_with_their_unit_in_the_name():
    for path, schema in every_field():
        name = path.rsplit(".", 1)[-1]
        if name.lower().endswith(("timeout", "duration", "interval", "patience", "period", "delay")):
            pytest.fail(f"{path} is a duration without a unit")
        if name.endswith("Seconds"):
            assert schema["type"] == "integer", path


def test_no_reference_carries_a_namespace():
    assert [path for path, _ in every_field() if "namespace" in path.lower() and not path.startswith(AFFINITY)] == []


def test_the_status_says_by_default_that_nothing_was_observed():
    for crd in crds.definitions():
        status = schema_of(crd)["properties"]["status"]
        assert status["default"] == UNSEEN
        assert status["default"].keys() <= status["properties"].keys()
        defaults = {path for path, schema in walk(status) if path and "default" in schema}
        assert defaults == {"observedGeneration"}


def test_rules_say_in_one_line_what_it_must_be():
    rules = [rule for _, schema in every_field() for rule in schema.get("x-kubernetes-validations", ())]
    assert len(rules) > 40
    for rule in rules:
        assert rule["message"].startswith("must "), rule
        assert "\n" not in rule["message"], rule


@pytest.mark.parametrize("crd", crds.definitions(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_the_spec_is_frozen_by_a_rule_for_each_part_that_may_not_change(crd):
    schema = schema_of(crd)
    changeable = {
        "desiredState",
        "holds",
        "approvals",
        "acceptedRisks",
        "backups",
        "windows",
        "gates",
        "rollout",
        "readinessPolicy",
        "onFailure",
        "handOver",
        "rehearsal",
        "soakSeconds",
        "zookeeperRetentionSeconds",
    }
    frozen = {rule["fieldPath"].removeprefix(".spec.") for rule in schema["x-kubernetes-validations"]}
    assert frozen == schema["properties"]["spec"]["properties"].keys() - changeable


def test_columns_are_those_of_the_design():
    for crd in crds.definitions():
        columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
        always = [column["name"].upper() for column in columns if not column.get("priority")]
        assert always == ["PHASE", "STEP", "PROGRESS", "ETA", "WAITING-FOR", "ROLLBACK", "AGE"]
        assert (columns[-1]["name"], columns[-1]["jsonPath"]) == ("Summary", ".status.summary"), "-o wide, as it is long"


def test_inlining_keeps_a_field_s_own_words_over_those_of_its_type():
    class Inner(Model):
        """What it is."""

        size: int = 1

    class Outer(Model):
        """Holds it."""

        inner: Inner | None = None
        """What it is for."""

    schema = Outer.model_json_schema(by_alias=True)
    inlined = crds.inline(schema, schema.pop("$defs"))
    assert inlined["properties"]["inner"] == {
        "description": "What it is for.",
        "type": "object",
        "properties": {"size": {"type": "integer", "format": "int64", "default": 1}},
    }
