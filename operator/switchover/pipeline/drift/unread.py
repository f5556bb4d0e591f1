"""What both the readers and the judgement speak of."""


class Unread(Exception):
    """A side could not be read; `refused` when it will not be the next time either, until a person acts."""

    def __init__(self, why: str, *, refused: bool) -> None:
        super().__init__(why)
        self.refused = refused
