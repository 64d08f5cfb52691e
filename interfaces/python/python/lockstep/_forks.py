"""Unlocks locks of Python objects in the child of a fork, where the thread that held the lock does not exist."""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

# For each object, the function that renews the object in a child process after a fork.
_RENEWALS: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def renew_lock(lock: Any) -> None:
    """Unlocks a lock of `threading`, as the modules of the standard library do in the child of a fork.

    A reentrant lock that the forking thread holds is left alone: this thread exists in the child and releases it there.
    """
    is_owned = getattr(lock, "_is_owned", None)
    if is_owned is None or not is_owned():
        lock._at_fork_reinit()


def in_child(owner: Any, renew: Callable[[Any], None]) -> None:
    """Calls `renew(owner)` in the child of each fork as long as the owner exists."""
    _RENEWALS[owner] = renew


def lock() -> Any:
    """A reentrant lock that is unlocked in the child of a fork, unless the forking thread holds it."""
    new = threading.RLock()
    in_child(new, renew_lock)
    return new


def _after_fork_in_child() -> None:
    for owner, renew in list(_RENEWALS.items()):
        renew(owner)


os.register_at_fork(after_in_child=_after_fork_in_child)
