"""Functions that show the values of arguments in messages, but no keys."""

import os

from ._native import shown_name


def shown_path(path: str | os.PathLike[str]) -> str:
    """The name of a file for an OSError, unless it can be a key."""
    try:
        return shown_name(os.fspath(path))
    except ValueError:
        # The path has surrogates.
        return "(a text, not shown)"


def shown(value: object) -> str:
    """A text that describes a value in a message. Only texts and integers are shown. Other values, and texts that can be a key, are not
    shown, because the user may have given a key in a wrong place.
    """
    if isinstance(value, int) and -(1 << 64) < value < 1 << 64:
        return str(value)
    if isinstance(value, str):
        try:
            return repr(shown_name(value))
        except ValueError:
            # The text has surrogates.
            return "(a text, not shown)"
    return f"(a value of the type {type(value).__name__}, not shown)"
