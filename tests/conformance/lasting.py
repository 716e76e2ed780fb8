#!/usr/bin/env python3
"""Has pyHanko judge a report as AdES (ETSI EN 319 102-1) by what is inside it alone, revocation data
too: no service is queried.

usage: lasting.py TRUST.pem REPORT.pdf

Its command `sign adesverify` asks the places that certificates name before it looks into the file,
and counts one that does not answer against it; as a library it can be configured not to. Prints its
verdict. Exit status 0: passed.
"""

import asyncio
import sys

from pyhanko.keys import load_certs_from_pemder
from pyhanko.pdf_utils.reader import PdfFileReader
from pyhanko.sign.validation.ades import ades_lta_validation
from pyhanko.sign.validation.policy_decl import (
    PdfSignatureValidationSpec, RevinfoOnlineFetchingRule, RevocationInfoGatheringSpec,
    SignatureValidationSpec)
from pyhanko_certvalidator.context import CertValidationPolicySpec
from pyhanko_certvalidator.policy_decl import REQUIRE_REVINFO, CertRevTrustPolicy, FreshnessReqType
from pyhanko_certvalidator.registry import SimpleTrustManager


def policy(roots):
    """As the command's, but for where revocation data comes from."""
    certificates = CertValidationPolicySpec(
        trust_manager=SimpleTrustManager.build(trust_roots=roots),
        revinfo_policy=CertRevTrustPolicy(
            REQUIRE_REVINFO, freshness=None,
            freshness_req_type=FreshnessReqType.MAX_DIFF_REVOCATION_VALIDATION))
    inside_alone = RevocationInfoGatheringSpec(
        online_fetching_rule=RevinfoOnlineFetchingRule.LOCAL_ONLY)
    return PdfSignatureValidationSpec(SignatureValidationSpec(
        cert_validation_policy=certificates, revinfo_gathering_policy=inside_alone))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    roots = list(load_certs_from_pemder([sys.argv[1]]))
    with open(sys.argv[2], "rb") as file:
        (signature,) = PdfFileReader(file).embedded_regular_signatures
        verdict = asyncio.run(ades_lta_validation(signature, policy(roots))).ades_subindic
    print(f"{verdict.status.name} {verdict}")
    sys.exit(verdict.status.name != "PASSED")


main()
