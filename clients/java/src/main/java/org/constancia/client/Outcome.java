package org.constancia.client;

/**
 * What became of a declaration of a batch: an event, or the error of that one alone.
 *
 * @param clientRef the declaration's reference
 * @param receipt null if it was refused
 * @param error null if it was registered
 */
public record Outcome(String clientRef, Receipt receipt, ApiException error) {
    /**
     * Returns the receipt, or throws the error.
     *
     * @return the receipt
     */
    public Receipt result() {
        if (error != null)
            throw error;
        return receipt;
    }
}
