"""Which migration a command is about."""

from pydantic import ValidationError

from switchover.api.kafka_migration import KafkaMigration
from switchover.core.foreign_record import without_foreign_record
from switchover.ports import Migrations, Refused


async def read_migration(name: str, migrations: Migrations) -> KafkaMigration:
    """The KafkaMigration of that name. Refused in words when there is none, or it cannot be read."""
    raw = await migrations.get(name)
    if raw is None:
        raise Refused(f"KafkaMigration {name} does not exist in this namespace")
    try:
        return KafkaMigration.model_validate(without_foreign_record(raw, 0.0)[0])
    except ValidationError as error:
        raise Refused(f"KafkaMigration {name} cannot be read: {error}") from None
