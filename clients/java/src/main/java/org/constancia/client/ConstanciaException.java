package org.constancia.client;

/** Every error of this client. No message has a key, a secret or the signature of a link. */
public class ConstanciaException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The key of a certification that failed. */
    private String idempotencyKey;

    ConstanciaException(String message) {
        super(message);
    }

    ConstanciaException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * Returns the key of a certification that failed, to repeat the request with; null for any other call.
     *
     * @return the key that was sent
     */
    public String idempotencyKey() {
        return idempotencyKey;
    }

    void setIdempotencyKey(String key) {
        idempotencyKey = key;
    }
}
