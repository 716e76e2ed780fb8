package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.ByteArrayInputStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateFactory;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PSSParameterSpec;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A SignedData (CMS, RFC 5652) with one signer, whose message-digest is over its content. Whose certificate it is,
 * whether it was revoked, and the other rules of signatures are not judged here.
 */
final class Signed {
    static final String DATA = "2a864886f70d010701";
    static final String TST_INFO = "2a864886f70d0109100104";
    private static final String SIGNED_DATA = "2a864886f70d010702";
    private static final String CONTENT_TYPE = "2a864886f70d010903";
    private static final String MESSAGE_DIGEST = "2a864886f70d010904";
    private static final String SIGNING_TIME = "2a864886f70d010905";
    private static final String TIMESTAMP = "2a864886f70d010910020e";
    private static final String REFERENCE_1 = "2a864886f70d010910020c";
    private static final String REFERENCE_2 = "2a864886f70d010910022f";
    private static final String PSS = "2a864886f70d01010a";
    private static final Map<String, String> DIGESTS = Map.of("608648016503040201", "SHA-256",
        "608648016503040202", "SHA-384", "608648016503040203", "SHA-512");
    /** Digests that a reference to a certificate may have in addition; of others nothing is said. */
    private static final Map<String, String> REFERENCE_DIGESTS = Map.of("2b0e03021a", "SHA-1",
        "608648016503040204", "SHA-224");

    private final String where;
    private final List<String> digests = new ArrayList<>();
    private final List<byte[]> certificates = new ArrayList<>();
    private Map<String, Ber> attributes;
    private byte[] attributesDer;
    private Ber algorithm;
    private byte[] certificate;
    private Ber unsigned;
    private boolean hasVersion4Choice;
    private final boolean hasOtherRevocations;
    final int version;
    final byte[] content;
    String digest;
    byte[] value;

    /** The libraries at hand cannot judge a signature. */
    static final class Unchecked extends Exception {
        private static final long serialVersionUID = 1L;

        Unchecked(String message) {
            super(message);
        }
    }

    /** detached: what the signature is over; null: it is inside. */
    Signed(byte[] data, String where, byte[] detached, String kind) {
        this.where = where;
        List<Ber> outer = Ber.parse(data, 0x30, where).children(2, where);
        require(oid(outer.get(0)).equals(SIGNED_DATA) && outer.get(1).tag == 0xA0, where, "not SignedData");
        List<Ber> parts = outer.get(1).children(1, where).get(0).children();
        byte[] number = Ber.expect(parts, 2, where).content();
        require(number.length == 1, where, "the version of its SignedData");
        version = number[0];
        Ber.expect(parts, 0x31, where).children().forEach(one -> digests.add(oid(one.child(0))));
        List<Ber> inside = Ber.expect(parts, 0x30, where).children();
        require(!inside.isEmpty() && oid(inside.get(0)).equals(kind), where, "the type of its content");
        require(inside.size() == (detached != null ? 1 : 2), where, "whether its content is inside");
        content = detached != null ? detached : inside.get(1).child(0).octets();
        readCertificates(Ber.optional(parts, 0xA0));
        Ber revocations = Ber.optional(parts, 0xA1);
        require(revocations == null || detached == null || !revocations.children().isEmpty(), where,
            "an empty set of revocation data");
        hasOtherRevocations = revocations != null && revocations.children().stream().anyMatch(one -> one.tag == 0xA1);
        List<Ber> signers = Ber.expect(parts, 0x31, where).children();
        require(parts.isEmpty() && signers.size() == 1, where, "not exactly one signer");
        readSigner(signers.get(0).children(), kind);
    }

    private void readCertificates(Ber choices) {
        List<Ber> all = choices == null ? List.of() : choices.children();
        for (Ber one : all) {
            hasVersion4Choice |= one.tag == 0xA2;
            if (one.tag == 0x30)
                certificates.add(one.whole());
        }
        require(!all.isEmpty() && all.size() <= 16 && !certificates.isEmpty(), where, "its certificates");
    }

    private void readSigner(List<Ber> parts, String kind) {
        require(Arrays.equals(Ber.expect(parts, 2, where).content(), new byte[] {1}), where,
            "the version of its signer");
        List<Ber> name = Ber.expect(parts, 0x30, where).children(2, where);
        String used = oid(Ber.expect(parts, 0x30, where).child(0));
        require(DIGESTS.containsKey(used), where, "another digest than SHA-2");
        require(digests.equals(List.of(used)), where, "its digest algorithms");
        digest = DIGESTS.get(used);
        Ber signed = Ber.expect(parts, 0xA0, where);
        attributes = attributes(signed);
        List<byte[]> each = new ArrayList<>();
        signed.children().forEach(one -> each.add(one.der()));
        attributesDer = Ber.set(each);
        algorithm = Ber.expect(parts, 0x30, where);
        value = Ber.expect(parts, 4, where).octets();
        unsigned = Ber.optional(parts, 0xA1);
        require(parts.isEmpty(), where, "more than a signer has");
        require(oid(attribute(CONTENT_TYPE)).equals(kind), where, "the attribute content-type");
        require(Arrays.equals(attribute(MESSAGE_DIGEST).octets(), Forms.running(digest).digest(content)), where,
            "it is over something else");
        certificate = certificates.stream().filter(one -> isNamed(one, name)).findFirst().orElse(null);
        require(certificate != null, where, "the signer's certificate is not inside");
        require(attributes.containsKey(REFERENCE_1) || attributes.containsKey(REFERENCE_2), where,
            "the attribute signing-certificate is missing");
        checkReference(attributes.get(REFERENCE_1), true);
        checkReference(attributes.get(REFERENCE_2), false);
    }

    private static String oid(Ber element) {
        return HexFormat.of().formatHex(element.content());
    }

    private Map<String, Ber> attributes(Ber from) {
        Map<String, Ber> found = new HashMap<>();
        List<Ber> all = from.children();
        for (Ber one : all) {
            List<Ber> pair = one.children(2, where);
            require(pair.get(0).tag == 6 && pair.get(1).tag == 0x31, where, "an attribute");
            found.put(oid(pair.get(0)), pair.get(1).children(1, where).get(0));
        }
        require(all.size() <= 16 && found.size() == all.size(), where, "attributes");
        return found;
    }

    private Ber attribute(String kind) {
        require(attributes.containsKey(kind), where, "an attribute is missing");
        return attributes.get(kind);
    }

    /** Returns whether a certificate has this issuer and this serial number. */
    private static boolean isNamed(byte[] certificate, List<Ber> name) {
        List<Ber> parts = Ber.parse(certificate, 0x30, "a certificate").child(0).children();
        Ber.optional(parts, 0xA0);
        return Arrays.equals(parts.get(2).whole(), name.get(0).whole())
            && Arrays.equals(parts.get(0).content(), name.get(1).content());
    }

    /** Checks that ESSCertID (SHA-1) or ESSCertIDv2 names the signer's certificate first. */
    private void checkReference(Ber reference, boolean isFirstVersion) {
        if (reference == null)
            return;
        List<Ber> named = reference.child(0).child(0).children();
        require(!named.isEmpty(), where, "the attribute signing-certificate");
        String with = isFirstVersion ? "SHA-1" : "SHA-256";
        if (!isFirstVersion && named.get(0).tag == 0x30) {
            String used = oid(named.remove(0).child(0));
            with = DIGESTS.getOrDefault(used, REFERENCE_DIGESTS.get(used));
        }
        require(with == null || Arrays.equals(named.get(0).octets(), Forms.running(with).digest(certificate)), where,
            "the attribute signing-certificate names another");
    }

    /** Returns the SHA-256 of the signer's certificate. */
    String fingerprint() {
        return Forms.sha256(certificate);
    }

    /** Checks the version of the SignedData of an archive's signature. */
    void checkVersion() {
        require(version == (hasOtherRevocations ? 5 : 1), where, "the version of its SignedData");
    }

    /** Checks the version of the SignedData of a timestamp. */
    void checkTokenVersion() {
        require(hasOtherRevocations ? version == 5 : version == 3 || version == 4 && hasVersion4Choice, where,
            "the version of its SignedData");
    }

    /** Returns the token over the signature's value, the only unsigned attribute there may be; null without one. */
    byte[] timestamp() {
        if (unsigned == null)
            return null;
        Map<String, Ber> found = attributes(unsigned);
        require(found.keySet().equals(Set.of(TIMESTAMP)), where, "unsigned attributes");
        return found.get(TIMESTAMP).whole();
    }

    LocalDateTime signingTime() {
        Ber node = attribute(SIGNING_TIME);
        String text = new String(node.content(), StandardCharsets.ISO_8859_1);
        if (node.tag == 0x17 && text.matches("[0-9]{12}Z"))
            text = (text.compareTo("50") < 0 ? "20" : "19") + text;
        else
            require(node.tag == 0x18, where, "signing-time");
        require(text.matches("[0-9]{14}Z"), where, "signing-time");
        return Token.time(text);
    }

    /** Throws Invalid unless the key of the certificate inside made the signature. */
    void checkValue() throws Unchecked {
        try {
            PublicKey key = CertificateFactory.getInstance("X.509")
                .generateCertificate(new ByteArrayInputStream(certificate)).getPublicKey();
            Signature check = verifier(key.getAlgorithm());
            check.initVerify(key);
            check.update(attributesDer);
            require(check.verify(value), where, "the signature is wrong");
        } catch (SignatureException error) {
            throw new Invalid(where + ": the signature is wrong");
        } catch (GeneralSecurityException error) {
            throw new Unchecked(where + ": " + error.getMessage());
        }
    }

    private Signature verifier(String key) throws GeneralSecurityException, Unchecked {
        String hash = digest.replace("-", "");
        if (key.equals("EC"))
            return Signature.getInstance(hash + "withECDSA");
        if (!key.equals("RSA") && !key.equals("RSASSA-PSS"))
            throw new Unchecked(where + ": a key of another kind");
        if (!oid(algorithm.child(0)).equals(PSS))
            return Signature.getInstance(hash + "withRSA");
        Signature check = Signature.getInstance("RSASSA-PSS");
        check.setParameter(new PSSParameterSpec(digest, "MGF1", new MGF1ParameterSpec(digest), saltLength(), 1));
        return check;
    }

    /** Returns the length of the salt that the parameters of RSASSA-PSS state; 20 without one. */
    private int saltLength() {
        List<Ber> all = algorithm.children();
        if (all.size() < 2 || all.get(1).tag != 0x30)
            return 20;
        for (Ber one : all.get(1).children()) {
            if (one.tag == 0xA2)
                return new BigInteger(one.child(0).content()).intValueExact();
        }
        return 20;
    }
}
