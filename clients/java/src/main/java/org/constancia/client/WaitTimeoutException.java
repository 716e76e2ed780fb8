package org.constancia.client;

import java.time.Duration;

/** The certification is not issued yet; waiting for it can continue. */
public final class WaitTimeoutException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    private final transient CertificationState certification;

    WaitTimeoutException(CertificationState certification, Duration time) {
        super(certification.getCertificationId() + " is not issued after " + time.toMillis() + " ms");
        this.certification = certification;
    }

    /**
     * Returns the certification that was waited for.
     *
     * @return its last state
     */
    public CertificationState certification() {
        return certification;
    }
}
