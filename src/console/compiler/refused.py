"""The exception of the compiler."""


class Refused(Exception):
    """An error in a page or a text, with its position."""
