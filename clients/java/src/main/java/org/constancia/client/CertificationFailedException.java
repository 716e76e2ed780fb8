package org.constancia.client;

/** The certification could not be issued; the same range can be requested again. */
public final class CertificationFailedException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    private final transient CertificationState certification;

    CertificationFailedException(CertificationState certification) {
        super(certification.getCertificationId() + " failed");
        this.certification = certification;
    }

    /**
     * Returns the certification that failed.
     *
     * @return its last state
     */
    public CertificationState certification() {
        return certification;
    }
}
