"""Sets the variables of Ray before the tests import Ray."""

import local_cluster  # noqa: F401
