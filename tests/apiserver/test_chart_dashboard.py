"""The chart's dashboard, judged by Grafana's own schema, and its queries by Prometheus on what the operator tells."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from apiserver.charts import judged, of, rendered
from switchover.engine.figures import Figure
from switchover.process.metrics import METRICS, Metrics

SHOWN = "monitoring.dashboard.enabled=true"


def config_map(*values: str) -> dict[str, Any]:
    return of(rendered(SHOWN, *values), "ConfigMap", "switchover-dashboard")


def dashboard() -> dict[str, Any]:
    (text,) = config_map()["data"].values()
    found: dict[str, Any] = json.loads(text)
    return found


def expressions() -> list[str]:
    """Of all panels, with the values that Grafana puts in for its variables: All, here."""
    found = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    for variable, value in (("$namespace", ".*"), ("$name", ".*"), ("$__rate_interval", "5m")):
        found = [each.replace(variable, value) for each in found]
    assert not [each for each in found if "$" in each]
    return found


def told() -> Iterator[dict[str, str]]:
    """Every series that the operator tells of two migrations, as promtool takes it."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: 0.0)
    metrics.oldest_pass.labels("KafkaMigration").set(3)
    figures = [Figure(name, ("word",) * len(metric.labels), 1) for name, metric in METRICS.items()]
    for name in ("orders", "payments"):
        metrics.migrations("KafkaMigration", "shop").update(name, f"uid-of-{name}", figures, {"AllInSync": 1})
    for family in registry.collect():
        for sample in family.samples:
            labels = {"namespace": "kafka", "job": "switchover", **sample.labels}        # as a PodMonitor adds them
            written = ",".join(f'{key}="{value}"' for key, value in labels.items())
            yield {"series": f"{sample.name}{{{written}}}", "values": f"{float(sample.value)}x10"}


def unread(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """What of a JSON value is not found in another; an empty list may be left out."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            if value != []:
                yield from unread(value, found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and found is not None:
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from unread(one, other, f"{path}[{number}]")
    elif wanted != found:
        yield path


def test_grafana_knows_every_field_of_it_and_takes_every_value() -> None:
    wanted = dashboard()
    answer = judged("dashboard", text=json.dumps(wanted))
    assert answer.returncode == 0, answer.stdout
    assert list(unread(wanted, json.loads(answer.stdout))) == []


@pytest.mark.parametrize(("good", "bad", "words"), [
    ('"legendFormat"', '"legendFormatt"', "unexpected field 'legendFormatt'"),
    ('"mergeValues"', '"mergeValue"', "unexpected field 'mergeValue'"),
    ('"timeseries"', '"timeserie"', 'there is no panel of type "timeserie"'),
    ('"panels": [', '"panels": {}, "other": [', "cannot unmarshal object"),
])
def test_a_wrong_dashboard_is_found(good: str, bad: str, words: str) -> None:
    answer = judged("dashboard", text=json.dumps(dashboard()).replace(good, bad))
    assert (answer.returncode, words in answer.stdout) == (1, True)


def test_each_query_finds_something_in_what_the_operator_tells(tmp_path: Path) -> None:
    cases = [{"expr": f"count({each}) > bool 0", "eval_time": "10m", "exp_samples": [{"labels": "{}", "value": 1}]}
             for each in expressions()]
    file = tmp_path / "dashboard.yaml"
    file.write_text(yaml.safe_dump({"tests": [{"interval": "1m", "input_series": list(told()), "promql_expr_test": cases}]}))
    answer = judged("promtool", "test", "rules", str(file))
    assert answer.returncode == 0, answer.stdout
    assert len(cases) > 20


def test_every_metric_of_a_migration_that_is_told_is_shown_or_left_out_on_purpose() -> None:
    left_out = {"switchover_zk_migration_state", "switchover_node_assigned_mode", "switchover_broker_metadata_type",
                "switchover_group_time_lag_censored", "switchover_group_partitions"}
    text = " ".join(expressions())
    assert {name for name in METRICS if name not in text} == left_out


def test_the_sidecar_finds_it_by_a_label() -> None:
    labels = config_map("monitoring.dashboard.labels.team=kafka")["metadata"]["labels"]
    assert {"grafana_dashboard": "1", "team": "kafka"}.items() <= labels.items()


def test_panels_have_a_title_a_place_of_their_own_and_say_what_they_show() -> None:
    panels = dashboard()["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"], panel["title"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
