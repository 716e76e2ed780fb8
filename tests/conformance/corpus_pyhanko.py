#!/usr/bin/env python3
"""Has pyHanko judge reports, for corpus.py: each line of standard input has a name, a time, a directory with trust.pem, and the
report's name in it, with tabs between; each line of standard output the name, and whether it is valid.

As of the signature's timestamp, which has to be trusted itself, by what is inside alone, without asking for revocation data."""

import contextlib
import datetime
import logging
import pathlib
import sys

from pyhanko.keys import load_certs_from_pemder
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation import validate_pdf_signature, validate_pdf_timestamp
from pyhanko_certvalidator import ValidationContext


def context(roots, moment):
    return ValidationContext(trust_roots=roots, allow_fetching=False, revocation_mode="soft-fail", moment=moment)


def judge(report, roots, at):
    with open(report, "rb") as file:
        signature, = PdfFileReader(file).embedded_regular_signatures
        status = validate_pdf_signature(signature, context(roots, at), context(roots, at))
        stamp = status.timestamp_validity
        if stamp:
            at = stamp.timestamp
            signature, = PdfFileReader(file).embedded_regular_signatures
            status = validate_pdf_signature(signature, context(roots, at), context(roots, at))
        good = status.bottom_line and (not stamp or status.timestamp_validity.trusted)
        for last in PdfFileReader(file).embedded_timestamp_signatures:
            told = validate_pdf_timestamp(last, context(roots, last.self_reported_timestamp or at))
            good = good and told.intact and told.valid and told.trusted
        return "valid" if good else f"not valid: {status.summary()}"


def main():
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        name, at, directory, report = line.rstrip("\n").split("\t")
        trust = pathlib.Path(directory, "trust.pem")
        roots = list(load_certs_from_pemder([trust])) if trust.exists() else []
        moment = datetime.datetime.fromisoformat(at.replace("Z", "+00:00"))
        with contextlib.redirect_stdout(sys.stderr):
            try:
                said = judge(pathlib.Path(directory, report), roots, moment)
            except Exception as refusal:  # pylint: disable=broad-except  # whatever a damaged file makes it raise
                said = f"not valid: {type(refusal).__name__}: {' '.join(str(refusal).split())[:150]}"
        print(f"{name}\t{said}", flush=True)


main()
