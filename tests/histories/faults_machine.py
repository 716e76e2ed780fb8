"""Faults of the machine of the nodes: its power, its disk and its clock."""

from fault import Fault, Trigger, fault
from faults_process import draw_step


class OfMachine(Fault):
    """Concerns all nodes."""

    def concerns(self, world):
        return world.nodes

    @classmethod
    def draw(cls, chosen, script):
        del chosen, script
        return {}


# ---- power ----

@fault
class PowerCut(Trigger):
    """The power fails: now, in a sync, or at a step of the handling of the log. Of what was not synced a part
    survives. After the time all nodes start again."""

    weight = 6
    stores = ("sqlite",)
    needs = {"disk": ("forgetful", "ext4")}
    preloads = ("log_steps",)

    @classmethod
    def draw(cls, chosen, script):
        spec = {"percent": chosen.choice((0, 10, 50, 90, 100)), "seed": chosen.getrandbits(32)}
        kind = chosen.random()
        if kind < 0.4:
            spec["syncs"] = chosen.choice((1, 1, 2, 3, 10, 40))
        elif kind < 0.7:
            spec |= {"node": chosen.randrange(script["nodes"]), **draw_step(chosen)}
        return spec

    def arm(self, world):
        if "step" in self.spec:
            world.log_steps[self.node(world)].stop_at(self.spec["step"], self.spec["bytes"])
        elif "syncs" in self.spec:
            world.disk.fail_power_in(self.spec["syncs"])

    def has_come(self, world):
        if "step" in self.spec:
            return world.log_steps[self.node(world)].reached() == self.spec["step"]
        return "syncs" not in self.spec or world.disk.power_failed()

    def happen(self, world):
        for node in world.nodes:
            world.hold(node, self)
        world.cut_power(self.spec["percent"], self.spec["seed"])
        self.disarm(world)

    def disarm(self, world):
        """Releases what has stopped at the step, and stops nothing there any more."""
        if "step" in self.spec:
            world.log_steps[self.node(world)].go_on()

    def end(self, world):
        if self.happened is None:
            self.happen(world)
        for node in world.nodes:
            world.release(node, self)


# ---- disk ----

class OfDisk(OfMachine):
    """A failing sync ends a node, which then cannot know what is durable, and a start fails."""

    bids = "end"


@fault
class FailingSync(OfDisk):
    """A sync fails with EIO, once, and the disk loses what it should have kept."""

    weight = 2
    stores = ("sqlite",)
    needs = {"disk": ("forgetful", "ext4")}

    @classmethod
    def draw(cls, chosen, script):
        return {"syncs": chosen.choice((1, 1, 2, 3, 5, 10, 30))}

    def begin(self, world):
        world.disk.fail_sync_in(self.spec["syncs"])

    def end(self, world):
        world.disk.fail_sync_in(0)


@fault
class RefusedSyncs(OfDisk):
    """Syncs fail with EIO, now and then, and keep nothing less than before."""

    stores = ("sqlite",)
    preloads = ("shaking",)

    @classmethod
    def draw(cls, chosen, script):
        return {"one_in": chosen.choice((1, 3, 10, 50))}

    def begin(self, world):
        world.shaking.set("fail_sync", self.spec["one_in"])

    def end(self, world):
        world.shaking.set("fail_sync", 0)


@fault
class SlowSync(OfMachine):
    """Each sync takes a while."""

    stores = ("sqlite",)
    preloads = ("shaking",)
    weight = 2

    @classmethod
    def draw(cls, chosen, script):
        return {"milliseconds": chosen.choice((2, 20, 200, 1000))}

    def begin(self, world):
        world.shaking.set("sync_us", 1000 * self.spec["milliseconds"])

    def end(self, world):
        world.shaking.set("sync_us", 0)


@fault
class FailingStatements(OfMachine):
    """Statements of the embedded store that write fail now and then, as on a full disk."""

    bids = "start"
    stores = ("sqlite",)
    preloads = ("shaking",)
    weight = 2

    @classmethod
    def draw(cls, chosen, script):
        return {"one_in": chosen.choice((5, 20, 100, 1000))}

    def begin(self, world):
        world.shaking.set("fail_any", self.spec["one_in"])

    def end(self, world):
        world.shaking.set("fail_any", 0)


@fault
class DiskFull(OfMachine):
    """The disk has no more room than a few bytes. A start then fails; a running node continues."""

    bids = "start"
    needs = {"disk": ("small",)}
    weight = 6

    @classmethod
    def draw(cls, chosen, script):
        return {"room": chosen.choice((0, 0, 4096, 50_000, 500_000))}

    def begin(self, world):
        world.disk.limit(self.spec["room"])

    def end(self, world):
        world.disk.unlimit()


# ---- clock ----

class OfClock(Fault):
    """Moves the wall clock of a node."""

    stores = ("sqlite",)  # several nodes: ClockApart
    preloads = ("clock",)
    weight = 2

    def move(self, world, seconds):
        world.move_clock(self.node(world), seconds)


@fault
class ClockStep(OfClock):
    """The clock is set forward or back, and corrected after the time. A clock that is far ahead `stays` so. If it were
    corrected, the last events of each chain would be later than the clock, and the service would refuse registrations
    until the clock reaches them. It is corrected where an authority or S3 compares its time with theirs."""

    NEAR, FAR = (1, 2, 4), (10, 3600, 86_400)

    @classmethod
    def draw(cls, chosen, script):
        alone = script["store"] == "sqlite" and not script.get("authorities") and script.get("content") != "s3"
        seconds = chosen.choice(cls.NEAR if chosen.random() < 0.6 else cls.FAR if alone else (10,))
        if chosen.random() < 0.4:
            return {**super().draw(chosen, script), "seconds": -chosen.choice((*cls.NEAR, *cls.FAR)), "stays": False}
        return {**super().draw(chosen, script), "seconds": seconds, "stays": alone and seconds >= cls.FAR[0]}

    def begin(self, world):
        self.move(world, self.spec["seconds"])

    def end(self, world):
        if not self.spec["stays"]:
            self.move(world, -self.spec["seconds"])


@fault
class ClockDrift(OfClock):
    """The clock runs too fast, or too slow, and is set right after the time."""

    lengths = (1, 3)

    @classmethod
    def draw(cls, chosen, script):
        return {**super().draw(chosen, script), "rate": chosen.choice((-3, -1, -0.5, 0.5, 1))}

    def begin(self, world):
        self.moved = 0

    def step(self, world, elapsed):
        wanted = int(self.spec["rate"] * elapsed)
        if wanted != self.moved:
            self.move(world, wanted - self.moved)
            self.moved = wanted

    def end(self, world):
        self.move(world, -self.moved)
