package org.constancia.client;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;

/** Filters of a list. All of them apply together; a query is never changed, each method returns another one. */
public final class Query {
    /** All, in the order of the service. */
    public static final Query ALL = new Query(Map.of());

    private final Map<String, String> members;

    private Query(Map<String, String> members) {
        this.members = members;
    }

    private Query with(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(members);
        more.put(name, value);
        return new Query(more);
    }

    /**
     * Adds a filter of events: received at or after a time.
     *
     * @param time included
     * @return another query
     */
    public Query from(Instant time) {
        return with("from", Json.text(time));
    }

    /**
     * Adds a filter of events: received before a time.
     *
     * @param time not included
     * @return another query
     */
    public Query to(Instant time) {
        return with("to", Json.text(time));
    }

    /**
     * Adds a filter of events: a range by sequence.
     *
     * @param first included
     * @param last included
     * @return another query
     */
    public Query sequences(long first, long last) {
        return with("seq_from", Long.toString(first)).with("seq_to", Long.toString(last));
    }

    /**
     * Adds a filter of events: from a sequence on.
     *
     * @param first included
     * @return another query
     */
    public Query since(long first) {
        return with("seq_from", Long.toString(first));
    }

    /**
     * Adds a filter of either list.
     *
     * @param status of an event or of a certification
     * @return another query
     */
    public Query status(String status) {
        return with("status", status);
    }

    /**
     * Adds a filter of events: the one with a reference.
     *
     * @param clientRef its reference
     * @return another query
     */
    public Query clientRef(String clientRef) {
        return with("client_ref", clientRef);
    }

    /**
     * Adds a filter of events: those that declare content of a digest.
     *
     * @param digest in hexadecimal
     * @return another query
     */
    public Query hash(String digest) {
        return with("hash", digest);
    }

    /**
     * Adds a filter of events: the algorithm of the digest.
     *
     * @param algorithm {@code sha-256} or {@code sha-512}
     * @return another query
     */
    public Query hashAlg(String algorithm) {
        return with("hash_alg", algorithm);
    }

    /**
     * Sets the order.
     *
     * @param order {@code asc} or {@code desc}
     * @return another query
     */
    public Query order(String order) {
        return with("order", order);
    }

    /**
     * Sets the size of a page.
     *
     * @param limit 1 or more
     * @return another query
     */
    public Query limit(int limit) {
        return with("limit", Integer.toString(limit));
    }

    /**
     * Sets the page.
     *
     * @param cursor of the page before
     * @return another query
     */
    public Query cursor(String cursor) {
        return with("cursor", cursor);
    }

    Query paged() {
        return members.containsKey("limit") ? this : limit(500);
    }

    String text() {
        return members.isEmpty() ? "" : "?" + members.entrySet().stream()
            .map(one -> one.getKey() + "=" + URLEncoder.encode(one.getValue(), StandardCharsets.UTF_8))
            .collect(Collectors.joining("&"));
    }
}
