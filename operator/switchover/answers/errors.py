"""What a question to the outside can end with. Every client raises these, never its library's own."""


class Unreachable(Exception):
    """Nobody answered, or too late: nothing is known; try again."""


class NotListening(Unreachable):
    """The host answered that nobody listens on that port, or there is no such host."""


class NoMetadata(Unreachable):
    """A broker has just started and answers without a broker, not even itself."""


class Refused(Exception):
    """The other side understood and said no (rights, bad input): a person must act. The message says what to do."""


class Malformed(Refused):
    """What was read breaks the protocol that it should follow: whoever wrote it must change, no right helps."""


class NameTaken(Refused):
    """An object that is not ours has the name that one of ours would have."""


class Fenced(Exception):
    """Somebody else changed it since we read it: do nothing, read again."""
