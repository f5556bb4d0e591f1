"""Records of the metadata log: bytes that Kafka 3.9.2 wrote, bytes of an encoder of our own, and bytes of nobody."""

import contextlib
import math
import struct
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from switchover.metadata import schema
from switchover.metadata.decode import MalformedRecordError, MetadataLogError, Record, UnknownRecordError, decode
from switchover.metadata.schema import RECORDS, Array, Field, Schema

# Written by a real quorum (3.9.2, one ZooKeeper-mode broker that migrated), as fetched from its leader.
WRITTEN_BY_KAFKA = {
    "BeginTransaction": "01170001001212426f6f747374726170207265636f726473",
    "EndTransaction": "01180000",
    "NoOp": "01140000",
    "FeatureLevel": "010c00116d657461646174612e76657273696f6e001500",
    "ZkMigrationState": "0115000200",
    "BrokerRegistrationChange": "01110000000001000000000000000a010001ff",
    "RegisterController": (
        "011b0000000bb89c897609bac14b1ebbc29ca39f771d7101020b434f4e54524f4c4c45520f3132372e3234352e38382e32333123850000"
        "00030e6b726166742e76657273696f6e0000000100116d657461646174612e76657273696f6e000100150000"
    ),
    "RegisterBroker": (
        "01000300000001012dd64f319b384e79b172c224115e5155000000000000000a020a504c41494e54455854103132372e3231322e313835"
        "2e3233352384000000030e6b726166742e76657273696f6e0000000100116d657461646174612e76657273696f6e001500150003723101"
        "0001001102915c2cf09255c45d57ca325607d1ee85"
    ),
}


def written(record: str) -> bytes:
    return bytes.fromhex(WRITTEN_BY_KAFKA[record])


def test_a_broker_registration_of_kafka_is_read_field_by_field() -> None:
    assert decode(written("RegisterBroker"), 10) == Record("RegisterBroker", 3, {
        "broker_id": 1,
        "is_migrating_zk_broker": True,
        "incarnation_id": UUID("2dd64f31-9b38-4e79-b172-c224115e5155"),
        "broker_epoch": 10,
        "endpoints": ({"name": "PLAINTEXT", "host": "127.212.185.235", "port": 9092, "security_protocol": 0},),
        "features": (
            {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1},
            {"name": "metadata.version", "min_supported_version": 21, "max_supported_version": 21},
        ),
        "rack": "r1",
        "fenced": True,
        "in_controlled_shutdown": False,
        "log_dirs": (UUID("915c2cf0-9255-c45d-57ca-325607d1ee85"),),
    })


@pytest.mark.parametrize(("record", "field", "value"), [
    ("BeginTransaction", "name", "Bootstrap records"),
    ("FeatureLevel", "feature_level", 21),
    ("ZkMigrationState", "zk_migration_state", 2),
    ("BrokerRegistrationChange", "fenced", -1),
    ("BrokerRegistrationChange", "in_controlled_shutdown", 0),
    ("BrokerRegistrationChange", "log_dirs", ()),
    ("RegisterController", "zk_migration_ready", True),
    ("RegisterController", "controller_id", 3000),
])
def test_other_records_of_kafka(record: str, field: str, value: object) -> None:
    decoded = decode(written(record), 5)
    assert decoded.type == record
    assert decoded.fields[field] == value


def test_every_record_type_of_kafka_is_there() -> None:
    assert len(RECORDS) == 25                                   # schema files of Kafka 3.9


@pytest.mark.parametrize("value", [b"\x01\x63\x00\x00", b"\x01\x14\x05\x00"])
def test_unknown_types_and_versions_name_themselves(value: bytes) -> None:
    with pytest.raises(UnknownRecordError, match=f"offset 42: record type {value[1]} .* version {value[2]} ") as raised:
        decode(value, 42)
    assert (raised.value.type_id, raised.value.version, raised.value.offset) == (value[1], value[2], 42)


@pytest.mark.parametrize(("value", "why"), [
    (b"", "ends at byte 0"),
    (b"\x00\x14\x00\x00", "frame version 0 instead of 1"),
    (b"\x01\x14\x00\x00\x00", "1 bytes left over after a NoOp record"),
    (b"\x01\x14\x00\x01\x00\x09", "ends at byte 6 where 15 were announced"),
    (b"\x01\xff\xff\xff\xff\xff\x01", "longer than 5 bytes"),
    (b"\x01\x0c\x00\x00", "name is null"),
    (b"\x01\x0c\x00\x02\xff\x00\x01\x00", "invalid start byte"),
    (b"\x01\x11\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x0a\x01\x00\x02\xff\x00", "fenced ends at byte"),
])
def test_bytes_that_follow_no_schema_say_what_is_wrong(value: bytes, why: str) -> None:
    with pytest.raises(MalformedRecordError, match=f"offset 3: .*{why}"):
        decode(value, 3)


def test_tagged_fields_of_a_newer_kafka_are_passed_over() -> None:
    assert decode(b"\x01\x18\x00\x01\x07\x03abc", 1) == Record("EndTransaction", 0, {})


# --- Round trips ------------------------------------------------------------------------------------------------------


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d"}


def encoded(kind: str | Array, value: Any, version: int) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(kind, Array):
        items = [encoded(kind.of, item, version) if isinstance(kind.of, str) else structure(kind.of, item, version)
                 for item in value]
        return uvarint(len(items) + 1) + b"".join(items)
    if kind == "uuid":
        return bytes(value.bytes)
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    data: bytes = value.encode() if kind == "string" else value
    return uvarint(len(data) + 1) + data


def structure(fields: tuple[Field, ...], values: Mapping[str, Any], version: int) -> bytes:
    there = [field for field in fields if field.since <= version]
    plain = b"".join(encoded(f.type, values[f.name], version) for f in there if f.tag is None)
    tags = sorted((f.tag, encoded(f.type, values[f.name], version))
                  for f in there if f.tag is not None and values[f.name] != f.default)
    return plain + uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags)


def record_bytes(type_id: int, version: int, fields: tuple[Field, ...], values: Mapping[str, Any]) -> bytes:
    return b"\x01" + uvarint(type_id) + uvarint(version) + structure(fields, values, version)


def integers(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


PRIMITIVES: Mapping[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": integers(8, signed=True),
    "int16": integers(16, signed=True),
    "uint16": integers(16, signed=False),
    "int32": integers(32, signed=True),
    "int64": integers(64, signed=True),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "string": st.text(max_size=200),
    "bytes": st.binary(max_size=200),
}


def value_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.since > version:
        return st.just(field.default)
    if isinstance(field.type, Array):
        of = field.type.of
        item = PRIMITIVES[of] if isinstance(of, str) else values_of(of, version)
        values: st.SearchStrategy[Any] = st.lists(item, max_size=3).map(tuple)
    else:
        values = PRIMITIVES[field.type]
    return st.none() | values if field.nullable else values


def values_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: value_of(field, version) for field in fields})


@st.composite
def records(draw: st.DrawFn) -> tuple[int, int, dict[str, Any]]:
    type_id = draw(st.sampled_from(sorted(RECORDS)))
    version = draw(st.integers(0, RECORDS[type_id].newest))
    return type_id, version, draw(values_of(RECORDS[type_id].fields, version))


@given(records())
def test_every_record_of_every_version_comes_back_as_it_was_written(sample: tuple[int, int, dict[str, Any]]) -> None:
    type_id, version, values = sample
    data = record_bytes(type_id, version, RECORDS[type_id].fields, values)
    assert decode(data, 0) == Record(RECORDS[type_id].name, version, values)


@given(records(), st.data())
def test_a_record_cut_short_is_refused(sample: tuple[int, int, dict[str, Any]], data: st.DataObject) -> None:
    type_id, version, values = sample
    whole = record_bytes(type_id, version, RECORDS[type_id].fields, values)
    part = whole[:data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(MalformedRecordError):
        decode(part, 0)


@given(st.binary(max_size=60) | st.tuples(st.sampled_from(sorted(RECORDS)), st.binary(max_size=80)).map(
    lambda sample: b"\x01" + bytes([sample[0], 0]) + sample[1]))
def test_no_bytes_at_all_raise_anything_else(value: bytes) -> None:
    with contextlib.suppress(MetadataLogError):
        assert decode(value, 9).version >= 0


def test_a_new_record_type_is_one_entry_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    quota = Schema("Sample", 1, (
        Field("entity", Array((Field("type", "string"), Field("name", "string", nullable=True)))),
        Field("value", "float64"),
        Field("salt", "bytes", since=1),
        Field("replicas", Array("int32"), tag=3, nullable=True),
    ))
    monkeypatch.setattr(schema, "RECORDS", {**RECORDS, 90: quota})
    monkeypatch.setattr("switchover.metadata.decode.RECORDS", schema.RECORDS)
    values = {"entity": ({"type": "user", "name": None},), "value": math.pi, "salt": b"\x00\xff", "replicas": (1, 2)}
    assert decode(record_bytes(90, 1, quota.fields, values), 0).fields == values


@given(st.integers(0, (1 << 32) - 1))
def test_numbers_of_variable_length(number: int) -> None:
    assume(number not in RECORDS)
    with pytest.raises(UnknownRecordError, match=f"record type {number} "):
        decode(b"\x01" + uvarint(number) + b"\x00", 0)
