package org.constancia.client;

/** What arrived, or was recorded, is not what it should be. */
public final class DigestMismatchException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    /** The digest that it should have. */
    private final String expected;
    /** The digest that it has. */
    private final String found;

    DigestMismatchException(String what, String expected, String found) {
        super(what + ": the digest is " + found + ", not " + expected);
        this.expected = expected;
        this.found = found;
    }

    /**
     * Returns the digest that it should have.
     *
     * @return hexadecimal digits
     */
    public String expected() {
        return expected;
    }

    /**
     * Returns the digest that it has.
     *
     * @return hexadecimal digits
     */
    public String found() {
        return found;
    }
}
