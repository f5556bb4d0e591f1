"""Who else writes the workloads that a migration changes: GitOps tools and people, by their marks and managedFields.

Marks and remedies: docs/facts/kubernetes.md#gitops. Which of Flux's marks count on the live object, and which only in Git
(`ssa: IfNotPresent`), was read in fluxcd/pkg `ssa.ResourceManager.shouldSkipApply`; their values in any case, in its
`utils.AnyInMetadata`. That a mark stands in Git is seen by who applied it: the same that applied the template.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from switchover.kubernetes import names
from switchover.kubernetes.workloads import Managed, Manager
from switchover.text.command import Command, command, kubectl

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which client-side apply keeps what it was given."""
ARGO_TRACKING = "argocd.argoproj.io/tracking-id"
INSTANCE = "app.kubernetes.io/instance"
ARGO_MANAGERS = frozenset({"argocd-controller", "argocd-application-controller"})
FLUX = "Flux Kustomization"
FLUX_KUSTOMIZE = "kustomize.toolkit.fluxcd.io/"
FLUX_SSA = f"{FLUX_KUSTOMIZE}ssa"
"""The mark itself is one of a manager's parts."""
FLUX_HELM = "helm.toolkit.fluxcd.io/"
HELM = "meta.helm.sh/release-name"
FLEET = "objectset.rio.cattle.io/id"
"""Rancher's; with Helm's own mark it is Fleet's, which deploys every bundle as a release."""
WAVE = "wave.pusher.com/update-on-config-change"
RELOADER = "reloader.stakater.com/"
RELOADS = (RELOADER, f"secret.{RELOADER}", f"configmap.{RELOADER}")
MARKS = ("argocd.argoproj.io/", FLUX_KUSTOMIZE, FLUX_HELM, "meta.helm.sh/", "app.kubernetes.io/", FLEET, WAVE, *RELOADS)
"""What the labels and annotations of these tools begin with."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that applies a workload again and again.

    `reverts` says whether it reverts by itself what somebody else changed, and `quiet` that a mark on the object keeps it
    from doing so. `tolerate` and `suspend` are to be pasted: before a migration, and once something was put back.
    """

    name: str
    instance: str
    reverts: bool
    quiet: bool
    tolerate: str
    suspend: str

    def __str__(self) -> str:
        return f"{self.name} {self.instance}".strip()


def tool_of(workload: Managed, namespace: str) -> Tool | None:
    """The tool that a workload belongs to, None when it carries no mark of one."""
    marks = workload.marks
    if tracking := marks.get(ARGO_TRACKING):
        return _argo(workload, namespace, tracking.partition(":")[0])
    if any(manager.name in ARGO_MANAGERS for manager in workload.managers):
        return _argo(workload, namespace, marks.get(INSTANCE, ""))
    if release := marks.get(f"{FLUX_HELM}name"):
        there = marks.get(f"{FLUX_HELM}namespace", namespace)
        suspend = command("flux suspend helmrelease {} --namespace {}", release, there)
        return Tool("Flux HelmRelease", f"{there}/{release}", reverts=True,
                    quiet=_says(marks, f"{FLUX_HELM}driftDetection", "disabled"),
                    tolerate=_annotate(workload, namespace, f"{FLUX_HELM}driftDetection=disabled"), suspend=suspend)
    if kustomization := marks.get(f"{FLUX_KUSTOMIZE}name"):
        once = _says(marks, FLUX_SSA, "IfNotPresent") and any(
            FLUX_SSA in each.parts and each.operation == "Apply" and len(each.parts) > 1 for each in workload.managers)
        off = _says(marks, f"{FLUX_KUSTOMIZE}reconcile", "disabled") or _says(marks, FLUX_SSA, "Ignore") or once
        mark = _annotate(workload, namespace, f"{FLUX_KUSTOMIZE}reconcile=disabled")
        there = marks.get(f"{FLUX_KUSTOMIZE}namespace", namespace)
        return Tool(FLUX, f"{there}/{kustomization}", reverts=True, quiet=off, tolerate=mark, suspend=mark)
    if (bundle := marks.get(FLEET)) and HELM in marks:
        pause = ("set spec.paused: true in its GitRepo or Bundle until HandOver; with correctDrift.enabled Fleet reverts"
                 " what others change")
        return Tool("Rancher Fleet bundle", bundle, reverts=True, quiet=False, tolerate=pause, suspend=pause)
    if release := marks.get(HELM):
        wait = f"do not upgrade release {release} before HandOver, and then only with what runs in its templates or values"
        return Tool("Helm release", release, reverts=False, quiet=False, tolerate=wait, suspend=wait)
    return None


def _says(marks: Mapping[str, str], key: str, value: str) -> bool:
    return marks.get(key, "").casefold() == value.casefold()


def _argo(workload: Managed, namespace: str, mark: str) -> Tool:
    """An Application outside of Argo CD's own namespace marks what it applies as NAMESPACE_NAME, and its command line takes
    NAMESPACE/NAME (argo-cd, util/argo/argo.go). Not every writer of Argo CD's left a mark."""
    application = mark.replace("_", "/", 1)
    return Tool(
        "Argo CD Application", application, reverts=True, quiet=False,
        tolerate="ignoreDifferences: [{group: apps, kind: " + workload.kind + ", name: " + workload.name
                 + ", namespace: " + namespace + ", managedFieldsManagers: [" + names.MANAGER + "]}] and"
                 " syncPolicy: {syncOptions: [RespectIgnoreDifferences=true]} in the spec of the Application",
        suspend=command("argocd app set {} --sync-policy none", application) if application
                else "turn off automated sync in the Argo CD Application that has it")


def _annotate(workload: Managed, namespace: str, mark: str) -> Command:
    return kubectl(namespace, "annotate --overwrite {} {} {}", workload.kind.lower(), workload.name, mark)


def reloads(workload: Managed) -> str:
    """The mark by which Stakater's Reloader rewrites a template when a Secret or ConfigMap changes; "" for none."""
    return next((mark for mark, value in sorted(workload.marks.items()) if mark.startswith(RELOADS)
                 and value.casefold() != "false" and not mark.endswith(("/ignore", "/last-reloaded-from"))), "")


def last_writer(workload: Managed, parts: Iterable[str]) -> Manager | None:
    """Who but us wrote one of these parts last, None when the API server names nobody."""
    wanted = frozenset(parts)
    others = [manager for manager in workload.managers if wanted & manager.parts and manager.name != names.MANAGER]
    return max(others, key=lambda manager: manager.at, default=None)


def called(writer: Manager | None) -> str:
    """The writer as a sentence names it."""
    return "somebody" if writer is None else f"{writer.name} ({writer.operation.lower()})"


def written_by(workload: Managed, parts: Iterable[str], namespace: str) -> tuple[str, str]:
    """Who but us wrote one of these parts last, and what stops them."""
    writer, tool = last_writer(workload, parts), tool_of(workload, namespace)
    return called(writer), tool.suspend if tool is not None else "stop whatever applies another manifest"
