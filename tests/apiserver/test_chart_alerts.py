"""The chart's alerts, judged by Prometheus' own promtool: each fires when it should, and not before or after."""

import shutil
from pathlib import Path

import pytest
import yaml

from apiserver.charts import judged, of, rendered

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
