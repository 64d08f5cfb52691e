"""Encrypts and decrypts files and columns on a cluster of Ray.

| name | content |
|---|---|
| `encrypt_files`, `decrypt_files` | files and folders, on all nodes of the cluster, with a manifest and resume |
| `Encrypt`, `Decrypt` | columns of a data set of `ray.data`, for `map_batches` |
| `read_manifest` | the files of a manifest |
| `Report`, `FilesFailed`, `KeyUnavailable` | the result; exceptions |

A key is given as a function that the workers call, so that the key is neither in the arguments of a task nor in Ray's object store or
logs. `encrypt_files` and `decrypt_files` check that the function contains no key before they give it to Ray. `Encrypt` and `Decrypt`
cannot check this, because Ray has already pickled the function: read the key inside the function, and do not refer to a key outside of it.
"""

try:
    import ray as _ray  # noqa: F401
except ImportError as _error:
    raise ImportError("lockstep.ray needs Ray, which is not installed: pip install 'ray[data]'", name="ray") from _error

from .._manifest import Entry, read as read_manifest
from ._columns import Decrypt, Encrypt
from ._files import FilesFailed, Report, decrypt_files, encrypt_files
from ._keys import KeyUnavailable

__all__ = [
    "Decrypt",
    "Encrypt",
    "Entry",
    "FilesFailed",
    "KeyUnavailable",
    "Report",
    "decrypt_files",
    "encrypt_files",
    "read_manifest",
]
