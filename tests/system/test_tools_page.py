"""The examples of docs/integrate/tools.md are executed as they are written."""

import os
import re
import subprocess
import threading

import pytest

from client import ROOT
from hooks import Receiver
from ports import reserve_port
from program import PATIENCE, clean_environment
from tools import TOOLS, receipts_of

PAGE = (ROOT / "docs" / "integrate" / "tools.md").read_text(encoding="utf-8")


def example(heading):
    """The commands of the first example below a heading."""
    text = PAGE.split(f"## {heading}\n")[1]
    return re.search(r"```sh\n(.*?)```", text, re.S)[1]


@pytest.fixture
def shell(service, channel, tmp_path):
    """Executes commands, `constancia` among them, with the page's variables set to a channel."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "constancia").symlink_to(TOOLS)
    (tmp_path / "roots.pem").write_bytes((service.data / "trust.pem").read_bytes())
    exported = example("Set the address and the key")
    exported = exported.replace("https://constancia.example", service.public_url)
    exported = exported.replace("svc_test_…", channel.test_key["key"])
    assert service.public_url in exported and channel.test_key["key"] in exported

    def execute(commands, expect=0):
        done = subprocess.run(["bash", "-euc", exported + commands], cwd=tmp_path, capture_output=True, text=True,
                              env=clean_environment({"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}), check=False,
                              timeout=5 * PATIENCE)
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout
    execute.folder = tmp_path
    return execute


def test_register_and_certify(shell):
    for name in ("contract.pdf", "minutes.txt"):
        (shell.folder / name).write_text(name)
    said = shell(example("Register files"))
    assert said.count("registered as evt_") == 2 and len(receipts_of(shell.folder)) == 2
    assert shell(example("Certify")).splitlines()[-1].startswith("VALID")
    first, follow = example("Follow the events").splitlines()
    assert len(shell(first).splitlines()) == 2
    assert "--follow" in follow
    assert len(shell(f"exec 3< <({follow}); head -n 2 <&3; kill $!").splitlines()) == 2


def test_notices_arrive(shell):
    listen, trigger = (line.split("#")[0] for line in example("Receive notices on a developer's machine").splitlines())
    with Receiver() as receiver:
        listen = listen.replace("http://localhost:3000/hook", receiver.url).strip() + " --once 1"
        assert receiver.url in listen
        said = []
        listening = threading.Thread(target=lambda: said.append(shell(listen)))
        listening.start()
        while listening.is_alive():  # only what is created after the start arrives
            shell(trigger)
            listening.join(0.2)
        assert receiver.next().type == "balance.low" and ": 200 in " in said[0]


def test_a_client_passes_through_faults(service, shell):
    (shell.folder / "file").write_text("content")
    port = reserve_port()
    chaos = example("Test a client against faults").strip()
    chaos = chaos.replace("127.0.0.1:8081", f"127.0.0.1:{port}").replace("http://127.0.0.1:8080", service.public_url)
    assert str(port) in chaos and service.public_url in chaos
    shell(f"""{chaos} & proxy=$!
    export CONSTANCIA_URL=http://127.0.0.1:{port}/v1
    for attempt in {{1..20}}; do constancia register file && break; done
    kill $proxy; wait $proxy""")
    assert len(receipts_of(shell.folder)) == 1


def test_the_page_names_every_command():
    commands = {"register", "certify", "events tail", "listen", "trigger", "chaos"}
    assert all(f"constancia {name}" in PAGE for name in commands)
