package org.constancia.client;

/** Something answered that is not the service, or not one that this client understands. */
public final class UnexpectedAnswerException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    UnexpectedAnswerException(String message) {
        super(message);
    }
}
