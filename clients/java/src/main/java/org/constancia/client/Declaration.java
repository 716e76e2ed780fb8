package org.constancia.client;

import java.time.Instant;

/**
 * What one event declares: a payload, or a digest on a channel that keeps no content.
 *
 * @param clientRef its own reference, permanently unique in the channel
 * @param payload a JSON object: a map, a record, an ObjectNode; null with a digest
 * @param hash the digest in hexadecimal; null with a payload
 * @param hashAlg {@code sha-256} or {@code sha-512}; null with a payload
 * @param occurredAt declared time of the fact; may be null
 */
public record Declaration(String clientRef, Object payload, String hash, String hashAlg, Instant occurredAt) {
    /**
     * Refuses a declaration without a reference.
     *
     * @param clientRef its own reference
     * @param payload a JSON object
     * @param hash the digest
     * @param hashAlg of the digest
     * @param occurredAt declared time
     */
    public Declaration {
        if (clientRef == null)
            throw new IllegalArgumentException("a declaration has a clientRef");
    }

    /**
     * Returns the declaration of a payload.
     *
     * @param clientRef its own reference
     * @param payload a JSON object
     * @return the declaration
     */
    public static Declaration of(String clientRef, Object payload) {
        return new Declaration(clientRef, payload, null, null, null);
    }

    /**
     * Returns the declaration of a SHA-256.
     *
     * @param clientRef its own reference
     * @param sha256 64 hexadecimal digits
     * @return the declaration
     */
    public static Declaration ofDigest(String clientRef, String sha256) {
        return new Declaration(clientRef, null, sha256, "sha-256", null);
    }

    /**
     * Returns the same with a declared time.
     *
     * @param time of the fact
     * @return another declaration
     */
    public Declaration at(Instant time) {
        return new Declaration(clientRef, payload, hash, hashAlg, time);
    }
}
