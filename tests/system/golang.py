"""Go for the tests of its client: Debian's, without a network, and with what it makes below a temporary folder."""

import os
import pathlib
import subprocess

from program import ROOT

CLIENT = ROOT / "clients" / "go"
GO = os.environ.get("CONSTANCIA_GO") or next(
    (path for path in ("/usr/bin/go", "/usr/local/go/bin/go") if pathlib.Path(path).exists()), "go")


def run_go(folder, *words, cwd=CLIENT, timeout=600, **environment):
    """Runs the command `go`; folder: of its caches."""
    own = {"GOCACHE": f"{folder}/cache", "GOPATH": f"{folder}/path", "GOFLAGS": "-mod=mod", "GOPROXY": "off",
           "GOTOOLCHAIN": "local", "GOWORK": "off", "GOENV": "off", "GOTELEMETRY": "off"}
    done = subprocess.run([GO, *map(str, words)], cwd=cwd, env={**os.environ, **own, **environment}, timeout=timeout,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    return done.stdout
