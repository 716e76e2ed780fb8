package org.constancia.client;

import java.time.Duration;
import java.util.Map;
import java.util.function.Function;

/**
 * The service refused. {@link #code()} is for programs, {@link #description()} for readers. Later services may have
 * other codes: fall back on the class, which follows the HTTP status.
 */
public class ApiException extends ConstanciaException {
    private static final long serialVersionUID = 1L;

    private static final Map<Integer, Function<Facts, ApiException>> BY_STATUS = Map.of(
        400, InvalidRequest::new, 401, Unauthorized::new, 402, PaymentRequired::new, 403, Forbidden::new,
        404, NotFound::new, 409, Conflict::new, 413, TooLarge::new, 429, TooManyRequests::new,
        503, Unavailable::new);

    private final transient Facts facts;

    ApiException(Facts facts) {
        super(facts.text());
        this.facts = facts;
    }

    /** What an answer says. */
    record Facts(int status, String code, String message, String requestId, String incidentId, Duration retryAfter,
                 String eventId, String docUrl) {
        String text() {
            StringBuilder marks = new StringBuilder((status + " " + code).strip());
            if (requestId != null)
                marks.append(", request ").append(requestId);
            if (incidentId != null)
                marks.append(", incident ").append(incidentId);
            return message + " (" + marks + ")";
        }
    }

    /** Returns the error of a refusal: by its code where it has a class of its own, else by the status. */
    static ApiException of(Facts facts) {
        if (facts.code.equals("limit_blocked") && facts.status == 422)
            return new LimitBlocked(facts);
        if (facts.code.equals("suspended") && facts.status == 403)
            return new Suspended(facts);
        if (facts.code.equals("account_disabled") && facts.status == 403)
            return new AccountDisabled(facts);
        Function<Facts, ApiException> general = facts.status >= 500 ? ServerError::new : ApiException::new;
        return BY_STATUS.getOrDefault(facts.status, general).apply(facts);
    }

    /**
     * Returns the HTTP status.
     *
     * @return 300 to 599
     */
    public int status() {
        return facts.status;
    }

    /**
     * Returns the code of the error.
     *
     * @return empty if there was none
     */
    public String code() {
        return facts.code;
    }

    /**
     * Returns the service's message alone, in the language of the client.
     *
     * @return a sentence
     */
    public String description() {
        return facts.message;
    }

    /**
     * Returns what names the request in the service's log.
     *
     * @return null if there was none
     */
    public String requestId() {
        return facts.requestId;
    }

    /**
     * Returns what to quote to the operator.
     *
     * @return null unless the status is 5xx
     */
    public String incidentId() {
        return facts.incidentId;
    }

    /**
     * Returns the delay that the service asks for.
     *
     * @return null if it asks for none
     */
    public Duration retryAfter() {
        return facts.retryAfter;
    }

    /**
     * Returns the original event of a conflict.
     *
     * @return null unless it is the conflict of a registration
     */
    public String eventId() {
        return facts.eventId;
    }

    /**
     * Returns the page about the error.
     *
     * @return null if there is none
     */
    public String docUrl() {
        return facts.docUrl;
    }

    /** 400: the message names the field and the reason. */
    public static class InvalidRequest extends ApiException {
        private static final long serialVersionUID = 1L;

        InvalidRequest(Facts facts) {
            super(facts);
        }
    }

    /** 401: no key, or none that is valid. */
    public static class Unauthorized extends ApiException {
        private static final long serialVersionUID = 1L;

        Unauthorized(Facts facts) {
            super(facts);
        }
    }

    /** 402: unpaid events, or too little balance. */
    public static class PaymentRequired extends ApiException {
        private static final long serialVersionUID = 1L;

        PaymentRequired(Facts facts) {
            super(facts);
        }
    }

    /** 403: the account or channel is suspended or disabled. */
    public static class Forbidden extends ApiException {
        private static final long serialVersionUID = 1L;

        Forbidden(Facts facts) {
            super(facts);
        }
    }

    /** 403 {@code suspended}: registrations and certifications are refused; reading is not. */
    public static class Suspended extends Forbidden {
        private static final long serialVersionUID = 1L;

        Suspended(Facts facts) {
            super(facts);
        }
    }

    /** 403 {@code account_disabled}: every call is refused. */
    public static class AccountDisabled extends Forbidden {
        private static final long serialVersionUID = 1L;

        AccountDisabled(Facts facts) {
            super(facts);
        }
    }

    /** 404: not on this channel and chain; or a link that is expired. */
    public static class NotFound extends ApiException {
        private static final long serialVersionUID = 1L;

        NotFound(Facts facts) {
            super(facts);
        }
    }

    /** 409: the same reference was used for something else. Nothing was overwritten. */
    public static class Conflict extends ApiException {
        private static final long serialVersionUID = 1L;

        Conflict(Facts facts) {
            super(facts);
        }
    }

    /** 413: the content is too large. */
    public static class TooLarge extends ApiException {
        private static final long serialVersionUID = 1L;

        TooLarge(Facts facts) {
            super(facts);
        }
    }

    /**
     * 422 {@code limit_blocked}: a consumption limit refuses events until its next period, which begins after
     * {@link #retryAfter()} where the service says so.
     */
    public static class LimitBlocked extends ApiException {
        private static final long serialVersionUID = 1L;

        LimitBlocked(Facts facts) {
            super(facts);
        }
    }

    /** 429, still after all retries or with a longer delay than they may take. */
    public static class TooManyRequests extends ApiException {
        private static final long serialVersionUID = 1L;

        TooManyRequests(Facts facts) {
            super(facts);
        }
    }

    /** 5xx. */
    public static class ServerError extends ApiException {
        private static final long serialVersionUID = 1L;

        ServerError(Facts facts) {
            super(facts);
        }
    }

    /** 503, still after all retries: nothing was acknowledged. */
    public static class Unavailable extends ServerError {
        private static final long serialVersionUID = 1L;

        Unavailable(Facts facts) {
            super(facts);
        }
    }
}
