package org.constancia.client.evidence;

import java.time.OffsetDateTime;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * What a check of an archive found.
 *
 * @param code as that of {@code constancia verify}, the worse one of this process and of the program
 * @param findings what keeps the archive from being valid
 * @param warnings what does not
 * @param checked what was checked
 * @param notChecked what was not, and what was not given, which does not change the verdict
 * @param signaturesBy {@code program}: signatures and their origin; {@code client}: only that the keys of the
 *     certificates inside made them; null: they were not checked
 * @param manifest of the archive; null if it has none
 * @param signerSha256 SHA-256 of the certificate that is named as the signer's; may be null
 * @param stampedAt time of the signature's timestamp; may be null
 * @param receipts null if none were given
 * @param program what the program said; null if it was not run
 */
public record ArchiveCheck(String code, List<Finding> findings, List<Finding> warnings, List<String> checked,
                           List<String> notChecked, String signaturesBy, JsonNode manifest, String signerSha256,
                           OffsetDateTime stampedAt, ReceiptCheck receipts, JsonNode program) {
    /** What is said of an archive. */
    public enum Verdict {
        /** All is right, also by the program and its roots. */
        VALID,
        /** Nothing is wrong, but something is open. */
        ORIGIN_NOT_ESTABLISHED,
        /** It is forged, damaged, or not as the format has it. */
        INVALID
    }

    /**
     * Something that keeps an archive from being valid, or a warning.
     *
     * @param code of the program, or begins with {@code client.}
     * @param what a sentence
     * @param by {@code client} or {@code program}
     */
    public record Finding(String code, String what, String by) { }

    /**
     * Receipts against an archive.
     *
     * @param compared of events that it holds
     * @param outside of other events, channels or modes, of which nothing is said
     * @param differing of those that were compared
     */
    public record ReceiptCheck(long compared, long outside, long differing) { }

    /**
     * Returns the verdict.
     *
     * @return valid only if nothing keeps the archive from being valid
     */
    public Verdict verdict() {
        return code.equals("valid") ? Verdict.VALID
            : code.equals("not_valid") ? Verdict.INVALID : Verdict.ORIGIN_NOT_ESTABLISHED;
    }

    /**
     * Returns whether nothing keeps the archive from being valid.
     *
     * @return true also by the program
     */
    public boolean isValid() {
        return verdict() == Verdict.VALID;
    }
}
