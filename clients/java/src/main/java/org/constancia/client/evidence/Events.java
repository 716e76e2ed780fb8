package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_CHAIN;
import static org.constancia.client.evidence.Forms.IS_HASH;
import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Forms.IS_TIME;
import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Forms.oneOf;
import static org.constancia.client.evidence.Forms.orNull;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;

/** The events of the range, each checked against the one before, its configuration and the manifest. */
final class Events implements Source<Events.Link> {
    private static final Map<String, Forms.Form> FORMS = Map.ofEntries(Map.entry("chain", IS_CHAIN),
        Map.entry("channel_id", IS_TEXT), Map.entry("client_ref", Forms.brief(255)), Map.entry("config_hash", IS_HASH),
        Map.entry("config_version", integer()), Map.entry("event_id", IS_TEXT), Map.entry("hash", IS_TEXT),
        Map.entry("hash_alg", oneOf("sha-256", "sha-512")), Map.entry("modality", oneOf("content", "hash_only")),
        Map.entry("occurred_at", orNull(IS_TIME)), Map.entry("previous_chain_hash", IS_HASH),
        Map.entry("received_at", IS_TIME), Map.entry("sequence", integer()), Map.entry("v", integer(1, 1)));
    private static final Map<String, Forms.Form> LEAF_FORMS = Map.of("chain_hash", IS_HASH, "sequence", integer());

    private final Archive archive;
    private final Source<byte[]> lines;
    private final String latest;
    private final JsonNode from;
    private final JsonNode to;
    private final Set<Long> used = new HashSet<>();
    private long sequence;
    private String previous;
    private String received = "";

    /** An event as a segment covers it; `event` is null where the archive has its chain hash alone. */
    record Link(long sequence, String chainHash, JsonNode event) { }

    Events(Archive archive) {
        this.archive = archive;
        lines = archive.zip.lines("events", 0);
        latest = Forms.later(archive.text("issued_at"));
        from = archive.manifest.get("requested_range").get("from");
        to = archive.manifest.get("requested_range").get("to");
        sequence = archive.first;
        previous = archive.text("previous_chain_hash");
    }

    @Override
    public Link next() throws IOException {
        byte[] line = lines.next();
        if (line == null) {
            require(sequence == archive.last + 1, "events", "events are missing at the end");
            require(previous.equals(archive.text("last_chain_hash")), "manifest.json", "last_chain_hash");
            require(used.equals(archive.configs.keySet()), "manifest.json", "a configuration that no event names");
            return null;
        }
        String where = "event " + sequence;
        JsonNode event = Forms.document(line, FORMS, where);
        check(event, where);
        received = text(event, "received_at");
        previous = Forms.sha256(line);
        require(sequence > archive.first || previous.equals(archive.text("first_chain_hash")), where,
            "first_chain_hash");
        used.add(event.get("config_version").longValue());
        return new Link(sequence++, previous, event);
    }

    /** Gives every event of a test archive, which has no segments. */
    void walk(Visitor visitor) throws IOException {
        for (Link link; (link = next()) != null;) {
            visitor.read(link);
            visitor.settle();
        }
    }

    private static String text(JsonNode event, String member) {
        return event.get(member).textValue();
    }

    private void check(JsonNode event, String where) {
        require(sequence <= archive.last, where, "after the range");
        require(text(event, "chain").equals(archive.mode) && text(event, "channel_id").equals(archive.channelId)
            && event.get("sequence").longValue() == sequence && text(event, "previous_chain_hash").equals(previous),
                where,
            "it does not continue the chain");
        String at = text(event, "received_at");
        require(received.compareTo(at) <= 0 && at.compareTo(latest) <= 0, where, "received_at");
        require(from.isNull() || from.textValue().compareTo(at) <= 0 && at.compareTo(to.textValue()) < 0, where,
            "it was received outside the range that was asked for");
        Archive.Config config = archive.configs.get(event.get("config_version").longValue());
        require(config != null && config.hash().equals(text(event, "config_hash"))
            && config.modality().equals(text(event, "modality")), where, "another configuration");
        boolean isShort = text(event, "hash_alg").equals("sha-256");
        require(text(event, "modality").equals("hash_only") || isShort, where, "hash_alg");
        require(text(event, "hash").matches(isShort ? "[0-9a-f]{64}" : "[0-9a-f]{128}"), where, "hash");
    }

    private static Source<Link> leaves(Archive archive) {
        Source<byte[]> lines = archive.zip.lines("leaves", 0);
        long[] before = {0};
        return () -> {
            byte[] line = lines.next();
            if (line == null)
                return null;
            JsonNode leaf = Forms.document(line, LEAF_FORMS, "leaves");
            long sequence = leaf.get("sequence").longValue();
            String hash = text(leaf, "chain_hash");
            require(before[0] < sequence && (sequence < archive.first || sequence > archive.last), "leaves",
                "the order");
            require(sequence != archive.first - 1 || hash.equals(archive.text("previous_chain_hash")), "leaves",
                "the event before the range is another one");
            before[0] = sequence;
            return new Link(sequence, hash, null);
        };
    }

    /** Returns leaves and events in the order of their sequence. */
    static Source<Link> withLeaves(Archive archive) {
        Source<Link> outside = leaves(archive);
        Events inside = new Events(archive);
        return new Source<>() {
            private Link waiting;
            private boolean isPastLeaves;
            private boolean isPastEvents;

            @Override
            public Link next() throws IOException {
                if (!isPastLeaves) {
                    Link leaf = outside.next();
                    if (leaf != null && leaf.sequence < archive.first)
                        return leaf;
                    isPastLeaves = true;
                    waiting = leaf;
                }
                Link event = isPastEvents ? null : inside.next();
                if (event != null)
                    return event;
                isPastEvents = true;
                Link leaf = waiting;
                waiting = null;
                return leaf != null ? leaf : outside.next();
            }
        };
    }
}
