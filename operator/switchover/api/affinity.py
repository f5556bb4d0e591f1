"""Kubernetes' own affinity, field by field: in what nests without end one object could end the watch of all the others."""

from typing import Annotated, Literal

from pydantic import Field

from switchover.api.schema import Model

Key = Annotated[str, Field(max_length=317)]
Values = Annotated[tuple[Annotated[str, Field(max_length=63)], ...], Field(max_length=64)]
Keys = Annotated[tuple[Key, ...], Field(max_length=16)]
Weight = Annotated[int, Field(ge=1, le=100)]
SelectedLabels = Annotated[dict[Key, Annotated[str, Field(max_length=63)]], Field(max_length=32)]
Namespaces = Annotated[tuple[Annotated[str, Field(max_length=63)], ...], Field(max_length=64)]


class NodeRequirement(Model):
    """What a node's label or field must hold."""

    key: Key
    """The label's key, or the field."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the values count."""
    values: Values | None = None
    """The values; none for Exists and DoesNotExist, one number for Gt and Lt."""


NodeRequirements = Annotated[tuple[NodeRequirement, ...], Field(max_length=16)]


class NodeTerm(Model):
    """Nodes that meet all of these."""

    match_expressions: NodeRequirements | None = None
    """Requirements of the node's labels."""
    match_fields: NodeRequirements | None = None
    """Requirements of the node's fields."""


class PreferredNodes(Model):
    """Nodes that are preferred."""

    weight: Weight
    """How much; 1 to 100."""
    preference: NodeTerm
    """Which."""


class NodeSelection(Model):
    """Nodes that meet one of several terms."""

    node_selector_terms: Annotated[tuple[NodeTerm, ...], Field(max_length=16)]
    """The terms."""


class NodeAffinity(Model):
    """On which nodes a pod may or should run."""

    required_during_scheduling_ignored_during_execution: NodeSelection | None = None
    """Nodes on which it may run."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredNodes, ...], Field(max_length=16)] | None = None
    """Nodes on which it should."""


class LabelRequirement(Model):
    """What a label must hold."""

    key: Key
    """The label's key."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the values count."""
    values: Values | None = None
    """The values; none for Exists and DoesNotExist."""


class Selector(Model):
    """Objects by their labels; an empty one means all."""

    match_labels: SelectedLabels | None = None
    """Labels that they have."""
    match_expressions: Annotated[tuple[LabelRequirement, ...], Field(max_length=16)] | None = None
    """Requirements of their labels."""


class PodTerm(Model):
    """Pods that are near: in the same node, zone or whatever the topology key names."""

    topology_key: Key
    """The label of the nodes that says what is near."""
    label_selector: Selector | None = None
    """The pods. Absent: none."""
    match_label_keys: Keys | None = None
    """Labels in which they are as this pod is."""
    mismatch_label_keys: Keys | None = None
    """Labels in which they are not."""
    namespace_selector: Selector | None = None
    """Their namespaces, by labels."""
    namespaces: Namespaces | None = None
    """Their namespaces, by name. Absent, as the selector: this one."""


class PreferredPods(Model):
    """Pods whose nearness, or distance, is preferred."""

    weight: Weight
    """How much; 1 to 100."""
    pod_affinity_term: PodTerm
    """Which."""


class PodAffinity(Model):
    """Near which pods, or far from which, a pod may or should run."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodTerm, ...], Field(max_length=16)] | None = None
    """Those that count always."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredPods, ...], Field(max_length=16)] | None = None
    """Those that count where it is possible."""


class Affinity(Model):
    """Kubernetes' own affinity."""

    node_affinity: NodeAffinity | None = None
    """On which nodes."""
    pod_affinity: PodAffinity | None = None
    """Near which pods."""
    pod_anti_affinity: PodAffinity | None = None
    """Far from which pods."""
