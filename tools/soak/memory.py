"""Checks that the memory of processes does not grow over time."""

import statistics

# The maximum growth in bytes that does not count as a leak: allocators and caches grow for some time.
TOLERANCE_BYTES = 2 << 20
TOLERANCE_SHARE = 0.05
# If a run takes less than this number of seconds, its second quarter is still a part of the warm-up.
SETTLED_SECONDS = 300
UNSETTLED_BYTES = 16 << 20
# The minimum number of samples of a quarter. With fewer samples the result is not significant.
LEAST_SAMPLES = 4


def resident(pid):
    """Bytes of anonymous memory that a process has in RAM, or None if it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file if ":" in line)
        return int(fields["RssAnon"].split()[0]) * 1024
    except (OSError, KeyError):
        return None


class Series:
    """Samples of a series that must not grow, such as a server's master process or the mean of its workers."""

    def __init__(self, name, pids):
        self.name = name
        # This function returns the current processes.
        self.pids = pids
        self.samples = []

    def sample(self):
        sizes = [size for size in map(resident, self.pids()) if size is not None]
        if sizes:
            self.samples.append(sum(sizes) / len(sizes))

    def figures(self, seconds):
        """The first and the last sample, the medians of the second and of the last quarter, the tolerance, and whether
        the series did not grow."""
        quarter = len(self.samples) // 4
        if quarter < LEAST_SAMPLES:
            return {"samples": len(self.samples), "flat": False}
        second, last = (statistics.median(self.samples[n * quarter : (n + 1) * quarter]) for n in (1, 3))
        tolerance = TOLERANCE_BYTES if seconds >= SETTLED_SECONDS else UNSETTLED_BYTES
        tolerance += second * TOLERANCE_SHARE
        return {
            "samples": len(self.samples),
            "first": int(self.samples[0]),
            "second_quarter": int(second),
            "last_quarter": int(last),
            "last": int(self.samples[-1]),
            "tolerance": int(tolerance),
            "flat": last - second <= tolerance,
        }
