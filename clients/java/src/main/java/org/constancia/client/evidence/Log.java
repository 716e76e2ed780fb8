package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Forms.orNull;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The places of segments in the log, checkpoints/ and log/ of an archive. It goes along the checkpoints as segments
 * need them, and holds one.
 */
final class Log {
    private static final Map<String, Forms.Form> PLACE = Map.of("index", orNull(integer(0, Forms.INTEGER_MAX)), "path",
        Forms.hashes(Checkpoint.PATH_MAX), "size", orNull(integer()));

    private final Source<byte[]> places;
    private final Source<byte[]> checkpoints;
    private final String tag;
    private Checkpoint current;

    Log(Archive archive) throws IOException {
        places = archive.zip.lines("log", 0);
        checkpoints = archive.zip.lines("checkpoints", 0);
        String named = "constancia-tag/1\n" + archive.channelId + "\n" + archive.mode;
        tag = Forms.sha256(named.getBytes(StandardCharsets.UTF_8));
    }

    /** Checks the place of the next segment. */
    void check(JsonNode seal, String sealHash) throws IOException {
        String where = seal.get("segment_id").textValue();
        byte[] line = places.next();
        require(line != null, where, "its place in the log is missing");
        JsonNode place = Forms.document(line, PLACE, "log");
        require(place.get("index").isNull() == place.get("size").isNull(), "log", "an index or a size alone");
        List<byte[]> path = Checkpoint.path(place.get("path"));
        if (place.get("size").isNull()) {
            require(path.isEmpty(), "log", "a path of a segment that is not in the log");
            return;
        }
        long index = place.get("index").longValue();
        long size = place.get("size").longValue();
        require(index < size, "log", "an index beyond its tree");
        while (current == null || current.size() < size)
            require(advance(), where, "its checkpoint is missing");
        require(current.size() == size, where, "its checkpoint is missing");
        byte[] leaf = Proofs.leaf(entry(seal, sealHash));
        require(Proofs.isIncluded(leaf, index, size, path, current.root()), where, "it is not in the log at its place");
    }

    private byte[] entry(JsonNode seal, String sealHash) {
        ObjectNode entry = Forms.MAPPER.createObjectNode();
        for (String name : List.of("chain_hash_last", "first_sequence", "last_sequence"))
            entry.set(name, seal.get(name));
        return Forms.canonical(entry.put("seal_hash", sealHash).put("tag", tag).put("v", 1));
    }

    /** Checks the checkpoints that no segment needs, and that nothing is left over. */
    void end() throws IOException {
        require(places.next() == null, "log", "a place of no segment");
        boolean hasMore = true;
        while (hasMore)
            hasMore = advance();
        require(current != null && current.consistency().isEmpty(), "checkpoints",
            "the last one is consistent with none");
    }

    private boolean advance() throws IOException {
        byte[] line = checkpoints.next();
        if (line == null)
            return false;
        Checkpoint found = Checkpoint.read(line);
        if (current != null)
            found.checkAfter(current);
        current = found;
        return true;
    }
}
