"""The chart, and the sandbox's helm, which needs no API server to render it."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from patience import stretched

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "switchover"


@cache
def program() -> Path:
    """Built when it is not there."""
    built = subprocess.run([ROOT / "sandbox" / "build", "k8s"], check=True, stdout=subprocess.PIPE, text=True)
    return Path(built.stdout.strip()) / "helm"


def helm(*arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """What helm says; AssertionError when it fails, unless check=False."""
    completed = subprocess.run([program(), *arguments], capture_output=True, text=True, timeout=stretched(120))
    assert completed.returncode == 0 or not check, completed.stderr
    return completed


def judged(program: str, *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    """What promtool or dashboard (tests/monitoring) says, all of it in `stdout`."""
    built = subprocess.run([ROOT / "sandbox" / "build", "monitoring"], check=True, stdout=subprocess.PIPE, text=True)
    return subprocess.run([Path(built.stdout.strip()) / program, *arguments], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=stretched(120))


NO_CRDS = ("--set", "crds.install=false")
"""The CRDs of a test's cluster are there already (fixture `crds`), for all releases in it."""


def rendered(*values: str) -> list[dict[str, Any]]:
    """The objects of a release named switchover with these values set, but for the CRDs."""
    return [document for document in yaml.load_all(_text(*values), yaml.CSafeLoader) if document]


@cache
def _text(*values: str) -> str:
    """One start of helm for the same values."""
    settings = [word for value in values for word in ("--set", value)]
    return helm("template", "switchover", str(CHART), "--namespace", "kafka", *NO_CRDS, *settings).stdout


def of(documents: list[dict[str, Any]], kind: str, name: str = "switchover") -> dict[str, Any]:
    """The one of that kind and name."""
    (found,) = (each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def refusal(*values: str) -> str:
    """Why the chart takes no such values."""
    settings = [word for value in values for word in ("--set", value)]
    refused = helm("template", "switchover", str(CHART), *settings, check=False)
    assert refused.returncode != 0
    return refused.stderr
