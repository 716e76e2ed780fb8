package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_BOOLEAN;
import static org.constancia.client.evidence.Forms.IS_CHAIN;
import static org.constancia.client.evidence.Forms.IS_HASH;
import static org.constancia.client.evidence.Forms.IS_OBJECT;
import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Forms.brief;
import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Forms.orNull;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

import com.fasterxml.jackson.databind.JsonNode;

import org.constancia.client.evidence.Events.Link;

/** Leads every event of a live archive to its round. */
final class Chain {
    private static final Map<String, Forms.Form> SEGMENT = Map.of("path", Forms.hashes(40), "round_id", brief(127),
        "seal", IS_OBJECT);
    private static final Map<String, Forms.Form> SEAL = Map.ofEntries(Map.entry("chain", IS_CHAIN),
        Map.entry("chain_hash_before", IS_HASH), Map.entry("chain_hash_last", IS_HASH), Map.entry("channel_id",
            IS_TEXT),
        Map.entry("clock", IS_OBJECT), Map.entry("count", integer(1, 16384)), Map.entry("first_sequence", integer()),
        Map.entry("last_sequence", integer()), Map.entry("previous_seal_hash", orNull(IS_HASH)),
        Map.entry("previous_token_hash", orNull(IS_HASH)), Map.entry("segment_id", IS_TEXT),
        Map.entry("v", integer(1, 1)));
    private static final Map<String, Forms.Form> CLOCK = Map.of("max_error_us", integer(0, Forms.INTEGER_MAX), "source",
        IS_TEXT, "synchronized", IS_BOOLEAN);

    private static final int SEAL_MAX = 2048;

    /** The end of a run of seals: the hashes of the last one (null: none yet) and of its last event. */
    private record Run(String seal, String chainHash, long next) {
        boolean isContinuedBy(JsonNode document) {
            return Objects.equals(document.get("previous_seal_hash").textValue(), seal)
                && document.get("chain_hash_before").textValue().equals(chainHash)
                && document.get("first_sequence").longValue() == next;
        }
    }

    private final Archive archive;
    private final Rounds rounds;
    private final Log log; // null: the archive has none
    private final Source<byte[]> seals;
    private final Source<byte[]> earlier;
    private final Source<Link> source;
    private Run history; // the seals before those of the archive; null: it has none
    private String sealBefore;
    private String chainHash; // of the event before the next segment, if it is known
    private long next;
    private boolean hasOpenStart;

    /** What a segment's check needs of its events and leaves, which may be many and large. */
    private static final class Summary {
        private final Tree tree = new Tree();
        private String chainHash; // of the last one
        private String received = ""; // time of the last event, and so the latest; empty: there are leaves alone

        void add(Link link) {
            tree.add(link.chainHash());
            chainHash = link.chainHash();
            if (link.event() != null)
                received = link.event().get("received_at").textValue();
        }
    }

    Chain(Archive archive, Consumer<Signed> judge) throws IOException {
        this.archive = archive;
        rounds = new Rounds(archive, judge);
        log = archive.hasLog ? new Log(archive) : null;
        seals = archive.zip.lines("seals", 0);
        earlier = archive.zip.lines("history", 0);
        source = Events.withLeaves(archive);
    }

    /** Returns whether the first segment names no token before it, and may not have to. */
    boolean hasOpenStart() {
        return hasOpenStart;
    }

    /** Gives every event and leaf as it is read, and says when its segment is checked. */
    void walk(Visitor visitor) throws IOException {
        for (byte[] line; (line = earlier.next()) != null;)
            walkHistory(line);
        for (byte[] line; (line = seals.next()) != null;) {
            segment(line, visitor);
            visitor.settle();
        }
        require(sealBefore != null, "seals", "there are none");
        require(source.next() == null, "seals", "they do not cover every event");
        rounds.end();
        if (log != null)
            log.end();
    }

    private void checkSeal(JsonNode seal) {
        String where = seal.get("segment_id").textValue();
        Forms.members(seal.get("clock"), CLOCK, where);
        require(seal.get("chain").textValue().equals(archive.mode)
            && seal.get("channel_id").textValue().equals(archive.channelId), where, "another chain's");
        long begin = seal.get("first_sequence").longValue();
        long end = seal.get("last_sequence").longValue();
        require(begin <= end && seal.get("count").longValue() == end - begin + 1, where, "count");
    }

    /** Section 4.12: the seals from the first event of the chain on. */
    private void walkHistory(byte[] line) {
        require(line.length <= SEAL_MAX, "history", "the size of a seal");
        JsonNode seal = Forms.document(line, SEAL, "history");
        checkSeal(seal);
        Run before = history == null ? new Run(null, archive.genesisHash, 1) : history;
        require(before.isContinuedBy(seal), "history", "a seal that does not continue the one before");
        history = new Run(Forms.sha256(line), seal.get("chain_hash_last").textValue(),
            seal.get("last_sequence").longValue() + 1);
    }

    private void segment(byte[] line, Visitor visitor) throws IOException {
        JsonNode value = Forms.document(line, SEGMENT, "seals");
        byte[] document = Forms.canonical(value.get("seal"));
        require(document.length <= SEAL_MAX, "seals", "the size of a seal");
        JsonNode seal = Forms.members(value.get("seal"), SEAL, "seals");
        checkSeal(seal);
        String where = seal.get("segment_id").textValue();
        long begin = seal.get("first_sequence").longValue();
        long end = seal.get("last_sequence").longValue();
        boolean isFirst = sealBefore == null;
        require(isFirst ? begin <= archive.first && archive.first <= end : begin == next, where, "its place");
        checkBefore(seal, isFirst, where);
        Summary covered = take(begin, end, visitor, where);
        require(covered.chainHash.equals(seal.get("chain_hash_last").textValue()), where, "chain_hash_last");
        require(!isFirst || begin != archive.first
            || seal.get("chain_hash_before").textValue().equals(archive.text("previous_chain_hash")), where,
            "chain_hash_before");
        String hash = Forms.sha256(document);
        checkRound(value, seal, covered, hash, isFirst);
        if (log != null)
            log.check(seal, hash);
        sealBefore = hash;
        next = end + 1;
        chainHash = covered.chainHash;
    }

    private Summary take(long begin, long end, Visitor visitor, String where) throws IOException {
        Summary covered = new Summary();
        for (long sequence = begin; sequence <= end; sequence++) {
            Link link = source.next();
            require(link != null && link.sequence() == sequence, where, "an event that it covers is missing");
            covered.add(link);
            visitor.read(link);
        }
        return covered;
    }

    private void checkBefore(JsonNode seal, boolean isFirst, String where) {
        long begin = seal.get("first_sequence").longValue();
        JsonNode previous = seal.get("previous_seal_hash");
        String hash = seal.get("chain_hash_before").textValue();
        require(previous.isNull() == (begin == 1), where, "previous_seal_hash");
        require(isFirst || sealBefore.equals(previous.textValue()), where, "previous_seal_hash");
        require(!isFirst || history == null || history.isContinuedBy(seal), "history",
            "it does not lead to the first segment");
        require(begin > 1 || hash.equals(archive.genesisHash), where, "chain_hash_before");
        require(chainHash == null || chainHash.equals(hash), where, "chain_hash_before");
    }

    private void checkRound(JsonNode value, JsonNode seal, Summary covered, String sealHash, boolean isFirst)
            throws IOException {
        String where = seal.get("segment_id").textValue();
        for (int steps = 1; !rounds.current.id().equals(value.get("round_id").textValue()); steps++) {
            require(steps <= (isFirst ? 1 : 2), "rounds", "one that no segment needs");
            rounds.advance();
        }
        covered.tree.add(sealHash);
        require(Forms.along(covered.tree.root(), value.get("path")).equals(rounds.current.root()), where,
            "it does not lead to the root of its round");
        String expected = rounds.before == null ? null : rounds.before.tokenHash();
        require(Objects.equals(seal.get("previous_token_hash").textValue(), expected), where,
            "previous_token_hash");
        hasOpenStart |= isFirst && rounds.before == null && seal.get("first_sequence").longValue() > 1;
        require(covered.received.compareTo(Forms.later(rounds.current.time())) <= 0, where,
            "an event was received after its timestamp");
    }
}
