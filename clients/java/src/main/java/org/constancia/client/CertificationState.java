package org.constancia.client;

import java.time.Duration;

import com.fasterxml.jackson.annotation.JsonIgnore;

import org.constancia.client.model.Certification;

/** A certification, and what the head of the answer said of it. Its links open for everyone, so that it shows none. */
public final class CertificationState extends Certification {
    @JsonIgnore
    private boolean replayed;
    @JsonIgnore
    private Duration retryAfter;

    private CertificationState() {
    }

    static CertificationState of(byte[] answer, boolean replayed, Duration retryAfter) {
        CertificationState state = Json.decode(answer, CertificationState.class);
        if (state.getCertificationId() == null)
            throw new UnexpectedAnswerException("the answer is no Certification");
        state.replayed = replayed;
        state.retryAfter = retryAfter;
        return state;
    }

    /**
     * Returns whether it was requested before, and this is the original.
     *
     * @return false if it was requested now
     */
    @JsonIgnore
    public boolean isReplayed() {
        return replayed;
    }

    /**
     * Returns when the service would like to be asked again.
     *
     * @return null if it did not say
     */
    public Duration retryAfter() {
        return retryAfter;
    }

    @Override
    public String toString() {
        return getCertificationId() + " " + getStatus();
    }
}
