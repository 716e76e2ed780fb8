package org.constancia.client;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.constancia.client.model.Event;

/** The receipt of a registration: the event, and the answer as it came. */
public final class Receipt extends Event {
    @JsonIgnore
    private JsonNode raw;
    @JsonIgnore
    private boolean replayed;

    private Receipt() {
    }

    static Receipt of(byte[] answer, boolean replayed) {
        Receipt receipt = Json.decode(answer, Receipt.class);
        receipt.raw = Json.decode(answer, ObjectNode.class);
        receipt.replayed = replayed;
        if (receipt.getEventId() == null || receipt.getSequence() == null)
            throw new UnexpectedAnswerException("the answer is no Event");
        return receipt;
    }

    /**
     * Returns whether it was registered before, and this is the original.
     *
     * @return false if it was registered now
     */
    @JsonIgnore
    public boolean isReplayed() {
        return replayed;
    }

    /**
     * Returns the receipt as one line without its end, for {@code constancia verify --receipt}: as it was received,
     * with members that this client does not know.
     *
     * @return JSON
     */
    public String toJson() {
        return Json.line(raw);
    }

    /**
     * Returns an event, for instance one of a list, as the same line. Unless it is a receipt, the line has the members
     * that this client knows.
     *
     * @param event an event
     * @return JSON
     */
    public static String toJson(Event event) {
        return event instanceof Receipt receipt ? receipt.toJson() : Json.line(event);
    }
}
