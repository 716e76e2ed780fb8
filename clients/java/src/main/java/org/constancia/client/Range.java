package org.constancia.client;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** The range of a certification: by sequence or by time of reception. */
public final class Range {
    private final ObjectNode body;

    private Range(ObjectNode body) {
        this.body = body;
    }

    /**
     * Returns a range by sequence.
     *
     * @param first the first event
     * @param last the last event, which is included
     * @return the range
     */
    public static Range ofSequences(long first, long last) {
        return new Range(Json.MAPPER.createObjectNode().put("seq_from", first).put("seq_to", last));
    }

    /**
     * Returns a range by time of reception.
     *
     * @param from included
     * @param to not included
     * @return the range
     */
    public static Range ofTimes(Instant from, Instant to) {
        return new Range(Json.MAPPER.createObjectNode().put("from", Json.text(from)).put("to", Json.text(to)));
    }

    /**
     * Returns the same range for a certification whose archive has the seal documents of all segments before its own.
     *
     * @return another range
     */
    public Range withSealHistory() {
        return new Range(body.deepCopy().put("seal_history", true));
    }

    /** Returns both bounds as the query of GET /channel/seals. */
    String query() {
        return "?from=" + bound("from") + "&to=" + bound("to");
    }

    private String bound(String name) {
        return URLEncoder.encode(body.path(body.has(name) ? name : "seq_" + name).asText(), StandardCharsets.UTF_8);
    }

    byte[] body() {
        return Json.bytes(body);
    }

    @Override
    public String toString() {
        return body.toString();
    }
}
