"""constancia(1) names every command, and every option of its own.

usage: manual.py PROGRAM MANUAL
"""
import re
import subprocess
import sys


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def options(program, command):
    return set(re.findall(r"^  --([a-z-]+)", output(program, *command.split(), "--help"), re.M))


def main():
    program, manual = sys.argv[1:]
    text = open(manual, encoding="utf-8").read()
    # "Cm store check | backup Ar DIR" stands for both verbs.
    named = set()
    for line in re.findall(r"^\.(?:It )?Cm (.*)$", text, re.M):
        words = [word for word in line.split() if word.islower() or word == "|"]
        named.add(words[0])
        named.update(f"{words[0]} {word}" for word in words[1:])
    flags = set(re.findall(r"Fl -([a-z-]+)", text))
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?)(?: [A-Z.]+)?  ", output(program, "--help"), re.M)
    faults = [f"{command} is missing" for command in listed if command not in named]
    for command in listed:
        faults += [f"--{flag} of {command} is missing" for flag in options(program, command) - flags]
    faults += [] if len(listed) > 35 else [f"only {len(listed)} commands found in the help"]
    print("\n".join(faults) or f"{len(listed)} commands are described")
    return 1 if faults else 0


sys.exit(main())
