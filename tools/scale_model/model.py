"""The model: time(work) = start + work / (rate of the slowest stage).

Stages are resources that work at the same time, so that the slowest one determines the rate. The work that one resource does in
sequence is added up within its stage (figures.py).
"""

START = "start"


def rate_of(configuration, stage):
    """The rate of a stage in bytes per second, for all nodes together."""
    return stage.rate * (1 if stage.shared else configuration.nodes)


def slowest(configuration):
    """The stage that determines the rate. If several stages are equally slow, it is the first of them."""
    return min(configuration.stages, key=lambda stage: rate_of(configuration, stage))


def rate(configuration):
    return rate_of(configuration, slowest(configuration))


def seconds(configuration, work):
    return configuration.start + work / rate(configuration)


def bottleneck(configuration, work):
    """The name of the part that takes the most time: the start, or the slowest stage."""
    return START if configuration.start > work / rate(configuration) else slowest(configuration).name


def half_size(configuration):
    """Returns the amount of work for which the start takes half of the time."""
    return configuration.start * rate(configuration)


def nodes_until_shared(configuration):
    """The number of nodes from which on a shared stage is the bottleneck; None without a shared stage."""
    shared = [stage.rate for stage in configuration.stages if stage.shared]
    own = [stage.rate for stage in configuration.stages if not stage.shared]
    return min(shared) / min(own) if shared and own else None


def dollars(configuration, work, store=None):
    """The cost of the machines for the time of the work, plus the cost of the requests to the object store."""
    if configuration.price is None:
        return None
    machines = configuration.price * seconds(configuration, work)
    requests = 0.0
    if configuration.object_store and store:
        requests = work / store["part"] * (store["get_price"] + store["put_price"])
    return machines, requests


def error(point):
    """The predicted time minus the measured time, as a fraction of the measured time."""
    return seconds(point.configuration, point.work) / point.seconds - 1


def units_to_match(target, one):
    """The minimum number of units that together reach the rate `target`, if each has the rate `one`."""
    count = int(target // one)
    return count if count * one >= target else count + 1
