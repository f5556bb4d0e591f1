"""What kube-score calls critical in the chart is answered where it stands: `# kube-score CHECK: why`."""

import json
import re
import subprocess
from pathlib import Path

import yaml

from apiserver.charts import CHART, ROOT, rendered

CRITICAL = 1


def criticals(*values: str) -> set[str]:
    """The checks that an object of the chart fails; of a kind that kube-score does not know, none."""
    built = subprocess.run([ROOT / "sandbox" / "build", "linters"], check=True, stdout=subprocess.PIPE, text=True)
    judged = subprocess.run([Path(built.stdout.strip()) / "kube-score", "score", "--output-format", "json", "-"],
                            input=yaml.safe_dump_all(rendered(*values)), stdout=subprocess.PIPE, text=True)
    objects = json.loads(judged.stdout)
    assert {"Deployment", "Pod"} <= {each["type_meta"]["kind"] for each in objects}
    return {check["check"]["id"] for each in objects for check in each["checks"]
            if check["grade"] == CRITICAL and not check["skipped"]}


def test_each_critical_is_answered_and_each_answer_is_to_one() -> None:
    text = "".join(path.read_text() for path in sorted((CHART / "templates").rglob("*.yaml")))
    answered = set(re.findall(r"#.*kube-score ([a-z-]+): \S+", text))
    off = criticals("networkPolicy.ingress=false")
    on = criticals("networkPolicy.egress=true", "podDisruptionBudget.enabled=true")
    assert off | on == answered
    assert "networkpolicy-targets-pod" in on - off
