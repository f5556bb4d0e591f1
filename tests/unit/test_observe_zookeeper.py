"""What a ZooKeeper server that is asked for its clients tells, and what silence after it means."""

from typing import Any, cast

from fakes.clock import Clock
from switchover.answers.errors import NotListening, Unreachable
from switchover.answers.observed import Known, Unknown
from switchover.cluster.observe.observer import GONE_SECONDS, Observer
from switchover.network.addresses import Address

SERVER = Address("zookeeper", 2181)


class Server:
    """Answers as it is told to."""

    def __init__(self) -> None:
        self.answer: int | Exception = 0

    def servers(self) -> tuple[Address, ...]:
        return (SERVER,)

    async def connections(self, _: Address) -> int:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_silence_tells_nothing_but_right_after_it_was_said_that_nobody_is_there() -> None:
    clock, server = Clock(), Server()
    observer = Observer("kafka", cast(Any, None), cast(Any, None), cast(Any, None), cast(Any, clock))
    observer.zookeeper = cast(Any, server)

    async def told(answer: int | Exception, later: float = 1.0) -> object:
        server.answer, clock.seconds = answer, clock.seconds + later
        found = (await observer._connections(True))[str(SERVER)]
        return found.value if isinstance(found, Known) else found

    silent = Unreachable("timed out")
    assert isinstance(await told(silent), Unknown)
    assert await told(NotListening("refused")) is None
    assert await told(silent) is None
    assert await told(silent, GONE_SECONDS) == Unknown("timed out")
    assert await told(NotListening("refused")) is None
    assert await told(3) == 3
    assert isinstance(await told(silent), Unknown), "somebody was there since"
