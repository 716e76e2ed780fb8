"""An operator's authority for signing certificates, and keys wherever they are held. For tests alone;
needs the `openssl` command."""

import datetime
import hashlib
import os
import pathlib
import subprocess

CONFIG = """
[ca]
default_ca = issuing
[issuing]
policy = any
unique_subject = no
rand_serial = yes
database = $ENV::CA_DATABASE
[any]
organizationName = optional
commonName = supplied
[req]
distinguished_name = dn
[dn]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, nonRepudiation
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[web]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
"""


DAY = 86400


def openssl(*words, env=None):
    """The settings' variables must all be there."""
    environment = {**os.environ, "CA_DATABASE": "", **(env or {})}
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True,
                          env=environment)


def moment(seconds):
    """So many seconds from now, as a certificate has it."""
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y%m%d%H%M%SZ")


class Pki:
    """A root, and an issuer under it."""

    def __init__(self, directory, name="An operator's root"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.config = self.directory / "openssl.cnf"
        self.config.write_text(CONFIG)
        self.issue("root", "authority", None, name, ends=3650 * DAY)
        self.issue("issuer", "authority", "root", "An issuer of seals", ends=3650 * DAY)

    def path(self, name):
        return self.directory / name

    @property
    def root(self):
        return self.path("root.pem")

    def make_key(self, name, curve="P-256"):
        key = self.path(name + ".key")
        if not key.exists():
            openssl("genpkey", "-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{curve}",
                    "-out", key)
            os.chmod(key, 0o600)
        return key

    def issue(self, name, extensions, issuer, subject, begins=-3600, ends=365 * DAY, curve="P-256"):
        """NAME.key, unless it is there, and NAME.pem. Its times are seconds from now."""
        key, request, made = self.make_key(name, curve), self.path(name + ".csr"), \
            self.path(name + ".pem")
        openssl("req", "-new", "-key", key, "-out", request, "-config", self.config,
                "-subj", f"/O=Constancia tests/CN={subject}")
        database = self.path("database")
        database.touch()
        above = ["-cert", self.path(issuer + ".pem"), "-keyfile", self.path(issuer + ".key")] \
            if issuer else ["-selfsign", "-keyfile", key]
        openssl("ca", "-batch", "-config", self.config, "-in", request, "-out", made, "-notext",
                "-md", "sha256", "-outdir", self.directory,
                "-startdate", moment(begins), "-enddate", moment(ends),
                "-extensions", extensions, *above,
                env={"CA_DATABASE": str(database)})
        return made

    def signer(self, name, **more):
        """The settings of a key in PEM files: signer.key and signer.chain."""
        more.setdefault("extensions", "leaf")
        own = self.issue(name, issuer="issuer", subject=name, **more)
        chain = self.path(name + "-chain.pem")
        chain.write_bytes(b"".join(path.read_bytes()
                                   for path in (own, self.path("issuer.pem"), self.root)))
        return {"signer.key": str(self.path(name + ".key")), "signer.chain": str(chain)}

    def sha256(self, name):
        der = openssl("x509", "-in", self.path(name + ".pem"), "-outform", "DER").stdout
        return hashlib.sha256(der).hexdigest()


def as_next(settings):
    """The same key, as the one to come."""
    return {name.replace("signer.", "signer.next_"): value for name, value in settings.items()}
