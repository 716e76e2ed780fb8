package org.constancia.client.evidence;

import static org.constancia.client.evidence.Forms.IS_HASH;
import static org.constancia.client.evidence.Forms.IS_LIST;
import static org.constancia.client.evidence.Forms.IS_OBJECT;
import static org.constancia.client.evidence.Forms.IS_TEXT;
import static org.constancia.client.evidence.Forms.IS_TIME;
import static org.constancia.client.evidence.Forms.base64;
import static org.constancia.client.evidence.Forms.brief;
import static org.constancia.client.evidence.Forms.integer;
import static org.constancia.client.evidence.Forms.oneOf;
import static org.constancia.client.evidence.Forms.orNull;
import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

import com.fasterxml.jackson.databind.JsonNode;

/** The rounds in order, with what their tokens name and what renewed them. */
final class Rounds {
    private static final int STAMPS_MAX = 65536;
    private static final int OBJECTS_MAX = 4096;
    private static final int OBJECTS_SIZE_MAX = 32 << 20;
    private static final Forms.Form KIND = oneOf("qualified", "non_qualified", "development");
    private static final Map<String, Forms.Form> ROUND = Map.of("gen_time", IS_TIME, "root", IS_HASH, "round_id",
        brief(127), "tokens", IS_LIST);
    private static final Map<String, Forms.Form> TOKEN = Map.of("authority", IS_TEXT, "gen_time", IS_TIME, "kind", KIND,
        "request", orNull(base64(1024)), "token", base64(65536), "certificates", Forms.ascending(64), "renewal",
        orNull(IS_OBJECT), "revocations", Forms.ascending(16));
    private static final Map<String, Forms.Form> ROUND_1 = Map.of("authority", IS_TEXT, "gen_time", IS_TIME, "kind",
        KIND,
        "request", orNull(base64(1024)), "token", base64(65536), "root", IS_HASH, "round_id", brief(127));
    private static final Map<String, Forms.Form> RENEWAL = Map.of("path", Forms.hashes(40), "stamp", integer());
    private static final Map<String, Forms.Form> STAMP = Map.of("authority", IS_TEXT, "gen_time", IS_TIME, "kind", KIND,
        "renewal", orNull(IS_OBJECT), "stamp", integer(), "token", base64(131072));
    private static final Map<String, Forms.Form> OBJECT = Map.of("der", base64(32 << 20), "kind",
        oneOf("certificate", "crl", "ocsp"), "sha256", IS_HASH);

    private final Archive archive;
    private final Consumer<Signed> judge;
    private final Map<String, String> objects = new HashMap<>();
    private final Set<String> named = new HashSet<>();
    private final Map<Long, Stamp> stamps = new HashMap<>();
    private final Set<Long> namedStamps = new HashSet<>();
    private final Source<byte[]> lines;
    Round before;
    Round current;

    /** A round, and the SHA-256 of its first token. */
    record Round(String id, String root, String time, String tokenHash) { }

    /** An archive timestamp. */
    private record Stamp(String imprint, String time) { }

    Rounds(Archive archive, Consumer<Signed> judge) throws IOException {
        this.archive = archive;
        this.judge = judge;
        readObjects();
        readStamps();
        lines = archive.zip.lines("rounds", 0);
        advance();
    }

    /** Goes to the next line. */
    void advance() throws IOException {
        byte[] line = lines.next();
        require(line != null, "rounds", "the round of a segment is missing");
        before = current;
        current = read(line);
        if (before != null) {
            require(!before.id.equals(current.id), "rounds", "one is repeated");
            require(before.time.compareTo(Forms.later(current.time)) <= 0, "rounds", "their order in time");
        }
    }

    /** Checks that nothing is left over. */
    void end() throws IOException {
        require(lines.next() == null, "rounds", "one that no segment needs");
        require(named.equals(objects.keySet()), "validation", "an object that no token names");
        require(namedStamps.equals(stamps.keySet()), "renewals", "one that nothing names");
    }

    private static String text(JsonNode from, String member) {
        return from.get(member).textValue();
    }

    private Round read(byte[] line) {
        boolean isFirstVersion = archive.manifest.get("v").intValue() == 1;
        JsonNode value = Forms.document(line, isFirstVersion ? ROUND_1 : ROUND, "rounds");
        String where = text(value, "round_id");
        Iterable<JsonNode> tokens = isFirstVersion ? List.of(value) : value.get("tokens");
        JsonNode first = null;
        int count = 0;
        for (JsonNode token : tokens) {
            if (!isFirstVersion)
                Forms.members(token, TOKEN, where);
            first = first == null ? token : first;
            count++;
        }
        require(count >= 1 && count <= 2 && text(first, "gen_time").equals(text(value, "gen_time")), where,
            "its tokens");
        require(text(value, "gen_time").compareTo(archive.latest()) <= 0, where, "after the archive was issued");
        for (JsonNode token : tokens)
            checkToken(token, text(value, "root"), where);
        return new Round(where, text(value, "root"), text(value, "gen_time"),
            Forms.sha256(Forms.decoded(first.get("token"))));
    }

    private void checkToken(JsonNode given, String root, String where) {
        Token token = new Token(Forms.decoded(given.get("token")), where);
        require(token.imprint.equals(root), where, "its token is over another root");
        require(Forms.textOf(token.time).equals(text(given, "gen_time")), where, "gen_time is not its token's");
        checkNamed(given.path("certificates"), List.of("certificate"), where);
        checkNamed(given.path("revocations"), List.of("crl", "ocsp"), where);
        checkRenewal(given, where);
        judge.accept(token.signed);
    }

    private void checkNamed(JsonNode names, List<String> kinds, String where) {
        for (JsonNode one : names) {
            String kind = objects.get(one.textValue());
            require(kind != null && kinds.contains(kind), where, "an object that its token names is missing");
            named.add(one.textValue());
        }
    }

    /** Checks that the archive timestamp that a renewal names covers the token. */
    private void checkRenewal(JsonNode given, String where) {
        if (!given.hasNonNull("renewal"))
            return;
        JsonNode renewal = Forms.members(given.get("renewal"), RENEWAL, where);
        Stamp stamp = stamps.get(renewal.get("stamp").longValue());
        require(stamp != null, where, "its renewal is missing");
        String covered = Forms.along(Forms.sha256(Forms.decoded(given.get("token"))), renewal.get("path"));
        require(covered.equals(stamp.imprint), where, "its renewal does not cover it");
        require(text(given, "gen_time").compareTo(stamp.time) <= 0, where, "it was renewed before its time");
        namedStamps.add(renewal.get("stamp").longValue());
    }

    private void readStamps() throws IOException {
        long previous = Forms.INTEGER_MAX + 1;
        Source<byte[]> all = archive.zip.lines("renewals", 0);
        for (byte[] line; (line = all.next()) != null;) {
            JsonNode given = Forms.document(line, STAMP, "renewals");
            long number = given.get("stamp").longValue();
            String where = "archive timestamp " + number;
            require(number < previous && stamps.size() < STAMPS_MAX, where, "the order");
            previous = number;
            Token token = new Token(Forms.decoded(given.get("token")), where);
            require(Forms.textOf(token.time).equals(text(given, "gen_time")), where, "gen_time is not its token's");
            checkRenewal(given, where);
            judge.accept(token.signed);
            stamps.put(number, new Stamp(token.imprint, text(given, "gen_time")));
        }
    }

    private void readObjects() throws IOException {
        String previous = "";
        long size = 0;
        Source<byte[]> all = archive.zip.lines("validation", 0);
        for (byte[] line; (line = all.next()) != null;) {
            JsonNode given = Forms.document(line, OBJECT, "validation");
            byte[] der = Forms.decoded(given.get("der"));
            String hash = text(given, "sha256");
            require(Forms.sha256(der).equals(hash) && hash.compareTo(previous) > 0, "validation",
                "a digest, or the order");
            previous = hash;
            size += der.length;
            require(objects.size() < OBJECTS_MAX && size <= OBJECTS_SIZE_MAX, "validation", "too many objects");
            objects.put(hash, text(given, "kind"));
        }
    }
}
