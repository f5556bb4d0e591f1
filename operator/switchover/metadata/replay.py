"""Replays metadata records into a `LogImage`.

Follows Kafka's `MetadataBatchLoader` and `ClusterDelta`: what stands between BeginTransaction and EndTransaction
becomes visible at once at the end, an AbortTransaction undoes it, and a record that contradicts the state is an error.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from switchover.metadata.cluster_replay import ClusterReplay, InconsistentLogError
from switchover.metadata.decode import Record
from switchover.metadata.parity import BrokerRegistration, LogImage, MigrationState

METADATA_VERSION = "metadata.version"
_FENCING = {-1: False, 0: None, 1: True}                    # BrokerRegistrationChange; None leaves it as it was


class Replay:
    """The state after the records given so far, from offset 0 on. Useless once an error was raised: start again."""

    def __init__(self) -> None:
        self._offset = -1
        self._epoch = 0
        self._state = _State()
        self._before: _State | None = None                  # the open transaction, as it were never begun
        self._transaction: str | None = None
        self._aborted = 0

    def apply(self, record: Record, offset: int) -> None:
        """Take in the record at `offset`. Raises InconsistentLogError."""
        match record.type:
            case "BeginTransaction":
                if self._transaction is not None:
                    raise InconsistentLogError(offset, f"a transaction begins inside {self._transaction!r}")
                self._transaction = record.fields["name"] or "unnamed"
                self._before = self._state.copy()
            case "EndTransaction":
                self._close_transaction(offset)
            case "AbortTransaction":
                self._state = self._close_transaction(offset)
                self._aborted += 1
            case _:
                self._state.apply(record, offset)

    def advance(self, offset: int, epoch: int) -> None:
        """Everything up to `offset`, of leader epoch `epoch`, is read: also control records, which carry no state."""
        self._offset, self._epoch = offset, epoch

    def image(self) -> LogImage:
        state = self._before or self._state
        return LogImage(
            offset=self._offset,
            epoch=self._epoch,
            migration_state=state.migration,
            metadata_version=state.features.get(METADATA_VERSION),
            controllers=dict(state.controllers),
            brokers=dict(state.brokers),
            open_transaction=self._transaction,
            aborted_transactions=self._aborted,
            metadata=state.cluster.image(),
        )

    def _close_transaction(self, offset: int) -> "_State":
        """The state from before the transaction."""
        before, self._before, self._transaction = self._before, None, None
        if before is None:
            raise InconsistentLogError(offset, "a transaction ends that never began")
        return before


class _State:
    """What the records say, transactions aside."""

    def __init__(self) -> None:
        self.migration: MigrationState | None = None
        self.features: dict[str, int] = {}
        self.controllers: dict[int, bool] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.cluster = ClusterReplay()

    def copy(self) -> "_State":
        other = copy(self)
        other.features, other.controllers = dict(self.features), dict(self.controllers)
        other.brokers, other.cluster = dict(self.brokers), self.cluster.copy()
        return other

    def apply(self, record: Record, offset: int) -> None:
        if self.cluster.apply(record.type, record.fields, offset):
            return
        if (apply := _APPLY.get(record.type)) is not None:
            apply(self, record.fields, offset)

    def _register_broker(self, fields: Mapping[str, Any], offset: int) -> None:
        self.brokers[fields["broker_id"]] = BrokerRegistration(
            epoch=fields["broker_epoch"], migrating_zk=fields["is_migrating_zk_broker"], fenced=fields["fenced"],
        )

    def _unregister_broker(self, fields: Mapping[str, Any], offset: int) -> None:
        self.brokers.pop(fields["broker_id"], None)

    def _change_registration(self, fields: Mapping[str, Any], offset: int) -> None:
        if fields["fenced"] not in _FENCING:
            raise InconsistentLogError(offset, f"broker {fields['broker_id']}: unknown fencing {fields['fenced']}")
        fenced = _FENCING[fields["fenced"]]
        self._set_fenced(fields["broker_id"], fields["broker_epoch"], fenced, offset)

    def _fence(self, fields: Mapping[str, Any], offset: int) -> None:
        self._set_fenced(fields["id"], fields["epoch"], True, offset)

    def _unfence(self, fields: Mapping[str, Any], offset: int) -> None:
        self._set_fenced(fields["id"], fields["epoch"], False, offset)

    def _set_fenced(self, broker: int, epoch: int, fenced: bool | None, offset: int) -> None:
        registration = self.brokers.get(broker)
        if registration is None or registration.epoch != epoch:
            known = "not registered" if registration is None else f"registered with epoch {registration.epoch}"
            raise InconsistentLogError(offset, f"broker {broker} changes with epoch {epoch}, but it is {known}")
        if fenced is not None:
            self.brokers[broker] = replace(registration, fenced=fenced)

    def _feature_level(self, fields: Mapping[str, Any], offset: int) -> None:
        self.features[fields["name"]] = fields["feature_level"]

    def _migration_state(self, fields: Mapping[str, Any], offset: int) -> None:
        try:
            self.migration = MigrationState(fields["zk_migration_state"])
        except ValueError as error:
            raise InconsistentLogError(offset, f"unknown ZkMigrationState {fields['zk_migration_state']}") from error

    def _register_controller(self, fields: Mapping[str, Any], offset: int) -> None:
        self.controllers[fields["controller_id"]] = fields["zk_migration_ready"]


_APPLY: Mapping[str, Callable[[_State, Mapping[str, Any], int], None]] = {
    "RegisterBroker": _State._register_broker,
    "UnregisterBroker": _State._unregister_broker,
    "BrokerRegistrationChange": _State._change_registration,
    "FenceBroker": _State._fence,
    "UnfenceBroker": _State._unfence,
    "FeatureLevel": _State._feature_level,
    "ZkMigrationState": _State._migration_state,
    "RegisterController": _State._register_controller,
}
