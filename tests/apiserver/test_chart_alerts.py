"""The chart's alerts, judged by Prometheus' own promtool: each fires when it should, and not before or after."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from apiserver.charts import judged, of, rendered
from switchover.cluster.kind import kafka_migrations
from switchover.engine.policy import Policy
from switchover.groups.kind import consumer_group_migrations
from switchover.process.metrics import Metrics
from unit.statuses import Object, all_objects

RULES = ("monitoring.rules.enabled=true", "docs=https://git.example.com/docs")
CASES = Path(__file__).with_name("alerts.yaml")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The file that the Prometheus operator makes of the PrometheusRule."""
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump(of(rendered(*RULES), "PrometheusRule")["spec"]))
    return file


def test_promtool_finds_nothing(rules: Path) -> None:
    answer = judged("promtool", "check", "rules", "--lint", "all", "--lint-fatal", str(rules))
    assert answer.returncode == 0, answer.stdout


def test_each_alert_fires_when_it_should_and_is_quiet_otherwise(rules: Path) -> None:
    cases = shutil.copy(CASES, rules.parent)
    answer = judged("promtool", "test", "rules", str(cases))
    assert answer.returncode == 0, answer.stdout
    told = [(each["alertname"], bool(each["exp_alerts"]))
            for case in yaml.safe_load(CASES.read_text())["tests"] for each in case["alert_rule_test"]]
    alerts = {rule["alert"] for group in yaml.safe_load(rules.read_text())["groups"] for rule in group["rules"]}
    assert {(alert, fires) for alert in alerts for fires in (True, False)} == set(told), "each alert has a case of both"


KINDS = {"KafkaMigration": kafka_migrations(Policy(), ""), "ConsumerGroupMigration": consumer_group_migrations(Policy())}


def called_for(found: Object) -> Iterator[str]:
    """The alerts of an object, by its conditions."""
    status = found["status"]
    progress, failure = status.get("progress") or {}, (status.get("rollback") or {}).get("failure")
    true = {each["type"] for each in status.get("conditions", ()) if each["status"] == "True"}
    if "Stalled" in true and progress.get("step", "Preflight") == "Preflight" and progress.get("direction") != "Backward":
        yield "SwitchoverPreflightStalled"
    elif "Stalled" in true and status["phase"] != "RolledBack":
        yield "SwitchoverStalled"
    if failure:
        yield "SwitchoverAutomaticRollback"
    if "AwaitingApproval" in true:
        yield "SwitchoverAwaitsApproval"


def series_of(objects: list[Object]) -> Iterator[dict[str, str]]:
    """What a scrape of an operator says of them that has just begun, as promtool takes it: its time begins in 1970."""
    registry = CollectorRegistry()
    metrics = Metrics(registry, lambda: 0.0)
    for number, each in enumerate(objects):
        kind: Any = KINDS[each["kind"]]
        metrics.migrations(each["kind"], "shop").update(f"m{number}", f"u{number}", kind.figures(kind.read(each), None), {})
    for family in registry.collect():
        for sample in family.samples if family.name.startswith("switchover_") else ():
            written = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
            value = 0 if sample.name.endswith("_since_timestamp_seconds") else sample.value
            yield {"series": f"{sample.name}{{{written}}}", "values": f"{float(value)}x7"}


def test_whoever_must_act_is_called_whatever_the_phase(rules: Path) -> None:
    objects = [each for each in all_objects() if each["spec"]["readinessPolicy"] == "OnCompletion"]
    wanted = sorted((alert, number) for number, each in enumerate(objects) for alert in called_for(each))
    assert {alert for alert, _ in wanted} == {
        "SwitchoverStalled", "SwitchoverPreflightStalled", "SwitchoverAutomaticRollback", "SwitchoverAwaitsApproval"}
    assert {objects[number]["status"]["phase"] for _, number in wanted} >= {
        "Stalled", "RollingBack", "RolledBack", "AwaitingApproval", "Succeeded"}
    firing = [{"labels": f'{{alertname="{alert}", migration="u{number}"}}', "value": 1} for alert, number in wanted]
    (rules.parent / "phases.yaml").write_text(yaml.safe_dump({
        "rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [{
            "interval": "1m", "input_series": list(series_of(objects)), "promql_expr_test": [{
                "expr": 'count by (alertname, migration) (ALERTS{alertstate="firing", migration!=""})', "eval_time": "6m",
                "exp_samples": firing}]}]}))
    answer = judged("promtool", "test", "rules", str(rules.parent / "phases.yaml"))
    assert answer.returncode == 0, answer.stdout
