"""What a fault is, and the list of all kinds. A fault has a `begin` and an `end`, and is drawn from a seed; its
specification in a script holds what was drawn: {"fault": NAME, "at": seconds, "for": seconds, …}."""

KINDS = {}


def fault(kind):
    """Registers a class by its name in lower case."""
    kind.name = kind.__name__.lower()
    KINDS[kind.name] = kind
    return kind


class Fault:
    """Its methods must not block for longer than a process needs to die; what takes time is a `step`.

    `weight`: how often it is drawn. `stores`: where it can happen; None: everywhere. `needs`: members of a script
    and their values without which it has no effect. `preloads`: what the nodes have to be started with
    (preloads.py). `bids`: what processes of nodes that it concerns may do because of it: "start": fail to start;
    "end": also end with an error later; "crash": also end by a signal; None: nothing."""

    weight = 1
    stores = None
    needs = {}
    preloads = ()
    bids = None
    lengths = (0.05, 0.3, 1, 3)  # seconds, from which the duration is drawn

    def __init__(self, spec):
        self.spec, self.at, self.seconds = spec, spec["at"], spec["for"]
        self.begun = None

    @classmethod
    def possible(cls, script):
        return (not cls.stores or script["store"] in cls.stores) and \
            all(script.get(name) in values for name, values in cls.needs.items())

    @classmethod
    def draw(cls, chosen, script):
        """Returns the members of a specification except its name, time and duration."""
        return {"node": chosen.randrange(script["nodes"])}

    def node(self, world):
        return world.nodes[self.spec["node"] % len(world.nodes)]

    def concerns(self, world):
        """Returns the nodes that it harms."""
        return (self.node(world),) if "node" in self.spec else ()

    def begin(self, world):
        raise NotImplementedError

    def step(self, world, elapsed):
        """Is called every few milliseconds in between. `elapsed`: seconds since it began."""

    def is_over(self, elapsed):
        return elapsed >= self.seconds

    def end(self, world):
        """Heals what it harmed, whatever else happened to it since."""


class Trigger(Fault):
    """Something that happens once when a moment has come, at the latest after a time, and then lasts `for`
    seconds."""

    LATEST = 1.5

    def __init__(self, spec):
        super().__init__(spec)
        self.happened = None

    def arm(self, world):
        """Prepares the moment."""

    def has_come(self, world):
        return True

    def happen(self, world):
        raise NotImplementedError

    def begin(self, world):
        self.arm(world)
        self.step(world, 0.0)

    def step(self, world, elapsed):
        if self.happened is None and (elapsed >= self.LATEST or self.has_come(world)):
            self.happened = elapsed
            self.happen(world)

    def is_over(self, elapsed):
        return self.happened is not None and elapsed >= self.happened + self.seconds
