"""What the fields of a migration's spec allow."""

from switchover.api.schema import Model


def largest(limit: str, of: type[Model]) -> int:
    """The largest value that a field of a model may have."""
    [bound] = [each.le for each in of.model_fields[limit].metadata if hasattr(each, "le")]
    return int(bound)
