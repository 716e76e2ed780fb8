package org.constancia.client;

/** A notice that the service did not sign, or not recently. */
public final class InvalidSignatureException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    InvalidSignatureException(String message) {
        super(message);
    }
}
