"""An operator's certification authority, for signing keys and timestamp authorities; and keys in any kind of
holder. For tests only; needs the `openssl` command, and `softhsm2-util` for tokens.

usage: pki.py DIRECTORY SECONDS: gives the authority of timestamp_authority.py in DIRECTORY/mortal a new
certificate with that lifetime, under DIRECTORY/root.pem. Creates both unless they exist, and new revocation
lists.
"""

import datetime
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
from urllib.parse import quote

CONFIG = """
[ca]
default_ca = issuing
[issuing]
policy = any
unique_subject = no
rand_serial = yes
database = $ENV::CA_DATABASE
crlnumber = ${ENV::CA_DATABASE}.number
crl_extensions = list
default_md = sha256
default_crl_days = 7
[list]
authorityKeyIdentifier = keyid:always
@PADDING@
[any]
organizationName = optional
commonName = supplied
[req]
distinguished_name = dn
string_mask = @STRINGS@
[dn]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
@LIST@
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature, nonRepudiation
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
@RESPONDER@
@LIST@
[timestamps]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
@RESPONDER@
@LIST@
[responder]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = OCSPSigning
noCheck = ignored
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[lists]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = 0.4.0.2231.3.0
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always
[enciphers]
basicConstraints = critical, CA:FALSE
keyUsage = critical, keyAgreement
extendedKeyUsage = 0.4.0.2231.3.0
[unstated]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = 0.4.0.2231.3.0
[web]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
"""


DAY = 86400


def openssl(*words, env=None):
    """Runs openssl. All variables of the configuration must be set."""
    environment = {**os.environ, "CA_DATABASE": "", **(env or {})}
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True,
                          env=environment)


def moment(seconds):
    """Returns the time that many seconds from now, in the form of a certificate."""
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return when.strftime("%Y%m%d%H%M%SZ")


class Pki:
    """A root and issuers under it. With `url`, the address of a Publisher (publisher.py), each certificate
    names its issuer's revocation list and, unless it is an authority's, an OCSP responder."""

    def __init__(self, directory, name="An operator's root", url=None, kind="P-256"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.url = url
        self.kind = kind
        self.padding = 0  # additional bytes in revocation lists, under an OID for examples (RFC 5612)
        if not self.root.exists():
            self.issue("root", "authority", None, name, ends=3650 * DAY)
            self.add_issuer("issuer", "An issuer of seals")

    def path(self, name):
        return self.directory / name

    @property
    def root(self):
        return self.path("root.pem")

    def add_issuer(self, name, subject):
        self.issue(name, "authority", "root", subject, ends=3650 * DAY)
        if self.url:
            self.issue(f"{name}-responder", "responder", name, f"{subject}: responder")

    def make_key(self, name, kind):
        """Creates a key; `kind` is a curve, or RSA-BITS."""
        key = self.path(name + ".key")
        algorithm, _, bits = kind.partition("-")
        options = (["RSA", "-pkeyopt", f"rsa_keygen_bits:{bits}"] if algorithm == "RSA"
                   else ["EC", "-pkeyopt", f"ec_paramgen_curve:{kind}"])
        if not key.exists():
            openssl("genpkey", "-algorithm", *options, "-out", key)
            os.chmod(key, 0o600)
        return key

    def configure(self, issuer, strings="utf8only"):
        """Writes the configuration of that issuer's certificates and the string type of their names; returns
        its path."""
        published = self.url and issuer
        config = self.path("openssl.cnf")
        config.write_text(CONFIG.replace("@STRINGS@", strings).replace(
            "@LIST@", f"crlDistributionPoints = URI:{self.url}/{issuer}.crl" if published else ""
        ).replace(
            "@RESPONDER@", f"authorityInfoAccess = OCSP;URI:{self.url}/ocsp/{issuer},"
            f"caIssuers;URI:{self.url}/{issuer}.crt" if published else ""
        ).replace(
            "@PADDING@", "1.3.6.1.4.1.32473.1 = DER:" + "05" * self.padding if self.padding else ""))
        return config

    def database(self):
        """Returns the database of all issued certificates for `openssl ca`."""
        database = self.path("database")
        if not database.exists():
            database.touch()
            self.path("database.number").write_text("01\n")
        return database

    def by(self, issuer):
        return ["-cert", self.path(issuer + ".pem"), "-keyfile", self.path(issuer + ".key")]

    def ca(self, config, *words):
        openssl("ca", "-batch", "-config", config, *words,
                env={"CA_DATABASE": str(self.database())})

    def issue(self, name, extensions, issuer, subject, begins=-3600, ends=365 * DAY, kind=None,
              strings="utf8only"):
        """Creates NAME.key, unless it exists, and NAME.pem. Times are seconds from now."""
        key, request, made = self.make_key(name, kind or self.kind), self.path(name + ".csr"), \
            self.path(name + ".pem")
        config = self.configure(issuer, strings)
        openssl("req", "-utf8", "-new", "-key", key, "-out", request, "-config", config,
                "-subj", f"/O=Constancia tests/CN={subject}")
        self.ca(config, "-in", request, "-out", made, "-notext",
                "-outdir", self.directory, "-startdate", moment(begins), "-enddate", moment(ends),
                "-extensions", extensions,
                *(self.by(issuer) if issuer else ["-selfsign", "-keyfile", key]))
        return made

    def twin(self, name):
        """Creates a root with the name and key of an issuer; returns its path."""
        made = self.path(f"{name}-twin.pem")
        self.ca(self.configure(None), "-in", self.path(name + ".csr"), "-out", made, "-notext",
                "-outdir", self.directory, "-startdate", moment(-3600),
                "-enddate", moment(3650 * DAY), "-extensions", "authority",
                "-selfsign", "-keyfile", self.path(name + ".key"))
        return made

    def revoke(self, name, issuer="issuer", reason="keyCompromise"):
        self.ca(self.configure(issuer), "-revoke", self.path(name + ".pem"), "-crl_reason", reason,
                *self.by(issuer))

    def write_list(self, issuer):
        """Creates ISSUER.crl, a revocation list as of now."""
        made = self.path(issuer + ".crl")
        self.ca(self.configure(issuer), "-gencrl", "-out", made, *self.by(issuer))
        return made

    def chain(self, name, issuer="issuer"):
        """Creates NAME-chain.pem: its certificate, its issuer's and the root."""
        chain = self.path(name + "-chain.pem")
        chain.write_bytes(b"".join(self.path(each + ".pem").read_bytes()
                                   for each in (name, issuer, "root")))
        return chain

    def signer(self, name, holder="pem", **more):
        """Creates a key in a holder (see HOLDERS) and returns the settings signer.…."""
        more.setdefault("extensions", "leaf")
        self.issue(name, issuer="issuer", subject=name, **more)
        return HOLDERS[holder](self, name, self.chain(name))

    def timestamps(self, name, issuer="issuer", **more):
        """Creates a directory for timestamp_authority.py."""
        self.issue(name, "timestamps", issuer, name, **more)
        directory = self.path(name)
        directory.mkdir()
        shutil.copy(self.path(name + ".pem"), directory / "good.pem")
        shutil.copy(self.path(name + ".key"), directory / "good.key")
        # The certificate that it sends along; there it is a root.
        shutil.copy(self.path(issuer + ".pem"), directory / "root.pem")
        (directory / "ready").touch()
        return directory

    def go_on(self, name, ends):
        """Replaces the certificate of that directory's authority by a new one of the same key."""
        made = self.issue(name, "timestamps", "issuer", name, ends=ends)
        fresh = self.path(name) / "good.pem.new"
        shutil.copy(made, fresh)
        os.replace(fresh, self.path(name) / "good.pem")

    def sha256(self, name):
        der = openssl("x509", "-in", self.path(name + ".pem"), "-outform", "DER").stdout
        return hashlib.sha256(der).hexdigest()


# ---- key holders: the settings of NAME.key with its chain ----

PASSPHRASE = "correct horse, battery"
MODULE = "/usr/lib/softhsm/libsofthsm2.so"


def passphrase_file(pki):
    path = pki.path("passphrase")
    path.write_text(PASSPHRASE + "\n")
    path.chmod(0o600)
    return {"signer.passphrase_file": str(path)}


def held_in_pem(pki, name, chain):
    return {"signer.key": str(pki.path(name + ".key")), "signer.chain": str(chain)}


def held_encrypted(pki, name, chain):
    held = pki.path(name + "-encrypted.pem")
    locked = passphrase_file(pki)
    openssl("pkey", "-in", pki.path(name + ".key"), "-aes256", "-passout",
            f"file:{locked['signer.passphrase_file']}", "-out", held)
    held.chmod(0o600)
    return {"signer.key": str(held), "signer.chain": str(chain), **locked}


def held_in_pkcs12(pki, name, chain):
    """Includes its certificates."""
    held = pki.path(name + ".p12")
    locked = passphrase_file(pki)
    openssl("pkcs12", "-export", "-inkey", pki.path(name + ".key"), "-in", pki.path(name + ".pem"),
            "-certfile", chain, "-passout", f"file:{locked['signer.passphrase_file']}",
            "-out", held)
    held.chmod(0o600)
    return {"signer.key": str(held), **locked}


def held_by_token(pki, name, chain):
    """Uses SoftHSM2; processes find the token with token_environment."""
    environment = token_environment(pki)
    locked = passphrase_file(pki)
    tokens = pki.path("tokens")
    if not tokens.exists():
        tokens.mkdir()
        pki.path("softhsm2.conf").write_text(f"directories.tokendir = {tokens}\n")
        softhsm("--init-token", "--free", "--label", "constancia", "--so-pin", "12345678",
                environment=environment)
    plain = pki.path(name + ".p8")
    openssl("pkcs8", "-topk8", "-nocrypt", "-in", pki.path(name + ".key"), "-out", plain)
    softhsm("--import", plain, "--token", "constancia", "--label", name,
            "--id", name.encode().hex(), environment=environment)
    plain.unlink()
    uri = f"pkcs11:token=constancia;object={quote(name)};type=private?module-path={MODULE}"
    return {"signer.key": uri,
            "signer.chain": str(chain), **locked}


def softhsm(*words, environment):
    subprocess.run(["softhsm2-util", *map(str, words), "--pin", PASSPHRASE], check=True,
                   capture_output=True, env={**os.environ, **environment})


def token_environment(pki):
    return {"SOFTHSM2_CONF": str(pki.path("softhsm2.conf"))}


HOLDERS = {"pem": held_in_pem, "encrypted": held_encrypted, "pkcs12": held_in_pkcs12,
           "pkcs11": held_by_token}


def as_next(settings):
    """Returns the settings of the same key as the next one."""
    return {name.replace("signer.", "signer.next_"): value for name, value in settings.items()}


def main():
    made = Pki(sys.argv[1])
    ends = int(sys.argv[2])
    if made.path("mortal").exists():
        made.go_on("mortal", ends)
    else:
        made.timestamps("mortal", ends=ends)
    for issuer in ("issuer", "root"):
        made.write_list(issuer)


if __name__ == "__main__":
    main()
