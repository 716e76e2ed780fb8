package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Invalid.require;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.TextNode;

/**
 * A checkpoint of the log: a line of checkpoints/ (C2SP tlog-checkpoint). Nothing here checks who signed it.
 * consistency is the proof that the tree of the next checkpoint begins with this one's.
 */
record Checkpoint(String origin, long size, byte[] root, List<byte[]> consistency) {
    static final int PATH_MAX = 63;
    private static final long SIZE_MAX = 1L << 53;
    private static final int NOTE_MAX = 65536;
    private static final int SIGNATURES_MAX = 64;
    private static final int SIGNATURE_MAX = 21840;
    private static final int NAME_MAX = 255; // bytes of an origin, and of the name of a key
    private static final String WHERE = "checkpoints";
    private static final Map<String, Forms.Form> FORMS = Map.of("consistency", Forms.hashes(PATH_MAX), "note", IS_TEXT);
    private static final Pattern CONTROL = Pattern.compile("[\\x00-\\x09\\x0b-\\x1f]");
    private static final Pattern SIZE = Pattern.compile("0|[1-9][0-9]{0,15}");
    private static final int KEY_ID_SIZE = 4;
    // A dash, a name and base64. Names have neither white space of Unicode nor control characters nor plus signs.
    private static final Pattern SIGNATURE = Pattern.compile("\\u2014 ([^\\x00-\\x20\\x7f\\x85\\xa0\\u1680"
        + "\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000+]++) ([A-Za-z0-9+/]++(={0,2}))");

    static Checkpoint read(byte[] line) {
        JsonNode given = Forms.document(line, FORMS, WHERE);
        String note = given.get("note").textValue();
        require(sizeOf(note) <= NOTE_MAX && !CONTROL.matcher(note).find(), WHERE, "a note's text");
        int end = note.lastIndexOf("\n\n");
        require(end >= 0 && end + 2 < note.length() && note.endsWith("\n"), WHERE, "a note without signatures");
        checkSignatures(note.substring(end + 2, note.length() - 1).split("\n", -1));
        String[] lines = note.substring(0, end).split("\n", -1);
        require(lines.length >= 3 && !lines[0].isEmpty() && sizeOf(lines[0]) <= NAME_MAX, WHERE,
            "the lines of a checkpoint");
        for (int at = 3; at < lines.length; at++)
            require(!lines[at].isEmpty(), WHERE, "an extension line without text");
        require(SIZE.matcher(lines[1]).matches() && Long.parseLong(lines[1]) <= SIZE_MAX, WHERE, "the size of a tree");
        byte[] root = Forms.decoded(TextNode.valueOf(lines[2]));
        require(root.length == 32, WHERE, "the root of a tree");
        return new Checkpoint(lines[0], Long.parseLong(lines[1]), root, path(given.get("consistency")));
    }

    private static void checkSignatures(String[] lines) {
        require(lines.length <= SIGNATURES_MAX, WHERE, "too many signatures");
        for (String line : lines) {
            Matcher found = SIGNATURE.matcher(line);
            require(found.matches() && sizeOf(found.group(1)) <= NAME_MAX, WHERE, "the line of a signature");
            int size = found.group(2).length();
            require(size % 4 == 0 && size <= SIGNATURE_MAX && size / 4 * 3 - found.group(3).length() > KEY_ID_SIZE,
                WHERE, "the size of a signature");
        }
    }

    private static int sizeOf(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }

    static List<byte[]> path(JsonNode hashes) {
        List<byte[]> path = new ArrayList<>();
        for (JsonNode one : hashes)
            path.add(HexFormat.of().parseHex(one.textValue()));
        return path;
    }

    /** Checks that this one follows another of the same log. */
    void checkAfter(Checkpoint before) {
        require(origin.equals(before.origin), WHERE, "two logs");
        require(size > before.size, WHERE, "their order");
        require(Proofs.isConsistent(before.size, before.root, size, root, before.consistency), WHERE,
            "those of " + before.size + " and " + size + " entries are not of one history");
    }
}
