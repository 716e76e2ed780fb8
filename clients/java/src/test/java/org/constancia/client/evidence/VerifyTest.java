package org.constancia.client.evidence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.constancia.client.CallInterruptedException;
import org.constancia.client.Digests;
import org.constancia.client.evidence.ArchiveCheck.Finding;
import org.constancia.client.evidence.ArchiveCheck.Verdict;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The client's own check of archives, against the corpus of damaged and forged evidence in CONSTANCIA_CASES, which
 * evidence_cases.py makes of CONSTANCIA_CORPUS, and with the program CONSTANCIA_PROGRAM. It is never better than what
 * the program says.
 */
class VerifyTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Path BASE = Path.of(System.getenv("CONSTANCIA_CORPUS"));
    private static final Path CASES = Path.of(System.getenv("CONSTANCIA_CASES"));
    private static final Path PROGRAM = Path.of(System.getenv("CONSTANCIA_PROGRAM"));
    private static final Path LIVE = BASE.resolve("live.zip");
    private static final Path TRUST = BASE.resolve("roots.pem");
    private static final Instant AT = Instant.parse("2029-11-27T18:25:46Z");
    private static final List<String> NOT_GIVEN =
        List.of("receipts: not given", "content parts: not all given", "reports: not given");
    private static final List<String> CODES = List.of("valid", "existence_only", "authority_not_established",
        "signer_not_established", "could_not_check", "not_valid");
    /**
     * What the program alone judges: whose signatures these are, and the rules of signatures and of revocation data.
     */
    private static final List<String> BY_THE_PROGRAM = List.of("genuine", "same-authority", "stolen",
        "chain/other-intermediate", "chain/superfluous", "signer", "authority", "token/another-name", "signature",
        "document/rounds-12", "document/validation-02");

    @TempDir
    Path folder;
    private List<JsonNode> receipts;

    @BeforeEach
    void readReceipts() throws Exception {
        receipts = new ArrayList<>();
        JSON.readTree(BASE.resolve("receipts.json").toFile()).forEach(receipts::add);
    }

    private static Archives alone(Path archive) {
        return Archives.of(archive).withoutProgram();
    }

    private static Archives both(Path archive) {
        return Archives.of(archive).program(PROGRAM).trust(TRUST).at(AT);
    }

    private static List<String> codes(ArchiveCheck check) {
        return check.findings().stream().map(Finding::code).toList();
    }

    private Path write(String name, Object value) throws Exception {
        return Files.write(folder.resolve(name), value instanceof byte[] bytes ? bytes
            : value instanceof String text ? text.getBytes(StandardCharsets.UTF_8) : JSON.writeValueAsBytes(value));
    }

    // ---- the corpus ----

    private static Archives given(JsonNode item, Archives check) {
        List<Path> parts = new ArrayList<>();
        for (int at = 1; at < item.get("paths").size(); at++)
            parts.add(Path.of(item.get("paths").get(at).asText()));
        check.parts(parts).at(Instant.parse(item.get("at").asText()));
        if (item.hasNonNull("trust"))
            check.trust(Path.of(item.get("trust").asText()));
        if (item.hasNonNull("receipts"))
            check.receipts(Path.of(item.get("receipts").asText()));
        if (item.hasNonNull("signer"))
            check.signer(item.get("signer").asText());
        return check;
    }

    private static final String LOG_SIGNATURES =
        "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks";

    private static List<String> compare(JsonNode item) {
        Path archive = Path.of(item.get("paths").get(0).asText());
        ArchiveCheck alone = given(item, alone(archive)).verify();
        ArchiveCheck both = given(item, Archives.of(archive).program(PROGRAM)).verify();
        String stated = item.get("code").asText();
        String name = item.get("name").asText();
        List<String> wrong = new ArrayList<>();
        if (!both.code().equals(stated) || both.isValid() != stated.equals("valid"))
            wrong.add("with the program it is " + both.code() + ", not " + stated + ": " + both.findings());
        if (alone.isValid() || alone.code().equals("not_valid") && !stated.equals("not_valid"))
            wrong.add("alone it is " + alone.code() + ", not " + stated + ": " + alone.findings());
        if (CODES.indexOf(alone.code()) < CODES.indexOf(stated) && BY_THE_PROGRAM.stream().noneMatch(name::startsWith))
            wrong.add("alone it is " + alone.code() + ", and " + stated + " is stated: " + item.path("finding"));
        if (alone.notChecked().stream().noneMatch(one -> one.startsWith("origin"))
                || "program".equals(alone.signaturesBy()))
            wrong.add("it does not say what was not checked");
        List<String> open = new ArrayList<>(both.notChecked());
        if (both.isValid() && open.remove(LOG_SIGNATURES) != name.startsWith("log/"))
            wrong.add("it has a log or not: " + both.notChecked());
        if (!NOT_GIVEN.containsAll(open) && both.isValid())
            wrong.add("it is valid, and not all was checked: " + both.notChecked());
        return wrong.stream().map(what -> name + ": " + what).toList();
    }

    @Test
    void theCorpusHasTheCodesThatAreStated() throws Exception {
        JsonNode cases = JSON.readTree(CASES.resolve("cases.json").toFile());
        List<String> wrong = new ArrayList<>();
        cases.forEach(item -> wrong.addAll(compare(item)));
        assertEquals("", String.join("\n", wrong));
        assertTrue(cases.size() > 200, "cases: " + cases.size());
    }

    // ---- what is said ----

    @Test
    void itSaysWhatWasCheckedAndByWhom() {
        ArchiveCheck check = both(LIVE).parts(List.of(BASE.resolve("part.zip"))).verify();
        assertTrue(check.isValid(), check.findings().toString());
        assertEquals(List.of(List.of("receipts: not given", "reports: not given"), List.of()),
            List.of(check.notChecked(), check.findings()));
        assertEquals("program", check.signaturesBy());
        assertEquals(1, check.manifest().get("frozen_range").get("first_sequence").asInt());
        assertEquals(2026, check.stampedAt().getYear());
        assertEquals(check.program().get("signers").get(0).get("sha256").asText(), check.signerSha256());
        ArchiveCheck alone = alone(LIVE).verify();
        assertEquals(Verdict.ORIGIN_NOT_ESTABLISHED, alone.verdict());
        assertEquals(List.of(), alone.findings());
        assertEquals("client", alone.signaturesBy());
        assertEquals(NOT_GIVEN, alone.notChecked().subList(1, 4));
        ArchiveCheck kept = alone(LIVE).receipts(BASE.resolve("receipts.json")).verify();
        assertEquals(NOT_GIVEN.subList(1, 3), kept.notChecked().subList(1, 3));
        ArchiveCheck test = alone(BASE.resolve("test.zip")).verify();
        assertEquals("signer_not_established", test.code());
        assertTrue(test.warnings().get(0).what().contains("no probative value"));
        assertThrows(UncheckedIOException.class, () ->
            Archives.of(LIVE).program(folder.resolve("none")).verify());
    }

    private Path program(String script) throws Exception {
        Path path = write("program", "#!/bin/sh\n" + script + "\n");
        assertTrue(path.toFile().setExecutable(true));
        return path;
    }

    private static String answer(String code, Path archive) {
        return "echo '{\"verdict\":{\"code\":\"" + code
            + "\"},\"findings\":[],\"warnings\":[],\"files\":[{\"sha256\":\""
            + (archive == null ? "0" : Digests.of(archive)) + "\"}]}'";
    }

    @Test
    void aProgramThatFailsMakesNothingValid() throws Exception {
        for (String script : List.of("exit 0", "echo '{}'", "echo null", "echo '{'", answer("splendid", LIVE),
                answer("valid", null), answer("valid", LIVE) + "; exit 1", answer("not_valid", LIVE),
                answer("valid", LIVE) + "; kill -9 $$")) {
            ArchiveCheck check = Archives.of(LIVE).program(program(script)).verify();
            assertEquals("could_not_check", check.code(), script);
            assertEquals(List.of("client.program_failed"), codes(check));
            assertNull(check.program());
        }
        Path spoilt = flipped(LIVE, 5000, 1);
        assertEquals(Verdict.INVALID, Archives.of(spoilt).program(program(answer("valid", spoilt))).verify().verdict());
        Path silent = program("exec sleep 60");
        Thread thread = Thread.currentThread();
        new Thread(() -> {
            try {
                Thread.sleep(500);
            } catch (InterruptedException error) {
                return;
            }
            thread.interrupt();
        }).start();
        assertThrows(CallInterruptedException.class, () -> Archives.of(LIVE).program(silent).verify());
        assertTrue(Thread.interrupted());
    }

    @Test
    void aSignerThatWasNotAskedForIsNotValid() {
        String own = alone(LIVE).verify().signerSha256();
        assertTrue(both(LIVE).signer(own.toUpperCase()).verify().isValid());
        for (Archives check : List.of(alone(LIVE), both(LIVE)))
            assertEquals(Verdict.INVALID, check.signer("0".repeat(64)).verify().verdict());
    }

    // ---- damage ----

    private Path flipped(Path archive, int at, int bit) throws Exception {
        byte[] data = Files.readAllBytes(archive);
        data[at] ^= (byte) bit;
        return write("flipped.zip", data);
    }

    @Test
    void aFlippedBitIsNeverTaken() throws Exception {
        for (String name : List.of("live.zip", "middle.zip", "last.zip", "renewed.zip", "test.zip")) {
            byte[] data = Files.readAllBytes(BASE.resolve(name));
            String text = new String(data, StandardCharsets.ISO_8859_1);
            int begin = text.indexOf("META-INF/signature001.p7s");
            int end = text.indexOf("PK\1\2");
            Random chance = new Random(name.hashCode());
            for (int number = 0; number < 120; number++) {
                int at = chance.nextInt(data.length);
                ArchiveCheck check = alone(flipped(BASE.resolve(name), at, 1 << chance.nextInt(8))).verify();
                assertFalse(check.isValid());
                assertTrue(check.verdict() == Verdict.INVALID || begin < at && at < end, name + " " + at);
            }
        }
    }

    @Test
    void whatIsNoArchiveIsSaid() throws Exception {
        assertThrows(UncheckedIOException.class, () -> alone(folder.resolve("missing.zip")).verify());
        assertThrows(UncheckedIOException.class, () -> alone(LIVE).parts(List.of(folder.resolve("none"))).verify());
        for (Map.Entry<Path, String> one : Map.of(write("empty", ""), "file.kind_unknown",
            BASE.resolve("report-en.pdf"),
                "file.kind_unknown", BASE.resolve("part.zip"), "client.part_alone").entrySet()) {
            ArchiveCheck check = alone(one.getKey()).verify();
            assertEquals("could_not_check", check.code());
            assertEquals(List.of(one.getValue()), codes(check));
            assertFalse(both(one.getKey()).verify().isValid());
        }
        byte[] data = Files.readAllBytes(LIVE);
        for (byte[] other : List.of(Arrays.copyOf(data, data.length + 1), Arrays.copyOf(data, data.length - 1),
                "PK\3\4".getBytes(StandardCharsets.US_ASCII), Arrays.copyOf(new byte[] {'P', 'K', 5, 6}, 22))) {
            ArchiveCheck check = alone(write("shape.zip", other)).verify();
            assertEquals(Verdict.INVALID, check.verdict());
            assertNull(check.manifest());
        }
    }

    @Test
    void archivesOfEarlierVersionsAreTaken() {
        Path earlier = Path.of(System.getenv("CONSTANCIA_EARLIER"));
        ArchiveCheck check = alone(earlier.resolve("archive.zip")).receipts(earlier.resolve("receipts.ndjson"))
            .parts(List.of(earlier.resolve("content-part-001.zip"))).verify();
        assertEquals("signer_not_established", check.code());
        assertEquals(List.of(), check.findings());
    }

    // ---- receipts ----

    private ArchiveCheck withReceipts(Object given) throws Exception {
        return both(LIVE).receipts(write("given.json", given)).verify();
    }

    private ObjectNode changed(JsonNode receipt, String member, Object value) {
        ObjectNode other = receipt.deepCopy();
        other.set(member, JSON.valueToTree(value));
        return other;
    }

    @Test
    void receiptsAgreeOrNothingIsValid() throws Exception {
        ArchiveCheck check = both(LIVE).receipts(BASE.resolve("receipts.json")).verify();
        assertTrue(check.isValid(), check.findings().toString());
        assertEquals(3, check.receipts().compared());
        StringBuilder lines = new StringBuilder();
        receipts.forEach(one -> lines.append(one).append("\n \n"));
        Path file = write("receipts.ndjson", lines.toString().stripTrailing());
        write("receipts.ndjson.1", receipts.get(0).toString());
        assertEquals(4, both(LIVE).receipts(file).verify().receipts().compared());
        for (String member : List.of("event_id", "client_ref", "received_at", "hash", "modality", "config_version",
                "chain_hash", "occurred_at")) {
            Object other = Map.<String, Object>of("received_at", "2026-01-01T00:00:00.000000Z", "config_version", 9,
                "occurred_at", "2026-01-01T00:00:00.000000Z").getOrDefault(member, "0".repeat(64));
            List<JsonNode> given = new ArrayList<>(receipts);
            given.add(changed(receipts.get(0), member, other));
            ArchiveCheck spoilt = withReceipts(given);
            assertEquals("could_not_check", spoilt.code());
            assertEquals(List.of("receipt.event_differs"), codes(spoilt));
            assertTrue(spoilt.findings().get(0).what().contains(member));
            assertEquals(1, spoilt.receipts().differing());
        }
    }

    @Test
    void receiptsOfOtherEventsAreCountedAndNoneAtAllIsSaid() throws Exception {
        JsonNode live = receipts.get(0);
        List<JsonNode> others = List.of(changed(live, "sequence", 99), changed(live, "channel_id", "chn_other"),
            changed(live, "mode", "test"));
        List<JsonNode> all = new ArrayList<>(others);
        all.add(live);
        ArchiveCheck check = withReceipts(all);
        assertTrue(check.isValid());
        assertEquals(List.of(1L, 3L), List.of(check.receipts().compared(), check.receipts().outside()));
        for (Object nothing : List.of(others, List.of()))
            assertEquals(List.of("receipt.event_not_given"), codes(withReceipts(nothing)));
        for (Object oneBad : List.of(List.of(7, live), List.of(live, Map.of()), live + "\nx\n")) {
            ArchiveCheck told = withReceipts(oneBad);
            assertEquals(List.of("receipt.malformed"), codes(told));
            assertEquals(1, told.receipts().compared(), "the other one counts");
        }
        for (Object bad : Arrays.asList(List.of(Map.of()), List.of(7), changed(live, "sequence", "1"),
                changed(live, "chain_hash", null), "{", "[1", "{\"a\":1}\nx\n", "[".repeat(100_000))) {
            ArchiveCheck unusable = withReceipts(bad);
            assertEquals("could_not_check", unusable.code());
            assertEquals("receipt.not_usable", unusable.findings().get(0).code());
            assertTrue(unusable.notChecked().contains("receipts"));
        }
        assertThrows(UncheckedIOException.class, () -> both(LIVE).receipts(folder.resolve("missing")));
    }

    @Test
    void whatIsPrintedHasNoControlCharacters() throws Exception {
        Path path = write("evil\u001b]0;\n.ndjson", changed(receipts.get(0), "sequence", 0));
        Finding finding = alone(LIVE).receipts(path).verify().findings().get(0);
        assertTrue(finding.what().chars().noneMatch(Character::isISOControl));
        assertTrue(finding.what().contains("\\u{1b}"));
    }

    // ---- size ----

    /** 150,000 events with 80 MB and their receipts with 90 MB are checked in a process with 192 MB for everything. */
    @Test
    void memoryDoesNotGrowWithTheArchive() {
        ArchiveCheck check = alone(CASES.resolve("large.zip")).receipts(CASES.resolve("large.ndjson")).verify();
        assertEquals(List.of(), check.findings());
        assertEquals("signer_not_established", check.code());
        assertNotNull(check.receipts());
        assertEquals(150_000, check.receipts().compared());
    }

    /** A segment of 280 MB is not held until its root is compared, whatever the comparison leads to. */
    @Test
    void memoryDoesNotGrowWithASegment() {
        Path genuine = CASES.resolve("segment.zip");
        Path other = CASES.resolve("other.json");
        ArchiveCheck check = alone(genuine).verify();
        assertEquals(List.of(), check.findings());
        assertEquals("signer_not_established", check.code());
        assertEquals(List.of("receipt.event_differs"), codes(alone(genuine).receipts(other).verify()));
        ArchiveCheck forged = alone(CASES.resolve("forged.zip")).receipts(other).verify();
        assertEquals(List.of("client.not_valid"), codes(forged), "nothing is said of events before that");
        assertEquals("not_valid", forged.code());
    }
}
