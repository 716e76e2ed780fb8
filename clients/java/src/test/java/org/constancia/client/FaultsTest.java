package org.constancia.client;

import static org.constancia.client.Scripted.chunked;
import static org.constancia.client.Scripted.cut;
import static org.constancia.client.Scripted.hangUp;
import static org.constancia.client.Scripted.say;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import java.util.stream.Stream;

import org.constancia.client.model.Certification;
import org.constancia.client.model.CertificationReport;
import org.constancia.client.model.ContentPart;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The client against servers that fail. */
@Timeout(120)
class FaultsTest {
    private static final String BALANCE = "{\"balance\":1,\"operational\":true,\"unpaid_events\":0}";
    private static final String ACCEPTED = "{\"certification_id\":\"CERT-1\",\"status\":\"processing\"}";
    private static final Range RANGE = Range.ofSequences(1, 1);
    private static final String RETRY_AFTER = "Retry-After";

    @TempDir
    Path folder;

    private static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    private static String sha256(byte[] bytes) {
        return Digests.of(bytes, "sha-256");
    }

    private static byte[] of(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private List<String> names() throws Exception {
        try (Stream<Path> all = Files.list(folder)) {
            return all.map(one -> one.getFileName().toString()).sorted().toList();
        }
    }

    @Test
    void retriesWaitAtLeastAsLongAsAsked() throws Exception {
        try (Scripted server = new Scripted(say(503, "", RETRY_AFTER, "1"), say(429, "", RETRY_AFTER, "1"), say(502),
                                            say(200, BALANCE)); Client client = server.client()) {
            long start = System.nanoTime();
            assertEquals(1, client.balance().getBalance());
            assertTrue(System.nanoTime() - start >= 2_000_000_000L);
            Scripted.Request first = server.seen.get(0);
            assertEquals("/v1/account/balance", first.target());
            assertTrue(first.header("user-agent").startsWith("shop/1 constancia-java/"));
            assertEquals("Bearer svc_test_key", first.header("authorization"));
            assertNull(first.header("upgrade"));
        }
    }

    @Test
    void whatIsTooLongToWaitForIsReportedAtOnce() throws Exception {
        try (Scripted server = new Scripted(say(429, "", RETRY_AFTER, "40000"),
                say(500, "{\"code\":\"internal\",\"message\":\"m\",\"incident_id\":\"inc_1\"}"),
                say(302, "", "Location", "http://127.0.0.1:1/"), say(200, "<html>"), say(200, "null"));
             Client client = server.client()) {
            ApiException.TooManyRequests busy = assertThrows(ApiException.TooManyRequests.class, client::balance);
            assertEquals(Duration.ofSeconds(40000), busy.retryAfter());
            ApiException.ServerError failed = assertThrows(ApiException.ServerError.class, client::balance);
            assertTrue(failed.getMessage().contains("inc_1") && failed.incidentId().equals("inc_1"));
            assertEquals(302, assertThrows(ApiException.class, client::balance).status());
            assertThrows(UnexpectedAnswerException.class, client::balance);
            assertThrows(UnexpectedAnswerException.class, client::balance);
            assertEquals(5, server.seen.size());
        }
    }

    @Test
    void classesFollowCodeAndStatus() throws Exception {
        Map<String, Class<? extends ApiException>> cases = Map.of("422 limit_blocked", ApiException.LimitBlocked.class,
            "403 suspended", ApiException.Suspended.class, "403 account_disabled", ApiException.AccountDisabled.class,
            "403 unheard_of", ApiException.Forbidden.class, "409 suspended", ApiException.Conflict.class,
            "422 unheard_of", ApiException.class, "507 unheard_of", ApiException.ServerError.class,
            "402 x", ApiException.PaymentRequired.class, "401 x", ApiException.Unauthorized.class);
        for (Map.Entry<String, Class<? extends ApiException>> one : cases.entrySet()) {
            String[] words = one.getKey().split(" ");
            try (Scripted server = new Scripted(say(Integer.parseInt(words[0]), "{\"code\":\"" + words[1]
                    + "\",\"message\":\"m\",\"event_id\":\"evt_1\",\"new\":{\"a\":[]}}", RETRY_AFTER, "7"));
                 Client client = server.client()) {
                ApiException error = assertThrows(ApiException.class, client::balance);
                assertEquals(one.getValue(), error.getClass());
                assertEquals(List.of(words[1], "evt_1", Duration.ofSeconds(7)),
                    List.of(error.code(), error.eventId(), error.retryAfter()));
            }
        }
        try (Scripted server = new Scripted(say(400,
            "{\"code\":7,\"message\":[\"m\"]}")); Client client = server.client()) {
            assertEquals("", assertThrows(ApiException.InvalidRequest.class, client::balance).code());
        }
    }

    @Test
    void aLostConnectionRepeatsWhatMayBeRepeated() throws Exception {
        List<String> told = new ArrayList<>();
        Hooks hooks = new Hooks() {
            @Override
            public void onRequest(RequestSent sent) {
                told.add("sent " + sent.attempt());
                throw new IllegalStateException("a fault of a hook");
            }

            @Override
            public void onResponse(ResponseReceived received) {
                told.add("received " + received.status() + " " + received.requestId());
            }

            @Override
            public void onRetry(RetryPlanned planned) {
                told.add("retry " + planned.attempt() + " " + planned.error().getClass().getSimpleName());
            }
        };
        try (Scripted server = new Scripted(hangUp(), cut(200, of(BALANCE.substring(0, 9)), BALANCE.length(), () ->
            true),
                say(200, BALANCE, "X-Request-Id", "req_1")); Client client = server.builder().hooks(hooks).build()) {
            assertTrue(client.balance().getOperational());
            assertEquals(List.of("sent 1", "retry 1 ConnectionFailedException", "sent 2", "received 200 null",
                "retry 2 ConnectionFailedException", "sent 3", "received 200 req_1"), told);
        }
    }

    @Test
    void aCertificationIsRequestedUnderOneKeyInAllAttempts() throws Exception {
        try (Scripted server = new Scripted(hangUp(), say(503, "", RETRY_AFTER, "1"), say(502), say(202, ACCEPTED),
                say(202, ACCEPTED, "Idempotent-Replayed", "true"), say(202,
                    ACCEPTED)); Client client = server.client()) {
            assertFalse(client.certify(RANGE).isReplayed());
            List<String> keys = server.seen.stream().map(one -> one.header("idempotency-key")).distinct().toList();
            assertEquals(1, keys.size());
            assertTrue(keys.get(0).length() >= 22);
            assertTrue(client.certify(RANGE).isReplayed());
            assertNotEquals(keys.get(0), server.seen.get(4).header("idempotency-key"));
            client.certify(RANGE, "own");
            assertEquals("own", server.seen.get(5).header("idempotency-key"));
            for (String bad : List.of("", "a b", "a\n", "ñ", "k".repeat(256)))
                assertThrows(IllegalArgumentException.class, () -> client.certify(RANGE, bad));
        }
    }

    @Test
    void aCertificationThatFailedHasTheKeyForItsRepetition() throws Exception {
        try (Scripted server = new Scripted(hangUp(), hangUp(), hangUp(), hangUp(), say(500), say(202, "<html>"),
                say(404)); Client client = server.client()) {
            for (Class<? extends ConstanciaException> kind : List.of(ConnectionFailedException.class,
                    ApiException.ServerError.class, UnexpectedAnswerException.class)) {
                ConstanciaException error = assertThrows(kind, () -> client.certify(RANGE));
                assertEquals(server.seen.get(server.seen.size() - 1).header("idempotency-key"), error.idempotencyKey());
            }
            assertNull(assertThrows(ApiException.NotFound.class, client::balance).idempotencyKey());
        }
    }

    @Test
    void nothingThatListensIsAFailedConnection() throws Exception {
        int port;
        try (ServerSocket taken = new ServerSocket(0)) {
            port = taken.getLocalPort();
        }
        try (Client client = Client.builder("http://127.0.0.1:" + port).retry(new Retry(2,
            Duration.ofSeconds(5))).build()) {
            assertFalse(assertThrows(ConnectionFailedException.class, client::balance).sent());
        }
    }

    @Test
    void silenceEnds() throws Exception {
        Retry once = new Retry(1, Duration.ZERO);
        Scripted.Step silent = (connection, request) -> Thread.sleep(5000);
        Scripted.Step halfSilent = cut(200, of("{"), 100, () -> false);
        try (Scripted server = new Scripted(silent, halfSilent);
             Client client = server.builder().timeout(Duration.ofMillis(300)).retry(once).build()) {
            for (int at = 0; at < 2; at++) {
                ConnectionFailedException error = assertThrows(ConnectionFailedException.class, client::balance);
                assertTrue(error.getMessage().contains("no sign of the service"), error.getMessage());
            }
        }
    }

    @Test
    void anInterruptedCallEndsAndSendsNothingMore() throws Exception {
        Scripted.Step silent = (connection, request) -> Thread.sleep(2000);
        for (Scripted.Step step : List.of(silent, say(503, "", RETRY_AFTER, "30"), cut(200, of("{"), 100, () ->
            false))) {
            try (Scripted server = new Scripted(step); Client client = server.client()) {
                AtomicReference<Throwable> ended = new AtomicReference<>();
                boolean[] isInterrupted = {false};
                Thread thread = new Thread(() -> {
                    ended.set(assertThrows(RuntimeException.class, client::balance));
                    isInterrupted[0] = Thread.currentThread().isInterrupted();
                });
                thread.start();
                while (server.seen.isEmpty())
                    Thread.sleep(10);
                Thread.sleep(100);
                thread.interrupt();
                thread.join(20_000);
                assertInstanceOf(CallInterruptedException.class, ended.get());
                assertTrue(isInterrupted[0]);
                assertEquals(1, server.seen.size());
            }
        }
    }

    @Test
    void aHeaderThatCannotBeSentIsTheCallersMistake() {
        String url = "http://127.0.0.1:1";
        for (Client.Builder bad : List.of(Client.builder(url).userAgent("x\ny"), Client.builder(url).userAgent("ñ€"),
                Client.builder(url).language("e\rn"), Client.builder(url).scenario("a\0"),
                Client.builder(url).scenario("a").headerPrefix("S V C"), Client.builder(url).key("svc_secret\n"),
                Client.builder(url).key(""), Client.builder("http://user:hidden@127.0.0.1/v1"),
                Client.builder("ftp://127.0.0.1"), Client.builder("127.0.0.1"))) {
            IllegalArgumentException error = assertThrows(IllegalArgumentException.class, bad::build);
            assertFalse(error.getMessage().contains("secret") || error.getMessage().contains("hidden"));
        }
    }

    @Test
    void whatIsNoJsonIsTheCallersMistake() throws Exception {
        try (Client client = Client.builder("http://127.0.0.1:1").build()) {
            for (Object bad : Arrays.asList(List.of(1), "text", 7, Map.of("a", List.of(Double.NaN)),
                    Map.of("a", LocalDateTime.of(2026, 1, 1, 0, 0))))
                assertThrows(IllegalArgumentException.class, () -> client.register("r", bad));
            assertThrows(IllegalArgumentException.class, () -> client.event(".."));
        }
    }

    @Test
    void timesAreSentInUtcWithMicroseconds() throws Exception {
        record Order(Instant at, String total) { }

        String event = "{\"event_id\":\"e\",\"client_ref\":\"r\",\"sequence\":1,\"hash\":\"h\"}";
        try (Scripted server = new Scripted(say(201, event)); Client client = server.client()) {
            Instant when = Instant.parse("2026-01-31T08:30:00.123456789Z");
            client.register(Declaration.of("r", new Order(when, "49.90")).at(when));
            assertEquals("{\"client_ref\":\"r\",\"payload\":{\"at\":\"2026-01-31T08:30:00.123456Z\","
                + "\"total\":\"49.90\"},\"occurred_at\":\"2026-01-31T08:30:00.123456Z\"}",
                new String(server.seen.get(0).body()));
        }
    }

    @Test
    void aFileIsSentAgainFromItsBeginningAndWhatWasRecordedIsCompared() throws Exception {
        String event = "{\"event_id\":\"e\",\"client_ref\":\"r\",\"sequence\":1,\"hash\":\"" + sha256(of("456"))
            + "\"}";
        try (Scripted server = new Scripted(hangUp(), say(201, event), say(201, event.replaceAll("[0-9a-f]{64}", "0")),
                say(201, event.replace("\"r\"", "\"s\""))); Client client = server.client()) {
            Path file = Files.write(folder.resolve("n\"ñ.txt"), of("456"));
            assertEquals("e", client.registerFile("r", file).getEventId());
            assertArrayEquals(server.seen.get(0).body(), server.seen.get(1).body());
            String body = new String(server.seen.get(1).body(), StandardCharsets.UTF_8);
            assertTrue(body.contains("filename=\"n%22ñ.txt\"") && body.contains("\r\n\r\n456\r\n--"), body);
            assertThrows(DigestMismatchException.class, () -> client.registerFile("r", file));
            assertThrows(UnexpectedAnswerException.class, () -> client.registerFile("r", file));
            assertThrows(UncheckedIOException.class, () -> client.registerFile("r", folder.resolve("missing")));
        }
    }

    // ---- downloads ----

    private static Scripted.Step rest(byte[] body, long begin, long total, String... more) {
        List<String> headers = new ArrayList<>(List.of(more));
        headers.addAll(List.of("Content-Range", "bytes " + begin + "-" + (total - 1) + "/" + total));
        return say(206, body, headers.toArray(new String[0]));
    }

    private static byte[] part(byte[] whole, int begin, int end) {
        return Arrays.copyOfRange(whole, begin, end);
    }

    @Test
    void aDownloadContinuesWhereItWasCut() throws Exception {
        byte[] whole = random(300_000);
        AtomicLong at = new AtomicLong();
        try (Scripted server = new Scripted(cut(200, part(whole, 0, 100_000), 300_000, () -> at.get() == 100_000),
                cut(206, part(whole, 100_000, 150_000), 200_000, () -> at.get() == 150_000, "Content-Range",
                    "bytes 100000-299999/300000"), rest(part(whole, 150_000, 300_000), 150_000, 300_000));
             Client client = server.client()) {
            Path target = folder.resolve("evidence.zip");
            client.download(server.url() + "/x?mac=1", target, sha256(whole).toUpperCase(), (now, total) -> {
                at.set(now);
                assertEquals(300_000, total);
            });
            assertEquals(Arrays.asList(null, "bytes=100000-", "bytes=150000-"),
                server.seen.stream().map(one -> one.header("range")).toList());
            assertNull(server.seen.get(0).header("authorization"));
            assertNull(server.seen.get(1).header("if-range"));
            assertArrayEquals(whole, Files.readAllBytes(target));
            assertEquals(300_000, at.get());
            assertEquals(List.of("evidence.zip"), names());
        }
    }

    @Test
    void whatChangedBetweenItsPartsIsFetchedFromScratch() throws Exception {
        AtomicLong at = new AtomicLong();
        byte[] fresh = of("new ".repeat(20));
        try (Scripted server = new Scripted(
                cut(200, of("old ".repeat(10)), 80, () -> at.get() == 40, "ETag", "\"1\""),
                cut(200, part(fresh, 0, 20), 80, () -> at.get() == 20, "ETag", "W/\"2\""),
                cut(200, part(fresh, 0, 40), 80, () -> at.get() == 40, "ETag", "\"2\""),
                rest(part(fresh, 40, 80), 40, 80, "ETag", "\"2\"")); Client client = server.client()) {
            client.download(server.url() + "/x", folder.resolve("file"), null, (now, total) -> at.set(now));
            assertEquals(Arrays.asList(null, "\"1\"", null, "\"2\""),
                server.seen.stream().map(one -> one.header("if-range")).toList());
            assertArrayEquals(fresh, Files.readAllBytes(folder.resolve("file")));
        }
    }

    @Test
    void moreThanTheFileIsRefused() throws Exception {
        AtomicLong received = new AtomicLong();
        try (Scripted server = new Scripted(cut(200, of("01234"), 10, () -> received.get() == 5, "ETag", "\"1\""),
                say(206, "5".repeat(1000), "ETag", "\"1\"", "Content-Range", "bytes 5-9/10"));
             Client client = server.client()) {
            assertThrows(UnexpectedAnswerException.class,
                () -> client.download(server.url() + "/x", folder.resolve("file"), null,
                    (at, total) -> received.set(at)));
            assertEquals(List.of(), names());
        }
    }

    private static Scripted.Step endless() {
        return chunked("x".repeat(65536), 1000);
    }

    @Test
    void aDownloadWithoutALengthHasABound() throws Exception {
        String whole = "w".repeat(1000);
        try (Scripted server = new Scripted(chunked(whole, 1), endless(), chunked(whole + "w", 1),
                say(200, whole + "w")); Client client = server.builder().downloadMax(1000).build()) {
            Path target = folder.resolve("file");
            client.download(server.url() + "/x", target, sha256(of(whole)));
            Files.delete(target);
            for (int number = 0; number < 3; number++) {
                UnexpectedAnswerException error = assertThrows(UnexpectedAnswerException.class,
                    () -> client.download(server.url() + "/x", target, sha256(of(whole))));
                assertTrue(error.getMessage().contains("1000 bytes"), error.getMessage());
                assertEquals(List.of(), names());
            }
        }
    }

    private static Certification completed(Scripted server) {
        return new Certification().certificationId("CERT-1").status(Certification.StatusEnum.COMPLETED)
            .verificationCode("SVC-2026-AAAA-AAAA").evidenceUrl(server.url() + "/files/CERT-1.zip");
    }

    @Test
    void saveTakesNoMoreThanIsOnRecord() throws Exception {
        Scripted.Step issued = say(200, "{\"documents\":[{\"name\":\"CERT-1.zip\",\"bytes\":7,\"sha256\":\""
            + sha256(of("content")) + "\"}]}");
        try (Scripted server = new Scripted(issued, chunked("content", 1), issued, endless());
             Client client = server.client()) {
            Files.delete(client.save(completed(server), folder).get(0));
            UnexpectedAnswerException error = assertThrows(UnexpectedAnswerException.class,
                () -> client.save(completed(server), folder));
            assertTrue(error.getMessage().contains("7 bytes"), error.getMessage());
            assertEquals(List.of(), names());
        }
    }

    @Test
    void saveNamesTheFileThatIsMissing() throws Exception {
        try (Scripted server = new Scripted(); Client client = server.client()) {
            Map<String, Certification> cases = Map.of("evidence_url", completed(server).evidenceUrl(null),
                "reports[0].url", completed(server).addReportsItem(new CertificationReport()),
                "content_parts[0].url", completed(server).addContentPartsItem(new ContentPart()));
            cases.forEach((member, done) -> {
                UnexpectedAnswerException error = assertThrows(UnexpectedAnswerException.class,
                    () -> client.save(done, folder.resolve("files")));
                assertTrue(error.getMessage().contains("CERT-1 is completed and has no " + member), error.getMessage());
            });
            assertEquals(List.of(), names());
        }
    }

    @Test
    void theRestOfAnotherFileIsRefused() throws Exception {
        for (String[] more : new String[][] {{"ETag", "\"2\""}, {}}) {
            AtomicLong at = new AtomicLong();
            try (Scripted server = new Scripted(
                    cut(200, of("old ".repeat(10)), 80, () -> at.get() == 40, "ETag", "\"1\""),
                    rest(of("new ".repeat(10)), 40, 80, more)); Client client = server.client()) {
                assertThrows(UnexpectedAnswerException.class, () ->
                    client.download(server.url() + "/x", folder.resolve("file"), null, (now, total) -> at.set(now)));
                assertEquals(List.of(), names());
            }
        }
    }

    @Test
    void aDownloadThatFailedIsResumedByTheNextCall() throws Exception {
        byte[] whole = random(200_000);
        AtomicLong at = new AtomicLong();
        try (Scripted server = new Scripted(cut(200, part(whole, 0, 90_000), 200_000, () -> at.get() == 90_000),
            hangUp(),
                hangUp(), hangUp(), rest(part(whole, 90_000, 200_000), 90_000,
                    200_000)); Client client = server.client()) {
            Path target = Files.write(folder.resolve("part.zip"), of("what was there"));
            assertThrows(ConnectionFailedException.class, () ->
                client.download(server.url() + "/x", target, sha256(whole), (now, total) -> at.set(now)));
            assertEquals("what was there", Files.readString(target));
            client.download(server.url() + "/x", target, sha256(whole));
            assertArrayEquals(whole, Files.readAllBytes(target));
            assertEquals(List.of("part.zip"), names());
        }
    }

    @Test
    void aSpoiltRestIsFetchedFromScratchAndAWrongFileDoesNotAppear() throws Exception {
        byte[] whole = of("w".repeat(1000));
        String digest = sha256(whole);
        Path rest = folder.resolve(".file." + digest.substring(0, 32) + ".part");
        Path target = folder.resolve("file");
        try (Scripted server = new Scripted(rest(part(whole, 500, 1000), 500, 1000), say(200, whole),
                say(416, "", "Content-Range", "bytes */1000"), say(200, whole), say(200, "other"), say(200, "any"));
             Client client = server.client()) {
            for (byte[] left : List.of(new byte[500], new byte[2000], whole)) {
                Files.write(rest, left);
                client.download(server.url() + "/x", target, digest);
                assertArrayEquals(whole, Files.readAllBytes(target));
                Files.delete(target);
            }
            assertThrows(DigestMismatchException.class, () -> client.download(server.url() + "/x", target, digest));
            assertEquals(List.of(), names());
            assertEquals(sha256(of("any")), client.download(server.url() + "/x", target, null));
        }
    }

    @Test
    void whatOthersPutAtARestIsNotWrittenTo() throws Exception {
        byte[] whole = of("w".repeat(1000));
        Path victim = Files.write(folder.resolve("victim"), of("precious"));
        Path rest = folder.resolve(".file." + sha256(whole).substring(0, 32) + ".part");
        for (boolean isHard : new boolean[] {true, false}) {
            if (isHard)
                Files.createLink(rest, victim);
            else
                Files.createSymbolicLink(rest, victim);
            try (Scripted server = new Scripted(say(200, whole)); Client client = server.client()) {
                client.download(server.url() + "/x", folder.resolve("file"), sha256(whole));
            }
            assertArrayEquals(whole, Files.readAllBytes(folder.resolve("file")));
            assertEquals("precious", Files.readString(victim));
            Files.delete(rest);
        }
    }

    @Test
    void twoDownloadsOfOneFileHaveAPartEach() throws Exception {
        byte[] whole = random(200_000);
        AtomicLong at = new AtomicLong();
        boolean[] isOver = {false};
        try (Scripted server = new Scripted(cut(200, part(whole, 0, 100_000), 100_000, () -> isOver[0]), say(200,
            whole));
             Client client = server.client()) {
            Path target = folder.resolve("file");
            Thread first = new Thread(() -> assertThrows(DigestMismatchException.class, () ->
                client.download(server.url() + "/x", target, sha256(whole), (now, total) -> {
                    at.set(now);
                    while (now == 100_000 && !isOver[0])
                        Transport.sleep(Duration.ofMillis(10));
                })));
            first.start();
            while (at.get() < 100_000)
                Thread.sleep(10);
            client.download(server.url() + "/x", target, sha256(whole));
            isOver[0] = true;
            first.join();
            assertArrayEquals(whole, Files.readAllBytes(target));
            assertEquals(List.of("file"), names());
        }
    }

    // ---- waiting and batches ----

    private static String state(String status, String progress) {
        return "{\"certification_id\":\"CERT-1\",\"status\":\"" + status + "\",\"progress\":" + progress + "}";
    }

    @Test
    void waitingEndsInTimeAndOnFailureAndProgressAtOne() throws Exception {
        try (Scripted server = new Scripted(say(200, state("processing", "0.2")), say(200, state("processing", "0.2")),
                say(200, state("completed", "null")), say(200, state("failed",
                    "null"))); Client client = server.client()) {
            assertEquals("CERT-1", assertThrows(WaitTimeoutException.class, () ->
                client.await("CERT-1", Duration.ZERO, now -> { })).certification().getCertificationId());
            List<Double> seen = new ArrayList<>();
            client.await("CERT-1", Duration.ofMinutes(1), now -> seen.add(now.getProgress().doubleValue()));
            assertEquals(List.of(0.2, 1.0), seen);
            assertThrows(CertificationFailedException.class, () -> client.await("CERT-1", Duration.ZERO, now -> { }));
        }
    }

    private static String line(int number, int status) {
        return status < 300 ? "{\"http_status\":" + status + ",\"event_id\":\"e" + number + "\",\"client_ref\":\"r"
            + number
            + "\",\"sequence\":1,\"hash\":\"h\"}\n" : "{\"http_status\":" + status + ",\"client_ref\":\"r" + number
            + "\",\"code\":\"c\",\"message\":\"m\",\"retry_after\":" + (status == 429 ? "1" : "null") + "}\n";
    }

    private static List<Declaration> declared(int count) {
        return IntStream.range(0, count).mapToObj(n -> Declaration.of("r" + n, Map.of("n", n))).toList();
    }

    @Test
    void aReceiptOfAnotherDigestIsRefusedInBatches() throws Exception {
        String other = line(0, 201).replace("\"hash\":\"", "\"hash\":\"ff");
        Declaration declared = Declaration.ofDigest("r0", "00".repeat(32));
        for (Scripted.Step[] answers : new Scripted.Step[][] {{say(200, other)},
                {say(413), say(201, other.replace("\"http_status\":201,", ""))}}) {
            try (Scripted server = new Scripted(answers); Client client = server.client()) {
                assertThrows(DigestMismatchException.class, () -> client.registerMany(List.of(declared)).toList());
            }
        }
    }

    @Test
    void aClientThatFollowsRedirectsIsRefused() {
        var follows = java.net.http.HttpClient.newBuilder().followRedirects(java.net.http.HttpClient.Redirect.NORMAL);
        Client.Builder builder = Client.builder("http://127.0.0.1:1/v1").httpClient(follows.build());
        assertThrows(IllegalArgumentException.class, builder::build);
    }

    @Test
    void retriesEndWithThePatience() throws Exception {
        AtomicLong seen = new AtomicLong();
        HttpServer busy = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        busy.createContext("/", exchange -> {
            seen.incrementAndGet();
            exchange.sendResponseHeaders(503, -1);
            exchange.close();
        });
        busy.start();
        try (Client client = Client.builder("http://127.0.0.1:" + busy.getAddress().getPort()).key("svc_test_key")
                .retry(new Retry(100, Duration.ofMillis(600))).build()) {
            assertThrows(ApiException.Unavailable.class, client::balance);
            assertTrue(seen.get() < 10, "" + seen);
        } finally {
            busy.stop(0);
        }
    }

    @Test
    void aBatchIsRepeatedWholeWhenLostAndItemsAloneWhenBusy() throws Exception {
        List<String> kept = new ArrayList<>();
        try (Scripted server = new Scripted(hangUp(), say(200, line(0, 201) + line(1, 429) + line(2, 409)),
                say(200, line(1, 200)));
             Client client = server.builder().receipts(all -> all.forEach(one -> kept.add(one.getEventId()))).build()) {
            List<Outcome> found = client.registerMany(declared(3)).toList();
            assertEquals(List.of("r0", "r1", "r2"), found.stream().map(Outcome::clientRef).toList());
            assertFalse(found.get(0).result().isReplayed());
            assertTrue(found.get(1).receipt().isReplayed());
            assertThrows(ApiException.Conflict.class, () -> found.get(2).result());
            assertEquals(List.of("e0", "e1"), kept);
            assertEquals("{\"client_ref\":\"r1\",\"payload\":{\"n\":1}}\n", new String(server.seen.get(2).body()));
            assertFalse(found.get(0).receipt().toJson().contains("http_status"));
        }
    }

    @Test
    void batchesAreOfAThousandAndHalvesWhereTheyAreTooLarge() throws Exception {
        StringBuilder all = new StringBuilder();
        IntStream.range(0, 1000).forEach(n -> all.append(line(n, 201)));
        try (Scripted server = new Scripted(say(200, all.toString()), say(413), say(200, line(1000, 201)),
                say(413), say(201, line(1001, 201).replace("\"http_status\":201,",
                    ""))); Client client = server.client()) {
            assertEquals(1002, client.registerMany(declared(1002)).filter(one -> one.receipt() != null).count());
            assertEquals("/v1/events", server.seen.get(4).target());
        }
        for (String answer : List.of("", line(0, 201) + line(1, 201), line(1, 201), "null\n", "{}\n", "x\n")) {
            try (Scripted server = new Scripted(say(200, answer)); Client client = server.client()) {
                assertThrows(UnexpectedAnswerException.class, () -> client.registerMany(declared(1)).toList(), answer);
            }
        }
    }

    @Test
    void batchesHaveAtMostEightMebibytesAndAreReadNoFurtherThanNeeded() {
        List<Integer> taken = new ArrayList<>();
        Iterable<Declaration> large = () -> IntStream.range(0, 100).mapToObj(n -> {
            taken.add(n);
            return Declaration.of("r" + n, Map.of("text", "x".repeat(1 << 20)));
        }).iterator();
        Batches batches = new Batches(large.iterator(), Json.MAPPER);
        List<Batches.Item> first = batches.next();
        assertEquals(7, first.size());
        assertEquals(8, taken.size());
        assertTrue(Batches.joined(first).length <= Batches.BYTES_MAX);
        assertEquals("r7", batches.next().get(0).clientRef());
    }

    @Test
    void membersAndWordsThatAreNotKnownYetDoNoHarm() throws Exception {
        String event = "{\"event_id\":\"e\",\"client_ref\":\"r\",\"sequence\":1,\"hash\":\"h\",\"status\":\"later\","
            + "\"modality\":\"later\",\"new\":{\"a\":[1.5,null]}}";
        try (Scripted server = new Scripted(say(201, event)); Client client = server.client()) {
            Receipt receipt = client.register("r", Map.of());
            assertEquals("unknown_default_open_api", receipt.getStatus().getValue());
            assertEquals(event, receipt.toJson());
        }
    }

    @Test
    void aClosedClientRefuses() {
        Client client = Client.builder("http://127.0.0.1:1").build();
        client.close();
        assertThrows(IllegalStateException.class, client::balance);
    }
}
