package org.constancia.client;

/** The calling thread was interrupted. Its interrupt status is set again, and no request follows. */
public final class CallInterruptedException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    /** Makes the error of a thread that was interrupted. */
    public CallInterruptedException() {
        super("the call was interrupted");
    }
}
