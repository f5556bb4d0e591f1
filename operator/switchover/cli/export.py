"""`switchover export`: what belongs into Git after Finalize, as YAML. Nothing is written to the cluster."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import yaml

from switchover.answers.clock import WallClock
from switchover.answers.errors import Refused
from switchover.cli.command import Place
from switchover.cli.kube import connected
from switchover.cli.objects import KAFKA_MIGRATION, bare, read_migration
from switchover.cluster import names
from switchover.cluster.controllers import manifests
from switchover.cluster.door import brokers
from switchover.cluster.door.mount import SCRIPT_KEY
from switchover.cluster.ending import own_configuration
from switchover.cluster.ending.export import manifest_of, runs_the_same, secret_manifest, stateful_set_manifest
from switchover.cluster.status import AFTER_FINALIZE
from switchover.kubernetes.client.migrations import KubernetesMigrations
from switchover.kubernetes.client.workloads import KubernetesWorkloads
from switchover.kubernetes.json_patch import unchanged
from switchover.kubernetes.ports import Migrations, Workloads
from switchover.text.visible import printable


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the export with what must be said of it; without a manifest it is only spoken of."""

    comment: str
    manifest: Mapping[str, Any] | None = None

    @property
    def file(self) -> str:
        """The file's name in a directory."""
        assert self.manifest is not None
        return f"{self.manifest['metadata']['name']}.{self.manifest['kind'].lower()}.yaml"

    def __str__(self) -> str:
        comment = "".join(f"# {printable(line)}\n" for line in self.comment.split("\n"))
        if self.manifest is None:
            return comment
        return comment + yaml.dump(dict(self.manifest), Dumper=_Yaml, sort_keys=False, width=10_000)


async def export_from_here(place: Place, name: str, with_secrets: bool) -> list[Document]:
    """Export a migration with a connection of our own."""
    clock = WallClock()
    async with connected(place) as server:
        migrations = KubernetesMigrations(server, clock, KAFKA_MIGRATION.name, KAFKA_MIGRATION.plural)
        return await export(bare(name, KAFKA_MIGRATION), migrations, KubernetesWorkloads(server, clock), with_secrets)


async def export(name: str, migrations: Migrations, workloads: Workloads, with_secrets: bool) -> list[Document]:
    """Every object of the new cluster. Refused before Finalize is done: until then the operator changes them still."""
    migration = await read_migration(name, migrations)
    step = migration.status.progress.step
    if step not in AFTER_FINALIZE:
        raise Refused(f"KafkaMigration {name} stands at {step or 'its beginning'}: what it leaves behind is exported after"
                      " Finalize; until then Git keeps what the brokers were before")
    controllers, sets = migration.spec.controllers.name, [brokers.name for brokers in migration.spec.brokers]
    documents = [await _secret(workloads, workload, name, with_secrets) for workload in (*sets, controllers)]
    for api_version, kind in (("v1", "Service"), ("policy/v1", "PodDisruptionBudget")):
        live = await _live(workloads, api_version, kind, controllers)
        documents.append(Document(f"{kind} of the controllers.", manifest_of(live, name)))
    own = await _stateful_set(
        workloads, name, controllers, None,
        "The controllers. Their pods are replaced only when they are deleted (OnDelete): after a change of this template\n"
        "delete one at a time, the leader of the quorum last.")
    documents += [own, *_used_by(own)]
    for workload in sets:
        original = await workloads.original(names.original(workload, migration.status.attempt))
        documents.append(await _own_settings(workloads, workload, original, migration.status.cluster_id))
        documents.append(await _stateful_set(
            workloads, name, workload, original,
            "Brokers on KRaft. They read the configuration that they always had, and at each start the Secret's script\n"
            "edits it: change it where it was, and in the Secret what the edits set."))
    return documents


def as_stream(documents: Sequence[Document]) -> str:
    """All of it as one YAML stream."""
    return "---\n".join(str(document) for document in documents)


def into_directory(documents: Sequence[Document], directory: Path) -> Iterator[str]:
    """One file an object, over what is there; says what it does, line by line. Refused where files cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for document in documents:
            if document.manifest is None:
                yield str(document).rstrip()
                continue
            path = directory / document.file
            _replace(path, str(document), 0o600 if document.manifest["kind"] == "Secret" else 0o644)
            yield f"wrote {path}"
    except OSError as error:
        raise Refused(f"cannot write to {directory}: {error.strerror}") from None


def _replace(path: Path, text: str, mode: int) -> None:
    """A new file in the place of what is there: an old one would keep its mode, its readers and where it links to."""
    draft = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        with open(draft, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
            file.write(text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


# --- the objects --------------------------------------------------------------------------------------------------------


async def _live(workloads: Workloads, api_version: str, kind: str, name: str) -> Mapping[str, Any]:
    found = await workloads.manifest(api_version, kind, name)
    if found is None:
        raise Refused(f"{kind} {name} does not exist, and the cluster needs it: restore it first")
    return found


async def _secret(workloads: Workloads, workload: str, migration: str, with_secrets: bool) -> Document:
    secret = names.node_files(workload)
    comment = f"Secret {secret}: the script at the start of StatefulSet {workload}'s pods, and the edits of each."
    live = await _live(workloads, "v1", "Secret", secret)
    if with_secrets:
        return Document(f"{comment}\nIt may hold the controllers' own password: encrypt it before it goes into Git.",
                        secret_manifest(live, migration))
    return Document(f"{comment}\nLeft out, since it may hold a password. It stays in the cluster whether Git has it or not,"
                    " as long as nobody prunes it.\nTo keep it with SOPS, Sealed Secrets or the like:"
                    " switchover export --secrets=include")


def _used_by(controllers: Document) -> Iterator[Document]:
    """What is spoken of alone: what of the brokers' their pods go on using."""
    assert controllers.manifest is not None
    metadata, spec = controllers.manifest["metadata"], controllers.manifest["spec"]
    if borrows := manifests.keep_borrowed(spec["template"], metadata["name"], metadata["namespace"]):
        yield Document(borrows.replace("; ", ";\n").replace(": kubectl", ":\n  kubectl"))


async def _own_settings(workloads: Workloads, workload: str, original: Mapping[str, Any] | None,
                        cluster_id: str) -> Document:
    """What is spoken of alone: the way to a configuration without ours."""
    files = await workloads.node_files(names.node_files(workload))
    edits = {pod: text for pod, text in files.items() if pod != SCRIPT_KEY}
    found = brokers.stored(original) if original is not None else None
    lines = own_configuration.lines(edits, found.script if isinstance(found, brokers.Brokers) else "", cluster_id)
    return Document("\n".join((
        f"Or nothing of Switchover's in the brokers of StatefulSet {workload}: give their own configuration (the",
        "chart's values, the file, the variables) what stands below, and apply that while HandOver waits for its",
        "approval. The brokers are then rolled to it, canary first, and the Secret goes.",
        *(f"  {line}" for line in lines))))


async def _stateful_set(workloads: Workloads, migration: str, name: str, original: Mapping[str, Any] | None,
                        comment: str) -> Document:
    """The StatefulSet, tidied only as far as the API server itself says that nothing would change."""
    live = await _live(workloads, "apps/v1", "StatefulSet", name)
    manifest = stateful_set_manifest(live, migration, original)
    applied = await workloads.preview_stateful_set(name, (
        unchanged(live["metadata"]["generation"]),
        {"op": "replace", "path": "/spec", "value": manifest["spec"]}))
    if not runs_the_same(applied, live):
        manifest["spec"] = {**live["spec"], "updateStrategy": manifest["spec"]["updateStrategy"]}
    return Document(comment, manifest)


class _Yaml(yaml.SafeDumper):
    """YAML as people write it: files as blocks, lists under their key, nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Yaml.add_representer(str, _text)
