"""What the gate of a coordinator's capacity says, on facts read as the operator reads them, and when groups are Stable."""

from dataclasses import replace

from adapters.eventually import eventually
from switchover.answers.ask import known
from switchover.answers.clock import WallClock
from switchover.engine.gate import Verdict
from switchover.groups.gates.convergence import CAPACITY
from switchover.groups.observe.observer import READ_SECONDS
from switchover.groups.picture import Facts
from switchover.kafka.client.connection import connected
from switchover.kafka.client.coordinator import Coordinator
from switchover.kafka.client.groups import WireGroups
from switchover.kafka.group import GroupState
from switchover.network.addresses import Address
from switchover.network.credentials import Access
from switchover.network.security import security
from unit.group_pictures import moment, spec_of

BATCH = 2                   # pods of a batch in the gate's picture: what a step adds


async def capacity(servers: str, group: str, limit: int) -> Verdict:
    """What the gate says to a batch of the group's migration, on facts read as the operator reads them."""
    groups, clock = WireGroups(Access(servers)), WallClock()
    picture = moment("Canary", spec=spec_of(
        group=group, rollout={"steps": [{"pods": BATCH}]}, gates={"maxConsumersPerCoordinator": limit}))
    return CAPACITY.check(replace(picture, facts=Facts(
        group=await known(groups.describe(group), READ_SECONDS, clock),
        coordinated=await known(groups.coordinated(), READ_SECONDS, clock))))


async def stable(server: Address, groups: int) -> None:
    """Once so many groups are Stable and no other has members."""
    async def states() -> list[str]:
        async with connected(server, security({}), 30) as connection:
            coordinator = await Coordinator.at(server, connection)
            return [group.group_state for group in (await coordinator.listed()).values()]

    await eventually(states, lambda seen: [state for state in seen if state != GroupState.EMPTY]
                     == [GroupState.STABLE] * groups)
