package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;

import org.constancia.client.evidence.ArchiveCheck;
import org.constancia.client.evidence.Archives;
import org.constancia.client.model.Certification;
import org.constancia.client.model.Event;
import org.constancia.client.model.FileCheck;
import org.constancia.client.model.Modality;
import org.constancia.client.model.Verification;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The client against a service: CONSTANCIA_URL, CONSTANCIA_KEY, CONSTANCIA_TEST_KEY, CONSTANCIA_HASH_KEY. Its archives
 * are verified by CONSTANCIA_PROGRAM with the roots CONSTANCIA_TRUST.
 */
@Timeout(300)
class ServiceTest {
    private static final String URL = System.getenv("CONSTANCIA_URL");
    private static final String KEY = System.getenv("CONSTANCIA_KEY");
    private static final Path PROGRAM = Path.of(System.getenv("CONSTANCIA_PROGRAM"));
    private static final Path TRUST = Path.of(System.getenv("CONSTANCIA_TRUST"));

    private final Client client = connect().build();

    @TempDir
    Path folder;

    private static Client.Builder connect() {
        return Client.builder(URL).key(KEY);
    }

    private static Client hashes() {
        return connect().key(System.getenv("CONSTANCIA_HASH_KEY")).build();
    }

    private static String fresh() {
        return UUID.randomUUID().toString();
    }

    private static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new Random().nextBytes(bytes);
        return bytes;
    }

    private static <T> T eventually(Supplier<T> fetch) throws Exception {
        for (int attempt = 0;; attempt++) {
            try {
                return fetch.get();
            } catch (ApiException.NotFound error) {
                if (attempt > 2000)
                    throw error;
                Thread.sleep(100);
            }
        }
    }

    @Test
    void everyDescribedOperationHasAMethod() {
        Map<String, String> methods = Map.ofEntries(Map.entry("registerEvent", "register registerDigest"),
            Map.entry("registerFile", "registerFile"), Map.entry("registerEvents", "registerMany"),
            Map.entry("listEvents", "events eventsPage findByHash"), Map.entry("getEvent", "event"),
            Map.entry("getEventContent", "content saveContent"),
            Map.entry("getEventEvidenceRecord", "eventEvidenceRecord"), Map.entry("getChannel",
                "channel channelBefore"),
            Map.entry("getChannelSeals", "channelSeals"), Map.entry("getBalance", "balance"),
            Map.entry("listNotices", "noticesPage"), Map.entry("createNotice", "createNotice"),
                Map.entry("requestCertification", "certify"),
            Map.entry("listCertifications", "certifications certificationsPage"),
            Map.entry("getCertification", "certification await"),
            Map.entry("getCertificationEvidenceRecord", "certificationEvidenceRecord"),
            Map.entry("download", "download save"), Map.entry("listSigners", "signers"),
            Map.entry("getSignerList", "signerList"), Map.entry("getIndex", "index"),
            Map.entry("getDescription", "description"), Map.entry("getWebhookDescription", "webhookDescription"),
            Map.entry("verify", "verifyDigest"), Map.entry("verifyFile", "verifyFile"),
            Map.entry("verifyCode", "verify"));
        List<String> all = Arrays.stream(Client.class.getMethods()).map(one -> one.getName()).toList();
        List<String> found = new ArrayList<>();
        Matcher operation = Pattern.compile("operationId: (\\w+)").matcher(client.description());
        while (operation.find()) {
            found.add(operation.group(1));
            assertTrue(methods.containsKey(operation.group(1)), operation.group(1));
            for (String name : methods.get(operation.group(1)).split(" "))
                assertTrue(all.contains(name), name);
        }
        assertEquals(methods.size(), found.size());
        assertTrue(client.webhookDescription().contains("webhooks:"));
        assertNotNull(client.index().get("openapi_url"));
    }

    @Test
    void everyTypeOfNoticeThatIsDescribedHasAClass() {
        String described = client.webhookDescription();
        Matcher type = Pattern.compile("(?m)^  ([a-z_]+\\.[a-z_]+):$").matcher(
            described.substring(described.indexOf("\nwebhooks:"), described.indexOf("\ncomponents:")));
        List<String> found = new ArrayList<>();
        while (type.find())
            found.add(type.group(1));
        assertEquals(NoticeData.BY_TYPE.keySet().stream().sorted().toList(), found.stream().sorted().toList());
    }

    @Test
    void aPayloadIsRegisteredOnceAndReadAgain() throws Exception {
        record Line(String text, String total, List<Map<String, Object>> nested) { }

        Map<String, Object> nothing = new HashMap<>();
        nothing.put("a", null);
        Line payload = new Line("ñ \u2028 \"", "49.90", List.of(nothing));
        Declaration declared = Declaration.of("order/ñ-" + fresh(), payload)
            .at(Instant.parse("2026-01-31T08:30:00.1234567Z"));
        Receipt first = client.register(declared);
        Receipt again = client.register(declared);
        assertEquals(List.of(false, true), List.of(first.isReplayed(), again.isReplayed()));
        assertEquals(first.getEventId(), again.getEventId());
        assertEquals(Instant.parse("2026-01-31T08:30:00.123456Z"), first.getOccurredAt().toInstant());
        Content content = client.content(first.getEventId());
        assertEquals(Json.MAPPER.valueToTree(payload), Json.MAPPER.readTree(content.body()));
        assertEquals("application/json", content.mediaType());
        assertEquals(first.getHash(), Digests.of(content.body(), "sha-256"));
        assertEquals(64, client.event(first.getEventId()).getProof().getConfigHash().length());
        ApiException.Conflict conflict = assertThrows(ApiException.Conflict.class, () ->
            client.register(declared.clientRef(), Map.of("other", 1)));
        assertEquals(List.of("client_ref_conflict", 409, first.getEventId()),
            List.of(conflict.code(), conflict.status(), conflict.eventId()));
        assertTrue(conflict.getMessage().contains(conflict.requestId()));
        JsonNode listed = Json.MAPPER.readTree(Receipt.toJson(
            client.events(Query.ALL.clientRef(declared.clientRef())).iterator().next()));
        JsonNode kept = Json.MAPPER.readTree(first.toJson());
        kept.fieldNames().forEachRemaining(name -> {
            if (!Set.of("timestamp", "receipt").contains(name)) // the receipt is of the registration
                assertEquals(kept.get(name), listed.get(name), name);
        });
        assertEquals(kept.size(), listed.size() + 1);
    }

    @Test
    void aFileIsSentInChunksAndComesBack() throws Exception {
        byte[] whole = random(3_000_001);
        Path source = Files.write(folder.resolve("a \"quoted\" ñ.bin"), whole);
        Receipt receipt = client.registerFile(fresh(), source);
        assertEquals(Digests.of(source), receipt.getHash());
        List<Long> steps = new ArrayList<>();
        Path target = folder.resolve("back");
        assertEquals(receipt.getHash(), client.saveContent(receipt, target, (at, total) -> {
            steps.add(at);
            assertEquals(3_000_001, total);
        }));
        assertArrayEquals(whole, Files.readAllBytes(target));
        assertTrue(steps.size() > 5);
        assertEquals("a \"quoted\" ñ.bin", client.content(receipt.getEventId()).fileName());
        try (Stream<Path> all = Files.list(folder)) {
            assertEquals(2, all.count());
        }
    }

    @Test
    void sealDocumentsAreSaved() throws Exception {
        Receipt receipt = client.register(fresh(), Map.of());
        Range range = Range.ofSequences(receipt.getSequence(), receipt.getSequence());
        client.await(client.certify(range.withSealHistory()), Duration.ofMinutes(5));
        Path path = folder.resolve("seals");
        for (Range wanted : Arrays.asList(null, range)) {
            assertEquals(client.channelSeals(wanted, path), Digests.of(path));
            assertTrue(Files.readString(path).startsWith("{\"chain\":\"live\","));
        }
        assertThrows(ApiException.InvalidRequest.class, () -> client.channelSeals(Range.ofSequences(2, 1), path));
    }

    @Test
    void aFileThatIsTooLargeIsRefusedAsSuch() throws Exception {
        Path large = Files.write(folder.resolve("large"), new byte[20_000_000]);
        assertEquals("payload_too_large",
            assertThrows(ApiException.TooLarge.class, () -> client.registerFile(fresh(), large)).code());
        ApiException.TooLarge error = assertThrows(ApiException.TooLarge.class, () ->
            client.register(fresh(), Map.of("text", "x".repeat(300_000))));
        assertEquals(413, error.status());
    }

    @Test
    void manyDeclarationsAreRegisteredInBatchesAndAgainWithNoEffect() throws Exception {
        Path receipts = folder.resolve("many.ndjson");
        String run = fresh();
        List<Declaration> declared = new ArrayList<>();
        for (int n = 0; n < 1010; n++)
            declared.add(Declaration.of(run + "-" + n, Map.of("n", n)));
        declared.set(20, Declaration.of(run + "-3", Map.of("other", 1)));
        declared.set(30, Declaration.ofDigest(run + "-h", "ab".repeat(32))); // the channel keeps content
        try (Client keeping = connect().receipts(receipts).build()) {
            for (boolean isAgain : new boolean[] {false, true}) {
                List<Outcome> found = keeping.registerMany(declared).toList();
                assertEquals(declared.stream().map(Declaration::clientRef).toList(),
                    found.stream().map(Outcome::clientRef).toList());
                ApiException.Conflict conflict = assertThrows(ApiException.Conflict.class, () ->
                    found.get(20).result());
                assertEquals(found.get(3).result().getEventId(), conflict.eventId());
                assertThrows(ApiException.InvalidRequest.class, () -> found.get(30).result());
                List<Receipt> events = found.stream().filter(one -> one.error() == null).map(Outcome::result).toList();
                assertEquals(1008, events.size());
                assertTrue(events.stream().allMatch(one -> one.isReplayed() == isAgain));
            }
        }
        assertEquals(2016, Files.readAllLines(receipts).size());
    }

    @Test
    void contentIsFoundByItsDigest() throws Exception {
        byte[] bytes = random(1000);
        Path file = Files.write(folder.resolve("file"), bytes);
        assertFalse(client.isOnRecord(file));
        Receipt receipt = client.registerFile(fresh(), file);
        assertTrue(client.isOnRecord(file) && client.isOnRecord(bytes));
        List<String> found = client.findByHash(receipt.getHash().toUpperCase()).stream().map(Event::getEventId)
            .toList();
        assertEquals(List.of(receipt.getEventId()), found);
        try (Client hashes = hashes()) {
            assertFalse(hashes.isOnRecord(bytes));
            hashes.registerDigest(fresh(), Digests.of(bytes, "sha-512"), "sha-512");
            assertTrue(hashes.isOnRecord(bytes));
        }
    }

    @Test
    void aDigestIsRegistered() {
        byte[] bytes = "contract".getBytes(StandardCharsets.UTF_8);
        try (Client hashes = hashes()) {
            for (String algorithm : List.of("sha-256", "sha-512")) {
                String hash = Digests.of(bytes, algorithm);
                Receipt receipt = hashes.registerDigest(fresh(), hash.toUpperCase(), algorithm);
                assertEquals(List.of(hash, algorithm), List.of(receipt.getHash(), receipt.getHashAlg().getValue()));
                assertThrows(ApiException.NotFound.class, () -> hashes.content(receipt.getEventId()));
            }
            assertEquals(Modality.HASH_ONLY, hashes.channel().getCurrentConfig().getModality());
            assertEquals(List.of(), hashes.channelBefore(1).getConfigVersions());
        }
        assertThrows(IllegalArgumentException.class, () -> Digests.of(bytes, "md5"));
    }

    @Test
    void listsContinueFromPageToPage() {
        List<Receipt> made = new ArrayList<>();
        for (int n = 0; n < 5; n++)
            made.add(client.register(fresh(), Map.of("n", n)));
        List<String> refs = made.stream().map(Event::getClientRef).toList();
        Query range = Query.ALL.sequences(made.get(0).getSequence(), made.get(4).getSequence());
        assertEquals(refs, client.events(range.limit(2)).stream().map(Event::getClientRef).toList());
        List<String> turned = new ArrayList<>(refs);
        Collections.reverse(turned);
        assertEquals(turned, client.events(range.order("desc").limit(2)).stream().map(Event::getClientRef).toList());
        assertEquals(0, client.events(Query.ALL.clientRef(fresh())).stream().count());
        assertEquals(0, client.events(range.to(Instant.parse("2026-01-01T00:00:00Z"))).stream().count());
        assertEquals(5, client.events(range.from(Instant.parse("2026-01-01T00:00:00Z")).status("registered")).stream()
            .count());
        Page<Event> page = client.eventsPage(range.limit(3));
        assertTrue(page.hasMore());
        assertEquals(2, client.eventsPage(range.limit(3).cursor(page.nextCursor())).data().size());
        assertTrue(client.events(Query.ALL.since(1)).stream().limit(3).count() == 3);
    }

    @Test
    void noticesOfTheTestModeAreFetched() {
        try (Client test = connect().key(System.getenv("CONSTANCIA_TEST_KEY")).build()) {
            Page<Notice> end = test.noticesPage(null, Duration.ZERO);
            assertEquals(List.of(), end.data());
            Notice made = test.createNotice("consumption.limit_reached");
            Page<Notice> page = test.noticesPage(end.nextCursor(), Duration.ofSeconds(1));
            assertEquals(List.of(made), page.data());
            assertEquals("block", ((NoticeData.ConsumptionLimit) page.data().get(0).details()).action());
            assertEquals(List.of(), test.noticesPage(page.nextCursor(), Duration.ZERO).data());
            assertThrows(ApiException.InvalidRequest.class, () -> test.createNotice("balance"));
        }
    }

    @Test
    void errorsSayWhatIsToBeSaidAndNoSecret() {
        ApiException english = assertThrows(ApiException.InvalidRequest.class, () -> client.register("", Map.of()));
        assertEquals("validation_error", english.code());
        assertTrue(english.description().contains("client_ref"));
        try (Client spanish = connect().language("es").build();
             Client unknown = connect().key("svc_live_unknown").build()) {
            assertNotEquals(english.description(),
                assertThrows(ApiException.class, () -> spanish.register("", Map.of())).description());
            assertThrows(ApiException.Unauthorized.class, unknown::balance);
        }
        assertThrows(ApiException.NotFound.class, () -> client.event("evt_../../channel"));
        assertFalse(client.toString().contains(KEY));
        String link = URL + "/downloads/CERT-2026-0000001/report-en.pdf?expires=9&mac=5ec2e75ec2e7";
        ApiException error = assertThrows(ApiException.NotFound.class, () ->
            client.download(link, folder.resolve("none"), null));
        assertFalse(error.toString().contains("5ec2e7"));
    }

    @Test
    void aForcedRefusalIsReportedAfterTheRetries() {
        try (Client limited = connect().key(System.getenv("CONSTANCIA_TEST_KEY")).scenario("rate_limited")
                .retry(new Retry(2, Duration.ofSeconds(60))).build()) {
            assertTrue(assertThrows(ApiException.TooManyRequests.class,
                limited::balance).retryAfter().toSeconds() >= 1);
        }
    }

    /** Passes a request on to the service, and drops every second answer. */
    private static Scripted.Step passOn(boolean isLost) {
        return (connection, request) -> {
            HttpRequest.Builder made = HttpRequest.newBuilder(URI.create(URL).resolve(request.target()))
                .version(HttpClient.Version.HTTP_1_1)
                .method(request.method(), HttpRequest.BodyPublishers.ofByteArray(request.body()));
            for (String name : List.of("authorization", "content-type", "idempotency-key")) {
                if (request.header(name) != null)
                    made.header(name, request.header(name));
            }
            HttpResponse<byte[]> answer = HttpClient.newHttpClient().send(made.build(),
                HttpResponse.BodyHandlers.ofByteArray());
            String replayed = answer.headers().firstValue("Idempotent-Replayed").orElse("false");
            if (!isLost)
                Scripted.say(answer.statusCode(), answer.body(), "Idempotent-Replayed", replayed).run(connection,
                    request);
        };
    }

    @Test
    void whatTheServiceDidIsNotDoneAgainWhenItsAnswerIsLost() throws Exception {
        long before = client.certifications(Query.ALL).stream().count();
        try (Scripted between = new Scripted(passOn(true), passOn(false), passOn(true), passOn(false));
             Client far = between.builder().key(KEY).build()) {
            Receipt receipt = far.register(fresh(), Map.of("lost", true));
            CertificationState asked = far.certify(Range.ofSequences(receipt.getSequence(), receipt.getSequence()));
            assertTrue(receipt.isReplayed() && asked.isReplayed());
            assertEquals(before + 1, client.certifications(Query.ALL.limit(1)).stream().count());
        }
    }

    @Test
    void aCertificationFromTheRequestToItsFiles() throws Exception {
        Path receipts = folder.resolve("receipts.ndjson");
        Receipt event;
        Receipt file;
        try (Client keeping = connect().receipts(receipts).build()) {
            String ref = fresh();
            event = keeping.register(ref, Map.of("certified", true));
            keeping.register(ref, Map.of("certified", true));
            file = keeping.registerFile(fresh(), Files.writeString(folder.resolve("held.txt"), "held"));
        }
        CertificationState asked = client.certify(Range.ofSequences(event.getSequence(), file.getSequence()));
        List<CertificationState> seen = new ArrayList<>();
        CertificationState done = client.await(asked.getCertificationId(), Duration.ofMinutes(5), seen::add);
        CertificationState last = seen.get(seen.size() - 1);
        assertEquals(List.of(Certification.StatusEnum.COMPLETED, 1),
            List.of(last.getStatus(), last.getProgress().intValue()));
        assertFalse(done.toString().contains("mac="));
        List<Path> files = client.save(done, folder.resolve("files"));
        List<String> digests = files.stream().map(Digests::of).sorted().toList();
        assertEquals(client.verify(done.getVerificationCode()).getDocuments().stream().map(one ->
            one.getSha256()).sorted()
            .toList(), digests);
        List<Path> parts = files.stream().filter(one -> one.toString().contains("content-part")).toList();
        assertEquals(1, parts.size());
        Path archive = files.stream().filter(one -> one.toString().endsWith("-evidence.zip")
            || one.toString().endsWith(".zip") && !parts.contains(one)).findFirst().orElseThrow();
        ArchiveCheck check = Archives.of(archive).receipts(receipts).parts(parts).trust(TRUST).program(PROGRAM)
            .verify();
        assertTrue(check.isValid(), check.findings().toString());
        assertEquals(List.of(3L, 0L), List.of(check.receipts().compared(), check.receipts().differing()));
        assertTrue(check.notChecked().get(0).contains("--log-key"), check.notChecked().toString());
        ArchiveCheck alone = Archives.of(archive).receipts(List.of(event, file)).parts(parts).withoutProgram().verify();
        assertEquals(List.of("signer_not_established", List.of(), 2L),
            List.of(alone.code(), alone.findings(), alone.receipts().compared()));
        verifyByTheProgram(archive, receipts);
        Files.writeString(parts.get(0), "x", StandardOpenOption.APPEND);
        assertEquals(ArchiveCheck.Verdict.INVALID,
            Archives.of(archive).parts(parts).withoutProgram().verify().verdict());
        checkPublicOperations(done, archive);
        checkRecords(event, done);
    }

    /** What the file of receipts has is what `--receipt` takes. */
    private static void verifyByTheProgram(Path archive, Path receipts) throws Exception {
        Process verify = new ProcessBuilder(PROGRAM.toString(), "verify", archive.toString(), "--trust",
            TRUST.toString(),
            "--receipt", receipts.toString(), "--json").start();
        JsonNode said = Json.MAPPER.readTree(verify.getInputStream());
        assertEquals(0, verify.waitFor());
        assertEquals(3, said.get("checked").get("receipts").asInt());
    }

    private static void checkPublicOperations(CertificationState done, Path archive) {
        try (Client anyone = Client.builder(URL).build()) {
            FileCheck check = anyone.verifyFile(archive);
            assertTrue(check.getVerification().getValid());
            assertEquals(done.getCertificationId(), check.getIssued().getCertificationId());
            Verification found = anyone.verifyDigest(Digests.of(archive));
            assertEquals(done.getVerificationCode(), found.getVerificationCode());
            assertThrows(ApiException.NotFound.class, () -> anyone.verify("SVC-2026-AAAA-AAAA"));
            assertNull(anyone.signers().get(0).getUsedUntil());
            assertTrue(anyone.signerList().length > 100);
        }
    }

    private void checkRecords(Receipt event, CertificationState done) throws Exception {
        byte[] record = eventually(() -> client.certificationEvidenceRecord(done.getCertificationId()));
        assertEquals(client.certification(done.getCertificationId()).getEvidenceRecordSha256(),
            Digests.of(record, "sha-256"));
        assertTrue(eventually(() -> client.eventEvidenceRecord(event.getEventId())).length > 100);
        assertTrue(client.certifications(Query.ALL.status("completed").limit(1)).stream()
            .anyMatch(one -> one.getCertificationId().equals(done.getCertificationId())));
        assertThrows(ApiException.InvalidRequest.class, () -> client.certify(Range.ofSequences(2, 1)));
        assertThrows(ApiException.InvalidRequest.class, () ->
            client.certify(Range.ofTimes(Instant.parse("2026-02-01T00:00:00Z"),
                Instant.parse("2026-01-01T00:00:00Z"))));
    }
}
