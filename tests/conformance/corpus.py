#!/usr/bin/env python3
"""Has outside validators judge the corpus of damaged and forged evidence: usage: corpus.py BUILD_DIR VALIDATOR...

A validator is dss, pdfsig, pyhanko or readme (the commands in an archive's README.txt). It has to agree with what cases.json
says of `constancia verify`: what is valid is valid for it, and nothing else is. Where it legitimately does not agree,
corpus.json has the reason and the names of the cases; a name there that is of no such case is a fault, too. Prints a line for
each validator, and one for each fault. Exit status 0: no fault. --list prints each case on which one does not agree;
--only=PREFIX asks about cases whose names begin so.
"""

import concurrent.futures
import fnmatch
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "corpus/evidence"))
import forge  # noqa: E402

KNOWN = {"dss": ("archive", "report", "container", "record"), "pdfsig": ("report",), "pyhanko": ("report",),
         "readme": ("archive",)}
# The commands take seconds for each, and know no other time than today: these alone. tests/unit/proof has others.
BY_HAND = ("genuine/live", "genuine/middle", "genuine/last", "genuine/renewed", "genuine/history", "chain/", "stolen/")
# EU DSS rejects expired certificates without revocation data of their time: its verdict is for this many seconds later.
SOON = 2 * 86400


def judged(case):
    """The file that a validator is asked about, and what belongs to it."""
    names = [each["name"] for each in case["files"]]
    return names[0], [name for name in names[1:] if name.endswith(".json")]


def written(cases, work):
    for number, case in enumerate(cases):
        directory = work / f"{number:04}"
        directory.mkdir(parents=True)
        forge.write(case, directory)
        yield case, directory


def ask_dss(files, build):
    """A second verdict, as of soon after, about what is good and has no revocation data inside."""
    said = ask_dss_at(files, build)
    soon = f"{forge.moment(SOON):%Y-%m-%dT%H:%M:%SZ}"
    again = [({**case, "at": soon}, directory) for case, directory in files
             if case["code"] == "valid" and said.get(case["name"], (False, ""))[1].endswith("OUT_OF_BOUNDS_NO_POE")]
    return {**said, **(ask_dss_at(again, build) if again else {})}


def ask_dss_at(files, build):
    lines = []
    for case, directory in files:
        name, covered = judged(case)
        trust = directory / "trust.pem"
        lines.append("\t".join([case["name"], case["at"], str(trust if trust.exists() else "-"), str(directory / name),
                                *(str(directory / each) for each in covered)]))
    tools = build / "conformance/tools"
    done = subprocess.run(["java", "-cp", f"{tools}/judge:{tools}/dss/*", "Corpus"], input="\n".join(lines) + "\n",
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    said = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    return {name: (all(word in ("TOTAL_PASSED", "PASSED") for word in words.split()), words) for name, words in said.items()}


def each_by(function, files):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip([case["name"] for case, _ in files], pool.map(lambda one: function(*one), files)))


def ask_pdfsig(files, build):
    def ask(case, directory):
        done = subprocess.run(["pdfsig", "-nocert", directory / judged(case)[0]], capture_output=True, text=True, check=False,
                              errors="replace", env={**os.environ, "HOME": str(directory)})
        words = [line.strip() for line in done.stdout.splitlines()]
        found = [line for line in words if line.startswith("- Signature Validation:")]
        whole = [line for line in words if line in ("- Total document signed", "- Not total document signed")]
        # It does not verify document timestamps.
        good = bool(found) and found[0].endswith("Signature is Valid.") and whole[-1:] == ["- Total document signed"]
        return good, "; ".join(found + whole[-1:]) or done.stderr.strip()[:200]
    return each_by(ask, files)


def ask_pyhanko(files, build):
    lines = "".join(f"{case['name']}\t{case['at']}\t{directory}\t{judged(case)[0]}\n" for case, directory in files)
    done = subprocess.run([build / "conformance/tools/venv/bin/python", HERE / "corpus_pyhanko.py"], input=lines,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    said = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    return {name: (words.startswith("valid"), words) for name, words in said.items()}


def ask_readme(files, build):
    commands = (HERE.parents[1] / "src/archive/by_hand/check.sh").resolve()

    def ask(case, directory):
        unpacked = directory / "unpacked"
        unpacked.mkdir()
        try:
            with zipfile.ZipFile(directory / judged(case)[0]) as archive:
                archive.extractall(unpacked)
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError) as refusal:
            return False, f"not unpacked: {refusal}"
        for name in ("trust-signer.pem", "trust-timestamps.pem"):
            if (directory / "trust.pem").exists():
                shutil.copy(directory / "trust.pem", directory / name)
        done = subprocess.run(["bash", commands], cwd=unpacked, capture_output=True, text=True, check=False, errors="replace")
        last = done.stdout.splitlines()[-1:] or [""]
        return done.returncode == 0, f"{done.returncode} {last[0]}"
    return each_by(ask, files)


ASK = {"dss": ask_dss, "pdfsig": ask_pdfsig, "pyhanko": ask_pyhanko, "readme": ask_readme}


def faults_of(name, files, build, listing, in_part):
    reasons = json.loads((HERE / "corpus.json").read_text())[name]
    used, faults = set(), []
    files = [(case, directory) for case, directory in files if case["kind"] in KNOWN[name] and "receipts" not in case
             and "signer" not in case and (name != "readme" or case["name"].startswith(BY_HAND))]
    said = ASK[name](files, build)
    differ = 0
    for case, _ in files:
        good, words = said.get(case["name"], (False, "no answer"))
        # That it existed is all that a record alone shows to anybody, and what EU DSS says of one.
        if good == (case["code"] in ("valid", *["existence_only"] * (name == "dss"))):
            continue
        differ += 1
        if listing:
            print(f"{name}\t{case['name']}\t{case['code']}\t{words}")
        patterns = [pattern for reason in reasons for pattern in reason["cases"]
                    if fnmatch.fnmatchcase(case["name"], pattern) and reason["is_valid"] == good]
        used.update(patterns)
        if not patterns:
            faults.append(f"{case['name']}: {case['what']}: verify says {case['code']}, {name}: {words}")
    faults += [] if in_part else [f"corpus.json, {name}: '{pattern}' is of no case on which it differs" for reason in reasons
               for pattern in reason["cases"] if pattern not in used]
    print(f"{'FAIL' if faults else 'ok  '} {name}: {len(files)} cases of the corpus, as `constancia verify` has it but for "
          f"{differ} with a reason")
    for fault in [] if listing else faults:
        print(f"       {fault}")
    return bool(faults)


def main():
    build, names = pathlib.Path(sys.argv[1]).resolve(), [each for each in sys.argv[2:] if not each.startswith("--")]
    only = [each.partition("=")[2] for each in sys.argv if each.startswith("--only=")]
    work = build / "conformance" / "-".join(["corpus", *names])
    shutil.rmtree(work, ignore_errors=True)
    cases = [case for case in forge.load_cases() if not only or case["name"].startswith(tuple(only))]
    files = list(written(cases, work))
    failed = [faults_of(name, files, build, "--list" in sys.argv, bool(only)) for name in names]
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(any(failed))


main()
