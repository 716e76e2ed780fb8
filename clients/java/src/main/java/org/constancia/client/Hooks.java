package org.constancia.client;

import java.time.Duration;

/**
 * Methods that a client calls, for logs and metrics, in the thread that does the exchange. None is given a key, a body,
 * or the query of an address. What they throw is logged (logger {@code org.constancia.client}) and changes nothing.
 */
public interface Hooks {
    /** Hooks that do nothing. */
    Hooks NONE = new Hooks() { };

    /**
     * A request that is about to be sent.
     *
     * @param method GET or POST
     * @param url without its query, which opens a file in a download's link
     * @param attempt 1 is the first
     */
    record RequestSent(String method, String url, int attempt) { }

    /**
     * The head of an answer, whatever its status.
     *
     * @param method GET or POST
     * @param url without its query
     * @param attempt 1 is the first
     * @param status of HTTP
     * @param duration from the request to the head of the answer
     * @param requestId names the request in the service's log; may be null
     */
    record ResponseReceived(String method, String url, int attempt, int status, Duration duration,
                            String requestId) { }

    /**
     * An attempt that failed, and after which another one follows.
     *
     * @param method GET or POST
     * @param url without its query
     * @param attempt the one that failed
     * @param delay until the next one
     * @param error why it failed
     */
    record RetryPlanned(String method, String url, int attempt, Duration delay, ConstanciaException error) { }

    /**
     * Is called before each request.
     *
     * @param sent the request
     */
    default void onRequest(RequestSent sent) { }

    /**
     * Is called after the head of each answer.
     *
     * @param received the answer
     */
    default void onResponse(ResponseReceived received) { }

    /**
     * Is called before each repetition.
     *
     * @param planned the attempt that failed
     */
    default void onRetry(RetryPlanned planned) { }
}
