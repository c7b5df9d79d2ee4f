"""The one exception a person is meant to read: it names the file or engine and the way out."""


class HarnessError(Exception):
    """A fault the user can act on: `cli` prints the message, without a traceback, and exits 1."""
