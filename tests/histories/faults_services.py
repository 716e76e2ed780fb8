"""Faults of the services that nodes use: timestamp authorities, the content store, the mail server, and receivers of
notices."""

from fault import Fault, Trigger, fault


class Layered(Fault):
    """Replaces the behaviour of a service; of several that overlap, the last one that began applies."""

    def layers(self, world):
        """Returns the list of faults that are present at that service."""
        raise NotImplementedError

    def apply(self, world, spec):
        """Has the service behave so; None: well."""
        raise NotImplementedError

    def begin(self, world):
        self.layers(world).append(self)
        self.apply(world, self.spec)

    def end(self, world):
        layers = self.layers(world)
        layers.remove(self)
        self.apply(world, layers[-1].spec if layers else None)


@fault
class Authority(Layered):
    """A timestamp authority is slow, silent, or answers wrongly."""

    weight = 4
    needs = {"authorities": (1, 2)}
    MODES = ("late:1", "late:3", "wrong_imprint", "wrong_nonce", "wrong_policy", "wrong_usage", "critical",
             "wrong_time", "ahead:3", "ahead:20", "untrusted", "rejected", "garbage", "error", "close", "silent",
             "endless_header", "no_accuracy", "alone")

    @classmethod
    def draw(cls, chosen, script):
        return {"authority": chosen.randrange(script["authorities"]), "mode": chosen.choice(cls.MODES)}

    def layers(self, world):
        return world.services.authority_faults[self.spec["authority"]]

    def apply(self, world, spec):
        world.services.authorities[self.spec["authority"]].mode = spec["mode"] if spec else "good"


@fault
class Revocation(Layered):
    """The revocation data of the authorities, by OCSP and in lists, is late, not there, or wrong."""

    weight = 6
    needs = {"revocation": ("authorities", "all")}
    MODES = ("late:0.5", "late:3", "silent:3", "close", "error", "lost", "garbage", "former", "try_later", "unknown",
             "wrong_signer")

    @classmethod
    def draw(cls, chosen, script):
        del script
        return {"mode": chosen.choice(cls.MODES)}

    def layers(self, world):
        return world.services.revocation_faults

    def apply(self, world, spec):
        world.services.publish(spec["mode"] if spec else "good")


@fault
class Content(Fault):
    """The S3 service of contents fails in some or all of its answers."""

    weight = 4
    needs = {"content": ("s3",)}
    KINDS = ({"kind": "status", "status": 503}, {"kind": "status", "status": 500, "code": "InternalError"},
             {"kind": "status", "status": 429}, {"kind": "stall"}, {"kind": "cut"}, {"kind": "cut-upload"},
             {"kind": "lose-answer"}, {"kind": "error-inside"}, {"kind": "garbage"})

    @classmethod
    def draw(cls, chosen, script):
        del script
        return {"how": {**chosen.choice(cls.KINDS), "times": chosen.choice((1, 2, 10, 1_000_000)),
                        "method": chosen.choice((None, None, "PUT", "GET", "POST", "DELETE"))}}

    def begin(self, world):
        self.fault = world.services.content.misbehave(**self.spec["how"])

    def end(self, world):
        world.services.content.faults.remove(self.fault)


@fault
class Mail(Fault):
    """The mail server refuses the next messages, closes the connection after it kept them, or responds late."""

    weight = 2
    needs = {"mail": (True,)}
    lengths = (0.3, 1, 3)
    STEPS = ("451 later", "cut", "rcpt 450 later", "421 closing", "452 no space", "late 0.5", "late 1", "late 2")

    @classmethod
    def draw(cls, chosen, script):
        del script
        return {"answers": chosen.choices(cls.STEPS, k=chosen.choice((1, 3)))}

    def begin(self, world):
        world.services.script_mail(self.spec["answers"])

    def end(self, world):
        world.services.script_mail(None)


@fault
class KillInMail(Trigger):
    """A node is killed while the mail server has a message and has not responded."""

    weight = 4
    needs = {"mail": (True,)}
    LATEST = 5  # the service looks for mails every 2 seconds

    def arm(self, world):
        world.services.script_mail(["late 2"] * 3)

    def has_come(self, world):
        return world.services.holds_mail()

    def happen(self, world):
        world.hold(self.node(world), self)
        self.node(world).kill()
        world.services.script_mail(None)

    def end(self, world):
        world.services.script_mail(None)
        if self.happened is not None:
            world.release(self.node(world), self)


@fault
class Receivers(Layered):
    """A receiver of notices refuses them, is slow, closes connections, or its answers are lost."""

    weight = 2

    @classmethod
    def possible(cls, script):
        return bool(script["receivers"])

    @classmethod
    def draw(cls, chosen, script):
        return {"receiver": chosen.randrange(len(script["receivers"])),
                "how": chosen.choice(("500", "503", "429", "slow", "close", "lose"))}

    def layers(self, world):
        return world.receiver_faults[self.spec["receiver"]]

    def apply(self, world, spec):
        """The answers of a receiver depend on the faults that are present (World.receive)."""
