"""`switchover export` against a real API server: what it prints is applied, by either kind of apply, and nothing restarts.

The StatefulSet controller computes the revision of the pod template here as it does everywhere: the same revision is
the same pods.
"""

import base64
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from apiserver.finalized import MIGRATION, Finalized, Kubectl
from switchover.answers.errors import Refused
from switchover.cli.export import as_stream, export, into_directory
from switchover.cluster import names, template
from switchover.cluster.door import mount
from switchover.cluster.door.mount import DOOR
from switchover.kubernetes.client.api_server import ApiServer
from switchover.kubernetes.gitops import LAST_APPLIED

MANIFESTS = Path(__file__).parents[2] / "sandbox" / "manifests" / "kafka.yaml"
CLIENT_SIDE = ("apply",)
SERVER_SIDE = ("apply", "--server-side", "--force-conflicts", "--field-manager=git")


def applied(*wanted: tuple[tuple[str, ...], ...], names: str = "cluster") -> pytest.MarkDecorator:
    """How what is there was applied, and, where the test asks, how the export is then: these in every run."""
    words = {CLIENT_SIDE: "client-side", SERVER_SIDE: "server-side"}
    return pytest.mark.parametrize(names, [
        pytest.param(*each, id=f"applied {'-then '.join(words[how] for how in each)}",
                     marks=[] if each in wanted else pytest.mark.long)
        for each in product(words, repeat=len(names.split(",")))], indirect=["cluster"])


@pytest_asyncio.fixture
async def cluster(request: pytest.FixtureRequest, server: ApiServer, kubectl: Kubectl, namespace: str,
                  crds: object) -> Finalized:
    finalized = Finalized(server, kubectl, namespace)
    finalized.apply(request.param, MANIFESTS.read_text())
    finalized.apply(CLIENT_SIDE, yaml.safe_dump(MIGRATION))
    await finalized.live("kafka")
    await finalized.take_over()
    await finalized.record("HandOver")
    return finalized


@applied((CLIENT_SIDE, CLIENT_SIDE), (SERVER_SIDE, SERVER_SIDE), names="cluster,how")
async def test_an_apply_of_the_export_restarts_nothing(cluster: Finalized, how: tuple[str, ...]) -> None:
    before = {name: await cluster.live(name) for name in ("kafka", "kafka-controller")}
    assert await cluster.applied_by() == (), "what was applied before the migration does not count"
    text = as_stream(await cluster.export(with_secrets=True))
    cluster.apply(how, text)
    for name, was in before.items():
        now = await cluster.live(name)
        assert now["spec"]["template"] == was["spec"]["template"]
        assert now["status"]["updateRevision"] == was["status"]["updateRevision"] != ""
        assert now["metadata"]["labels"][names.MIGRATION_LABEL] == "to-kraft"
    assert before["kafka"]["spec"]["updateStrategy"] == {"type": "OnDelete"}
    brokers = await cluster.live("kafka")
    assert brokers["spec"]["updateStrategy"] == {"type": "RollingUpdate"}, "as the user's manifest says"
    assert brokers["metadata"]["annotations"][names.CLAIM] == "uid-of-the-migration", "the operator's to release"
    assert await cluster.applied_by() == (("git",) if how is SERVER_SIDE else ("client-side apply",))
    again = await cluster.live("kafka")
    cluster.apply(how, text)
    assert (await cluster.live("kafka"))["metadata"]["generation"] == again["metadata"]["generation"]


@applied((CLIENT_SIDE, SERVER_SIDE), (SERVER_SIDE, CLIENT_SIDE), names="cluster,how")
async def test_giving_back_after_the_export_was_applied_restarts_nothing(cluster: Finalized, how: tuple[str, ...]) -> None:
    """What HandOver does when Git leaves the strategy to the operator; then the export once more."""
    was = await cluster.live("kafka")
    text = as_stream(await cluster.export())
    without_strategy = text.replace("  updateStrategy:\n    type: RollingUpdate\n", "")
    assert without_strategy != text
    cluster.apply(how, without_strategy)
    strategy = template.restore_strategy(await cluster.workload(), await cluster.original())
    await cluster.workloads.patch("apps/v1", "StatefulSet", "kafka", strategy)
    workload = await cluster.workload()
    assert workload.claimed_by == "uid-of-the-migration"
    await cluster.workloads.patch("apps/v1", "StatefulSet", "kafka", template.release(workload))
    cluster.apply(how, text)
    now = await cluster.live("kafka")
    assert now["status"]["updateRevision"] == was["status"]["updateRevision"]
    assert now["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    assert names.CLAIM not in now["metadata"].get("annotations", {})


@applied((CLIENT_SIDE,))
async def test_an_apply_of_the_old_manifest_is_no_evidence_any_more(cluster: Finalized) -> None:
    cluster.apply(CLIENT_SIDE, as_stream(await cluster.export()))
    assert await cluster.applied_by() == ("client-side apply",)
    cluster.apply(CLIENT_SIDE, MANIFESTS.read_text())
    assert await cluster.applied_by() == ()


@applied((SERVER_SIDE,))
async def test_the_revision_does_tell_a_change_of_the_template(cluster: Finalized) -> None:
    """Without this the test above would prove nothing."""
    was = await cluster.live("kafka")
    documents = {document.manifest["metadata"]["name"]: document.manifest for document in await cluster.export()
                 if document.manifest is not None and document.manifest["kind"] == "StatefulSet"}
    changed = yaml.safe_load(yaml.safe_dump(documents["kafka"]))
    changed["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] += 1
    cluster.apply(("replace",), yaml.safe_dump(changed))
    assert (await cluster.live("kafka"))["status"]["updateRevision"] != was["status"]["updateRevision"]


@applied((CLIENT_SIDE,))
async def test_a_person_can_read_it(cluster: Finalized) -> None:
    text = as_stream(await cluster.export())
    for noise in ("managedFields", "resourceVersion", "uid:", "status:", LAST_APPLIED, names.CLAIM, "creationTimestamp",
                  "terminationMessagePath", "dnsPolicy", "protocol: TCP", "defaultMode: 420"):
        assert noise not in text, noise
    assert text.count("defaultMode: 365") == 2, "a script that is no program starts nothing"
    found = [document for document in yaml.safe_load_all(text) if document is not None]
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [
        ("Service", "kafka-controller"), ("PodDisruptionBudget", "kafka-controller"),
        ("StatefulSet", "kafka-controller"), ("StatefulSet", "kafka")]
    assert found[-1]["spec"]["template"]["spec"]["containers"][0]["command"] == next(
        each for each in yaml.safe_load_all(MANIFESTS.read_text()) if each["kind"] == "StatefulSet"
    )["spec"]["template"]["spec"]["containers"][0]["command"]
    assert "    exec /opt/kafka/bin/kafka-server-start.sh" in text, "a script stays a script"


@applied((SERVER_SIDE,))
async def test_secrets_are_left_out_and_named_unless_asked_for(cluster: Finalized, tmp_path: Path) -> None:
    without = as_stream(await cluster.export())
    assert "kind: Secret" not in without
    for secret in ("kafka-switchover", "kafka-controller-switchover"):
        assert f"# Secret {secret}: " in without
    assert "mode C" not in without
    before = await cluster.workloads.node_files("kafka-controller-switchover")
    lines = list(into_directory(await cluster.export(with_secrets=True), tmp_path / "git"))
    files = sorted(path.name for path in (tmp_path / "git").iterdir())
    assert files == ["kafka-controller-switchover.secret.yaml", "kafka-controller.poddisruptionbudget.yaml",
                     "kafka-controller.service.yaml", "kafka-controller.statefulset.yaml", "kafka-switchover.secret.yaml",
                     "kafka.statefulset.yaml"]
    written = [line for line in lines if line.startswith("wrote ")]
    assert sorted(written) == sorted(f"wrote {tmp_path / 'git' / name}" for name in files)
    used, settings = (line for line in lines if line not in written)
    assert "annotate --overwrite configmap/kafka-config helm.sh/resource-policy=keep" in used
    assert "\n#   node.id: kafka-0 0, kafka-1 1, kafka-2 2" in settings, "what one's own configuration must say"
    secret = tmp_path / "git" / "kafka-switchover.secret.yaml"
    assert secret.stat().st_mode & 0o077 == 0
    assert "  kafka-0: |\n    mode C\n    set node.id=0\n" in secret.read_text()
    assert yaml.safe_load(secret.read_text())["stringData"][mount.SCRIPT_KEY] == DOOR
    binary = yaml.safe_load((tmp_path / "git" / "kafka-controller-switchover.secret.yaml").read_text())
    assert base64.b64decode(binary["data"]["keystore.jks"]) == b"\xfe\xed"
    cluster.apply(CLIENT_SIDE, "---\n".join(path.read_text() for path in (tmp_path / "git").iterdir()))
    assert await cluster.workloads.node_files("kafka-controller-switchover") == before
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot write to"):
        list(into_directory(await cluster.export(), tmp_path / "file"))


@applied((CLIENT_SIDE,))
async def test_before_finalize_is_done_there_is_nothing_to_export(cluster: Finalized) -> None:
    for step in ("", "Soak", "Finalize"):
        await cluster.record(step)
        with pytest.raises(Refused, match="exported after Finalize"):
            await cluster.export()


@applied((CLIENT_SIDE,))
async def test_what_is_missing_is_told(cluster: Finalized) -> None:
    cluster.kubectl("delete", "poddisruptionbudget", "kafka-controller")
    with pytest.raises(Refused, match="PodDisruptionBudget kafka-controller does not exist"):
        await cluster.export()
    with pytest.raises(Refused, match="KafkaMigration nothing does not exist"):
        await export("nothing", cluster.migrations, cluster.workloads, with_secrets=False)
