"""The ends of plans: the soak, and a group without members."""

from switchover.api.consumer_group_migration import ConsumerGroupMigrationStep as Name
from switchover.engine.gate import Gate, Verdict, passed, wait
from switchover.groups.picture import Picture
from switchover.groups.reading import group_of, pods_of, samples
from switchover.kafka.group import GroupState
from switchover.reasons.groups import GROUP_NOT_EMPTY, PODS_ENDING
from switchover.reasons.walk import SOAKING


def check_soaked(picture: Picture) -> Verdict:
    """The group has been watched for spec.soakSeconds with every member moved."""
    since = picture.entered.get(Name.SETTLE, picture.now)
    soaked, wanted = picture.now - since, float(picture.spec.soak_seconds)
    if soaked < wanted:
        return wait(SOAKING, "the group is watched before rollback is given up", subject=picture.spec.group,
                    observed=f"{soaked:.0f} s", threshold=f"{wanted:.0f} s", unblocks="nothing: this wait ends by itself")
    return passed(f"watched for {soaked:.0f} s")


def check_empty(picture: Picture) -> Verdict:
    """Every member has left: only then does the coordinator take the group by the other protocol, whatever its policy."""
    group = group_of(picture)
    if pods := [pod.name for _, _, pod in pods_of(picture)]:
        return wait(PODS_ENDING, f"{len(pods)} pods are still there", subject=pods[0], observed=len(pods), threshold=0,
                    unblocks="they end")
    if group.members or group.state not in (GroupState.EMPTY, GroupState.DEAD):
        named = group.members[0].client_id if group.members else group.name
        return wait(GROUP_NOT_EMPTY, f"group {group.name} still has {len(group.members)} members", subject=named,
                    observed=group.state, threshold=GroupState.EMPTY,
                    unblocks="members that did not leave time out; one that stays runs outside of spec.workloads")
    return passed("the group is empty")


SOAKED: Gate[Picture] = Gate("Soaked", check_soaked)
EMPTY: Gate[Picture] = Gate("GroupEmpty", check_empty, samples=samples)
