package org.constancia.client.evidence;

/** Something that the format of evidence rules out. */
final class Invalid extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Invalid(String message) {
        super(message);
    }

    /** Throws Invalid unless the condition holds. */
    static void require(boolean holds, String where, String what) {
        if (!holds)
            throw new Invalid(where + ": " + what);
    }
}
