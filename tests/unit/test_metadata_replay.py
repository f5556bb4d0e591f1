"""The fold of metadata records into an image, transactions included."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchover.metadata.cluster_replay import InconsistentLogError
from switchover.metadata.decode import Record
from switchover.metadata.parity import BrokerRegistration, LogImage, MigrationState
from switchover.metadata.replay import Replay


def broker(broker_id: int, epoch: int, *, zk: bool = True, fenced: bool = True) -> Record:
    return Record("RegisterBroker", 3, {
        "broker_id": broker_id, "broker_epoch": epoch, "is_migrating_zk_broker": zk, "fenced": fenced,
    })


def fencing(broker_id: int, epoch: int, change: int) -> Record:
    return Record("BrokerRegistrationChange", 0, {"broker_id": broker_id, "broker_epoch": epoch, "fenced": change})


def controller(controller_id: int, *, ready: bool) -> Record:
    return Record("RegisterController", 0, {"controller_id": controller_id, "zk_migration_ready": ready})


def state(value: int) -> Record:
    return Record("ZkMigrationState", 0, {"zk_migration_state": value})


def feature(name: str, level: int) -> Record:
    return Record("FeatureLevel", 0, {"name": name, "feature_level": level})


def begin(name: str | None = "ZK Migration") -> Record:
    return Record("BeginTransaction", 0, {"name": name})


END = Record("EndTransaction", 0, {})
ABORT = Record("AbortTransaction", 0, {"reason": "Controller failover"})
NO_OP = Record("NoOp", 0, {})


def replayed(*records: Record) -> Replay:
    replay = Replay()
    for offset, record in enumerate(records):
        replay.apply(record, offset)
        replay.advance(offset, 1)
    return replay


def image(*records: Record) -> LogImage:
    return replayed(*records).image()


def test_nothing_read_is_nothing_known() -> None:
    assert Replay().image() == LogImage(-1, 0, None, None, {}, {}, None, 0)


def test_a_migration_from_the_first_record_to_dual_write() -> None:
    seen = image(
        begin("Bootstrap records"), feature("metadata.version", 21), state(2), END,
        controller(3000, ready=True), controller(3001, ready=False), controller(3001, ready=True),
        broker(1, 10), fencing(1, 10, -1), NO_OP,
        begin(), NO_OP, state(1), END,
    )
    assert seen == LogImage(
        offset=13,
        epoch=1,
        migration_state=MigrationState.MIGRATION,
        metadata_version=21,
        controllers={3000: True, 3001: True},
        brokers={1: BrokerRegistration(epoch=10, migrating_zk=True, fenced=False)},
        open_transaction=None,
        aborted_transactions=0,
    )


def test_an_open_transaction_is_named_and_its_records_wait_for_the_end() -> None:
    before = (state(2), broker(1, 10))
    inside = (begin(), state(1), fencing(1, 10, -1))
    running = image(*before, *inside)
    assert running.open_transaction == "ZK Migration"
    assert running.offset == 4
    assert running.migration_state is MigrationState.PRE_MIGRATION
    assert running.brokers[1].fenced
    ended = image(*before, *inside, END)
    assert ended.open_transaction is None
    assert ended.migration_state is MigrationState.MIGRATION
    assert not ended.brokers[1].fenced


def test_an_aborted_transaction_leaves_no_trace_but_its_count() -> None:
    seen = image(state(2), begin(), state(1), broker(7, 3), ABORT, NO_OP, begin(), ABORT)
    assert seen.migration_state is MigrationState.PRE_MIGRATION
    assert seen.brokers == {}
    assert seen.open_transaction is None
    assert seen.aborted_transactions == 2


def test_after_an_abort_the_copy_can_run_again() -> None:
    seen = image(state(2), begin(), state(1), ABORT, begin(), state(1), END)
    assert (seen.migration_state, seen.aborted_transactions) == (MigrationState.MIGRATION, 1)


def test_a_transaction_without_a_name_is_open_all_the_same() -> None:
    assert image(begin(None)).open_transaction == "unnamed"


@pytest.mark.parametrize(("change", "fenced"), [(-1, False), (0, True), (1, True)])
def test_changes_of_a_fenced_registration(change: int, fenced: bool) -> None:
    assert image(broker(1, 10), fencing(1, 10, change)).brokers[1].fenced is fenced


def test_fence_and_unfence_records() -> None:
    unfenced = (broker(1, 10), Record("UnfenceBroker", 0, {"id": 1, "epoch": 10}))
    assert not image(*unfenced).brokers[1].fenced
    assert image(*unfenced, Record("FenceBroker", 0, {"id": 1, "epoch": 10})).brokers[1].fenced


def test_the_last_registration_counts_and_unregistering_ends_it() -> None:
    records = (broker(1, 10), fencing(1, 10, -1), broker(1, 25, zk=False))
    assert image(*records).brokers == {1: BrokerRegistration(epoch=25, migrating_zk=False, fenced=True)}
    gone = Record("UnregisterBroker", 0, {"broker_id": 1, "broker_epoch": 25})
    assert image(*records, gone).brokers == {}


def test_other_features_do_not_pass_for_the_metadata_version() -> None:
    assert image(feature("kraft.version", 1)).metadata_version is None


@pytest.mark.parametrize(("records", "why"), [
    ((begin(), begin()), "offset 1: a transaction begins inside 'ZK Migration'"),
    ((END,), "offset 0: a transaction ends that never began"),
    ((NO_OP, ABORT), "offset 1: a transaction ends that never began"),
    ((fencing(1, 10, -1),), "offset 0: broker 1 changes with epoch 10, but it is not registered"),
    ((broker(1, 11), fencing(1, 10, -1)), "offset 1: .* registered with epoch 11"),
    ((broker(1, 10), fencing(1, 10, 5)), "offset 1: broker 1: unknown fencing 5"),
    ((state(9),), "offset 0: unknown ZkMigrationState 9"),
    ((begin(), state(9), NO_OP, END), "offset 1: unknown ZkMigrationState 9"),
])
def test_a_log_that_contradicts_itself_names_the_offset(records: tuple[Record, ...], why: str) -> None:
    with pytest.raises(InconsistentLogError, match=why):
        image(*records)


def test_an_image_does_not_change_afterwards() -> None:
    replay = replayed(broker(1, 10), controller(3000, ready=True))
    early = replay.image()
    replay.apply(broker(2, 11), 2)
    replay.apply(controller(3000, ready=False), 3)
    assert set(early.brokers) == {1}
    assert early.controllers == {3000: True}


def changes() -> st.SearchStrategy[Record]:
    ids: Any = st.integers(1, 3)
    return st.one_of(
        st.builds(lambda i, e, z: broker(i, e, zk=z), ids, st.integers(1, 99), st.booleans()),
        st.builds(lambda i, r: controller(i, ready=r), ids, st.booleans()),
        st.builds(state, st.integers(0, 3)),
        st.builds(lambda level: feature("metadata.version", level), st.integers(1, 25)),
    )


def content(seen: LogImage) -> tuple[object, ...]:
    return seen.migration_state, seen.metadata_version, seen.controllers, seen.brokers


@given(st.lists(changes()), st.lists(changes()), st.lists(changes()))
def test_a_transaction_shows_all_or_nothing(before: list[Record], inside: list[Record], after: list[Record]) -> None:
    assert content(image(*before, begin(), *inside)) == content(image(*before))
    assert content(image(*before, begin(), *inside, END, *after)) == content(image(*before, *inside, *after))
    assert content(image(*before, begin(), *inside, ABORT, *after)) == content(image(*before, *after))
    assert content(image(*before, begin(), *inside, ABORT, begin(), *after, END)) == content(image(*before, *after))
