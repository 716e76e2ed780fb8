package org.constancia.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How often a call is repeated. After 429 and 503 it waits as the service says by Retry-After, after a lost connection
 * in growing steps, each with a random addition so that clients do not return at once.
 *
 * @param attempts attempts in all; 1: no retry
 * @param patience the longest waiting of a call
 */
public record Retry(int attempts, Duration patience) {
    /** Five attempts and a minute. */
    public static final Retry DEFAULT = new Retry(5, Duration.ofMinutes(1));

    /**
     * Checks the numbers.
     *
     * @param attempts 1 or more
     * @param patience not negative
     */
    public Retry {
        if (attempts < 1 || patience.isNegative())
            throw new IllegalArgumentException("attempts is 1 or more, and patience is not negative");
    }

    /** Returns the delay before the next attempt, null when there is none. */
    Duration delay(int attempt, Duration retryAfter, Duration waited) {
        double chance = ThreadLocalRandom.current().nextDouble();
        double seconds = retryAfter == null ? 0.25 * (1 + chance) * Math.pow(2, attempt - 1)
            : retryAfter.toSeconds() * (1 + 0.25 * chance);
        Duration left = patience.minus(waited);
        if (attempt >= attempts || left.isZero() || retryAfter != null && retryAfter.compareTo(left) > 0)
            return null;
        Duration delay = Duration.ofMillis((long) Math.ceil(seconds * 1000));
        return delay.compareTo(left) < 0 ? delay : left;
    }
}
