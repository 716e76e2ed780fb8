"""Creates and signs EU trusted lists (ETSI TS 119 612; XAdES, enveloped). For tests only; needs lxml and the
`openssl` command."""

import base64
import copy
import datetime
import hashlib
import subprocess

from lxml import etree

LIST = "http://uri.etsi.org/02231/v2#"
DS = "http://www.w3.org/2000/09/xmldsig#"
XADES = "http://uri.etsi.org/01903/v1.3.2#"
QUALIFICATIONS = "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#"
EXCLUSIVE = "http://www.w3.org/2001/10/xml-exc-c14n#"
ENVELOPED = DS + "enveloped-signature"
SHA256 = "http://www.w3.org/2001/04/xmlenc#sha256"
ECDSA = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
STATUS = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/"
TYPE = "http://uri.etsi.org/TrstSvc/Svctype/"
EXTENSION = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/"
GRANTED, WITHDRAWN = STATUS + "granted", STATUS + "withdrawn"
SEALS, TIMES = TYPE + "CA/QC", TYPE + "TSA/QTST"


def moment(days):
    when = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def body(pem):
    """Returns the base64 of the first certificate of a PEM file."""
    text = pem.read_text()
    return "".join(text.split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0].split())


def qualification(qualifiers, criteria):
    made = "".join(f'<q:Qualifier uri="{EXTENSION}{each}"/>' for each in qualifiers)
    return (f'<Extension Critical="true"><q:Qualifications xmlns:q="{QUALIFICATIONS}"><q:QualificationElement>'
            f"<q:Qualifiers>{made}</q:Qualifiers>{criteria}</q:QualificationElement></q:Qualifications>"
            "</Extension>")


def for_seals():
    return (f'<Extension Critical="false"><AdditionalServiceInformation><URI xml:lang="en">{EXTENSION}'
            "ForeSeals</URI></AdditionalServiceInformation></Extension>")


def period(kind, status, days, certificate=None, extensions=""):
    identity = f"<DigitalId><X509Certificate>{certificate}</X509Certificate></DigitalId>" \
        if certificate else "<DigitalId><X509SKI>AAAA</X509SKI></DigitalId>"
    more = f"<ServiceInformationExtensions>{extensions}</ServiceInformationExtensions>" if extensions else ""
    return (f"<ServiceTypeIdentifier>{kind}</ServiceTypeIdentifier><ServiceName><Name xml:lang=\"en\">A service"
            f"</Name></ServiceName><ServiceDigitalIdentity>{identity}</ServiceDigitalIdentity>"
            f"<ServiceStatus>{status}</ServiceStatus><StatusStartingTime>{moment(days)}</StatusStartingTime>{more}")


def service(pem, kind, periods, extensions=""):
    """`periods`: (status, start in days from now), optionally with a type; newest first."""
    parts = [period(more[0] if more else kind, status, days, body(pem) if number == 0 else None, extensions)
             for number, (status, days, *more) in enumerate(periods)]
    history = "".join(f"<ServiceHistoryInstance>{part}</ServiceHistoryInstance>" for part in parts[1:])
    return (f"<TSPService><ServiceInformation>{parts[0]}</ServiceInformation>"
            f"<ServiceHistory>{history}</ServiceHistory></TSPService>")


def unsigned(services, issued=-0.01, next_update=30):
    """`issued`, `next_update`: days from now; next_update None: the list is closed."""
    following = f"<dateTime>{moment(next_update)}</dateTime>" if next_update is not None else ""
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<TrustServiceStatusList xmlns="{LIST}" Id="list" TSLTag="http://uri.etsi.org/19612/TSLTag">
<SchemeInformation><TSLVersionIdentifier>5</TSLVersionIdentifier>
<SchemeOperatorName><Name xml:lang="en">An operator of a scheme</Name></SchemeOperatorName>
<SchemeTerritory>ES</SchemeTerritory><ListIssueDateTime>{moment(issued)}</ListIssueDateTime>
<NextUpdate>{following}</NextUpdate></SchemeInformation>
<TrustServiceProviderList><TrustServiceProvider>
<TSPInformation><TSPName><Name xml:lang="en">A provider</Name></TSPName></TSPInformation>
<TSPServices>{"".join(services)}</TSPServices>
</TrustServiceProvider></TrustServiceProviderList>
</TrustServiceStatusList>"""
    return etree.fromstring(text.encode())


def canonical(element):
    return etree.tostring(element, method="c14n", exclusive=True)


def digest(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def reference(uri, transforms, value, more=""):
    inside = "".join(f'<ds:Transform Algorithm="{each}"/>' for each in transforms)
    return (f'<ds:Reference URI="{uri}"{more}><ds:Transforms>{inside}</ds:Transforms>'
            f'<ds:DigestMethod Algorithm="{SHA256}"/><ds:DigestValue>{value}</ds:DigestValue></ds:Reference>')


def raw_ecdsa(der):
    """Returns r and s, 32 bytes each, of a DER signature."""
    at, out = 2, b""
    for _ in range(2):
        size = der[at + 1]
        out += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return out


def sign(document, key, certificates, whole="", transforms=(ENVELOPED, EXCLUSIVE), properties=True):
    """Returns `document`, signed with that key (P-256), as bytes."""
    root = copy.deepcopy(document)
    signature = etree.fromstring(
        f'<ds:Signature xmlns:ds="{DS}" Id="signature"><ds:SignedInfo/><ds:SignatureValue/><ds:KeyInfo>'
        "<ds:X509Data>"
        + "".join(f"<ds:X509Certificate>{body(each)}</ds:X509Certificate>" for each in certificates)
        + f'</ds:X509Data></ds:KeyInfo><ds:Object><xades:QualifyingProperties xmlns:xades="{XADES}" '
          f'Target="#signature"><xades:SignedProperties Id="properties"><xades:SignedSignatureProperties>'
          f"<xades:SigningTime>{moment(-1)}</xades:SigningTime></xades:SignedSignatureProperties>"
          "</xades:SignedProperties></xades:QualifyingProperties></ds:Object></ds:Signature>")
    covered = digest(canonical(root))
    root.append(signature)
    signed = root.find(f".//{{{XADES}}}SignedProperties")
    references = reference(whole, transforms, covered)
    if properties:
        references += reference("#properties", [EXCLUSIVE], digest(canonical(signed)),
                                ' Type="http://uri.etsi.org/01903#SignedProperties"')
    info = etree.fromstring(
        f'<ds:SignedInfo xmlns:ds="{DS}"><ds:CanonicalizationMethod Algorithm="{EXCLUSIVE}"/>'
        f'<ds:SignatureMethod Algorithm="{ECDSA}"/>{references}</ds:SignedInfo>')
    signature.replace(signature.find(f"{{{DS}}}SignedInfo"), info)
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(key)], input=canonical(info),
                         capture_output=True, check=True).stdout
    signature.find(f"{{{DS}}}SignatureValue").text = base64.b64encode(raw_ecdsa(der)).decode()
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8")
