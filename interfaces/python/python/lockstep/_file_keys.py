"""The arguments of `lockstep.open`, `encrypt_file` and other functions that give the key of a file."""

from __future__ import annotations

import logging
import os
import stat
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ._shown import shown
from ._types import Buffer, Path

LOGGER = logging.getLogger("lockstep")
# The files for which a warning was issued. Each is identified by its device, its inode number and the time of its last change.
_WARNED: set[tuple[int, int, int]] = set()
_AGE_FILE = (b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE-----")


class Keys(NamedTuple):
    """The secrets that open a file, or the recipients who can open it."""

    key: Buffer | Path | None = None
    context: Buffer = b""
    recipients: list[str] | None = None
    identities: list[Path] | None = None
    passphrase: str | None = None

    @classmethod
    def of(cls, key: Any, context: Any, recipients: Any = None, identities: Any = None, passphrase: Any = None) -> Keys:
        """The arguments of a call. One recipient, and the path of one identity, may be given without a list.

        Raises TypeError for arguments of other types. Issues a warning for each file with a secret that other users can read.
        """
        recipients = _listed(recipients, str, "recipients", "a str such as 'age1...' or a list of them")
        identities = _listed(identities, (str, os.PathLike), "identities", "the path of an identity file or a list of paths")
        if isinstance(context, str):
            raise TypeError("context must be bytes, not str")
        if not isinstance(passphrase, (str, type(None))):
            raise TypeError(f"passphrase must be a str, not {type(passphrase).__name__}")
        _warn_if_open_to_others(key, "key file", False)
        for path in identities or ():
            _warn_if_open_to_others(path, "identity file", True)
        return cls(key, b"" if context is None else context, recipients, identities, passphrase)

    def checked(self, writes: bool) -> Keys:
        """Returns this object if its arguments can be used together for writing or for reading, and raises TypeError otherwise. Issues a
        warning if the passphrase of a new file differs from the given text."""
        # Local variables must not contain secrets, because debuggers and error reports print local variables.
        has_key, has_recipients = self.key is not None, self.recipients is not None
        has_identities, has_passphrase = self.identities is not None, self.passphrase is not None
        has_others = has_recipients or has_identities or has_passphrase
        mistakes = (
            (has_key and has_others, "give a key, or recipients, identities or a passphrase, not both"),
            (not (has_key or has_others), "a key is missing: give key, recipients, identities or passphrase"),
            (
                not has_key and memoryview(cast("bytes", self.context)).nbytes > 0,
                "a context is for files with a key: others have their envelope as context",
            ),
            (has_recipients and not writes, "recipients are for writing: give identities for reading"),
            (has_identities and writes, "identities are for reading: give recipients for writing"),
            (has_recipients and has_passphrase, "give recipients, or a passphrase, not both"),
        )
        for is_mistake, text in mistakes:
            if is_mistake:
                raise TypeError(text)
        if writes and self.passphrase and self.passphrase.startswith("\ufeff") and len(self.passphrase) > 1:
            warnings.warn("the byte order mark at the start of the passphrase is left out", stacklevel=2)
        return self

    def __repr__(self) -> str:
        """A text that contains no secret, because debuggers and error reports print local variables."""
        given = [name for name, value in self._asdict().items() if value is not None and value is not self._field_defaults[name]]
        return f"<Keys: {', '.join(given)}>"


def _listed(given: Any, kind: Any, name: str, wanted: str) -> list[Any] | None:
    if given is None:
        return None
    if isinstance(given, kind):
        return [given]
    items = list(given) if isinstance(given, (Sequence, set)) and not isinstance(given, (bytes, bytearray, memoryview)) else [given]
    for item in items:
        if not isinstance(item, kind):
            # The value can be a secret, so the message has only its type.
            raise TypeError(f"{name} must be {wanted}, not {type(item).__name__}")
    return items


def _warn_if_open_to_others(path: Any, what: str, may_be_encrypted: bool) -> None:
    """Issues a warning if other users can read or change the file at a path, as the command does. Permissions of pipes, such as those of a
    shell's process substitution, are irrelevant.
    """
    if not isinstance(path, (str, os.PathLike)):
        return
    try:
        found = os.stat(path)
        version = (found.st_dev, found.st_ino, found.st_ctime_ns)
        if not stat.S_ISREG(found.st_mode) or not found.st_mode & 0o077 or version in _WARNED:
            return
        if may_be_encrypted:
            with open(path, "rb") as file:
                if file.read(40).startswith(_AGE_FILE):
                    return
    except (OSError, ValueError):
        # The error is ignored here: the call that reads the file later raises an exception.
        return
    _WARNED.add(version)
    LOGGER.warning("other users can read or change the %s %s: run `chmod 600` on it", what, shown(os.fspath(path)))
