"""What a tag publishes: the workflow, the version, and that the operator's dependencies are there for both architectures."""

import base64
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yaml"
ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


def built(program: str) -> Path:
    """The directory of what sandbox/build builds under that name."""
    done = subprocess.run([ROOT / "sandbox" / "build", program], check=True, stdout=subprocess.PIPE, text=True)
    return Path(done.stdout.strip())


def linted(text: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([built("linters") / "actionlint", "-no-color", "-shellcheck=", "-pyflakes=", "-"],
                          input=text, capture_output=True, text=True)


def steps() -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(WORKFLOW.read_text())["jobs"].values() for step in job["steps"]]


def made() -> list[str]:
    """What the workflow's steps have make do, word for word."""
    return [found for step in steps() for found in re.findall(r"\bmake [^\n)]+", step.get("run", ""))]


def test_the_linter_finds_nothing() -> None:
    answer = linted(WORKFLOW.read_text())
    assert answer.returncode == 0, answer.stdout
    wrong = linted(WORKFLOW.read_text().replace("needs: check", "needs: checks"))
    assert wrong.returncode == 1
    assert 'needs job "checks"' in wrong.stdout


def test_each_action_is_pinned_and_no_job_has_rights_that_it_does_not_name() -> None:
    text = WORKFLOW.read_text()
    used = re.findall(r"uses: (.+)", text)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v[\d.]+", each) for each in used)
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == {
        "check": {"contents": "read"}, "image": {"contents": "read"}, "publish": {
            "contents": "write", "id-token": "write", "attestations": "write"}}


def test_make_knows_what_it_is_asked_for() -> None:
    commands = made()
    assert {target for command in commands for target in command.split()[1:] if re.fullmatch(r"[a-z-]+", target)} >= {
        "check", "image-push", "image-index", "image-digest", "sbom", "wheel", "chart", "version"}
    for command in commands:
        words = re.sub(r"\${{ matrix.architecture }}", "arm64", command).split()
        subprocess.run([*words, "--dry-run", "REGISTRY=registry.example/team"], cwd=ROOT, check=True, capture_output=True)


def test_wheel_and_chart_are_what_the_workflow_uploads() -> None:
    """By the targets that it makes; the bills of materials are those of test_sbom.py."""
    helm = built("k8s") / "helm"
    shutil.rmtree(ROOT / "build/dist", ignore_errors=True)
    address = "https://git.example.com/switchover/blob/v1/docs"
    command = ["make", "wheel", "chart", f"HELM={helm}", f"RUNBOOKS={address}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    wheel, chart = sorted((ROOT / "build/dist").iterdir())
    assert (chart.name, wheel.name) == (f"switchover-{version()}.tgz", f"switchover-{version()}-py3-none-any.whl")
    values = subprocess.run([helm, "show", "values", chart], check=True, capture_output=True, text=True).stdout
    assert yaml.safe_load(values)["docs"] == address
    uploaded = [step["with"]["subject-path"] for step in steps() if "subject-path" in step.get("with", {})]
    assert uploaded == ["build/dist/*"]


def test_both_architectures_are_built_and_get_one_name() -> None:
    matrix = yaml.safe_load(WORKFLOW.read_text())["jobs"]["image"]["strategy"]["matrix"]
    assert {*matrix["architecture"]} == ARCHITECTURES.keys()

    def told(*words: str) -> str:
        command = ["make", "--dry-run", "REGISTRY=registry.example/team", "IMAGE_ENGINE=buildah", *words]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    name = f"registry.example/team/switchover/operator:{version()}"
    for architecture in ARCHITECTURES:
        own = f"ARCHITECTURE={architecture}"
        assert f"buildah push  {name}-{architecture}" in told("image-push", own)
        assert f"--tag {name}-{architecture} --platform linux/{architecture} " in told("image", own)
        assert f"{name}-{architecture}" in told("image-index").partition(f"--tag {name} ")[2]
    own = told("image")
    assert "--platform" not in own
    assert f"--label org.opencontainers.image.version={version()} " in own
    assert "--label org.opencontainers.image.revision=$(git describe" in own


def version() -> str:
    found: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return found


def test_all_that_is_published_bears_one_version() -> None:
    chart = yaml.safe_load((ROOT / "helm" / "switchover" / "Chart.yaml").read_text())
    said = subprocess.run(["make", "--silent", "version"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {chart["version"], chart["appVersion"], said.strip()} == {version()}


def test_what_artifact_hub_shows_of_the_chart_is_what_is_in_it() -> None:
    chart = yaml.safe_load((ROOT / "helm" / "switchover" / "Chart.yaml").read_text())
    assert all(isinstance(value, str) for value in chart["annotations"].values()), "Helm takes texts alone"
    told = {name.removeprefix("artifacthub.io/"): value for name, value in chart["annotations"].items()}
    crds = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    shown = yaml.safe_load(told["crds"])
    assert {(each["kind"], each["version"], each["name"]) for each in shown} == {
        (crd["spec"]["names"]["kind"], served["name"], crd["metadata"]["name"])
        for crd in crds for served in crd["spec"]["versions"]}
    assert all(each["displayName"] and each["description"] for each in shown)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (told["license"], told["prerelease"]) == (project["license"], str(version().startswith("0.")).lower())
    form, _, drawn = chart["icon"].partition(",")
    assert form == "data:image/svg+xml;base64", "an address would be loaded by whoever looks"
    assert ElementTree.fromstring(base64.b64decode(drawn)).tag.endswith("svg")


@pytest.mark.parametrize("machine", ARCHITECTURES.values())
def test_every_locked_package_of_the_image_has_a_wheel_for_the_architecture(machine: str, tmp_path: Path) -> None:
    """For the C library of the image's Debian. Nothing is run, and so nothing needs that machine."""
    def asked(libc: str) -> "subprocess.CompletedProcess[str]":
        command = [ROOT / "build/uv/bin/uv", "pip", "install", "--dry-run", "--require-hashes", "--no-deps", "--only-binary",
                   ":all:", "--python-version", "3.11", "--python-platform", f"{machine}-{libc}", "--target", tmp_path,
                   "--requirement", "requirements/operator.txt"]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    found = asked("manylinux_2_28")
    assert found.returncode == 0, found.stderr
    assert "+ google-re2==" in found.stderr
    assert "confluent-kafka" not in found.stderr, "librdkafka reads foreign bytes, and goes where a server sends it"
    assert "has no usable wheels" in asked("unknown-linux-musl").stderr, "on another C library it would be told"
