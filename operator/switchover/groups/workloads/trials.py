"""Each change of a template, to be tried on the API server before anything is touched: a dry run with its admission.

What it keeps otherwise than it was written would never be seen to be done, or be written again and again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from switchover.answers.observed import Known
from switchover.api.consumer_group_migration import Workload
from switchover.groups.picture import Picture
from switchover.groups.workloads.change import Unsupported, Wanted, changed, differing
from switchover.kubernetes.members import MemberWorkload


@dataclass(frozen=True, slots=True)
class Trial:
    """One change, named "workload.template" or "workload.bridge", of a workload as it is now."""

    name: str
    source: MemberWorkload
    container: str
    wanted: Wanted

    @property
    def operations(self) -> Sequence[Mapping[str, Any]]:
        """The JSON patch to try: no fence, since nothing is stored."""
        return ({"op": "replace", "path": "/spec/template", "value": dict(self.wanted)},)

    def kept_otherwise(self, template: Mapping[str, Any]) -> tuple[str, ...]:
        """Where the template that the API server would keep is not what is wanted."""
        return differing(replace(self.source, template=template), self.container, self.wanted)


def trials(picture: Picture) -> Iterator[Trial]:
    """Of every workload that can be seen, where pods are replaced at all."""
    for workload in picture.spec.workloads if picture.replaces else ():
        source = picture.source(workload.name)
        if isinstance(source, Known):
            yield from trials_of(workload, source.value)


def trials_of(workload: Workload, source: MemberWorkload) -> Iterator[Trial]:
    """Those of one workload; none where its change cannot even be made, which is a finding of its own."""
    given = {"bridge": workload.bridge, "template": workload.template}
    try:
        made = {name: changed(source.template, workload.container, change)
                for name, change in given.items() if change is not None}
    except Unsupported:
        return
    for name, template in made.items():
        wanted = Wanted(template, (source.template, *made.values()))
        yield Trial(f"{workload.name}.{name}", source, workload.container, wanted)
