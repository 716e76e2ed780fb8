package org.constancia.client;

/** No whole answer came: the service may or may not have done what was asked. */
public final class ConnectionFailedException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    /** False if there was no connection. */
    private final boolean sent;

    ConnectionFailedException(String message, boolean sent) {
        super(message);
        this.sent = sent;
    }

    /**
     * Returns whether any byte of the request may have left.
     *
     * @return false if there was no connection
     */
    public boolean sent() {
        return sent;
    }
}
