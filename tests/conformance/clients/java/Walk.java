import java.io.File;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

import org.constancia.client.ApiClient;
import org.constancia.client.ApiException;
import org.constancia.client.api.AccountApi;
import org.constancia.client.api.CertificationsApi;
import org.constancia.client.api.EventsApi;
import org.constancia.client.api.PublicApi;
import org.constancia.client.model.Certification;
import org.constancia.client.model.CertificationRequest;
import org.constancia.client.model.Event;
import org.constancia.client.model.EventDeclaration;
import org.constancia.client.model.EventHash;
import org.constancia.client.model.EventList;
import org.constancia.client.model.EventPayload;

/** Walks through the interface with the client that openapi-generator made for Java. */
final class Walk {
    private static final long PATIENCE_MS = 300_000;
    private static final OffsetDateTime WHEN = OffsetDateTime.parse("2026-01-31T08:30:00.123456Z");
    private static final byte[] FILE = "a file\u0000\u00ff\r\n".repeat(2000).getBytes();

    private interface Call {
        Object make() throws ApiException;
    }

    private Walk() {
    }

    private static void expect(boolean holds, String what) {
        if (!holds)
            throw new AssertionError("not so: " + what);
    }

    private static String digest(String algorithm, byte[] content) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance(algorithm).digest(content));
    }

    private static byte[] read(File file) throws Exception {
        byte[] content = Files.readAllBytes(file.toPath());
        Files.delete(file.toPath());
        return content;
    }

    private static ApiClient client(String base, String key) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(base);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        return client;
    }

    private static void register(EventsApi events) throws Exception {
        EventDeclaration declared = new EventDeclaration(new EventPayload().clientRef("json")
            .payload(Map.of("total", "1210.00", "lines", List.of(1, Map.of()))).occurredAt(WHEN));
        var first = events.registerEventWithHttpInfo(declared, null, null);
        expect(first.getStatusCode() == 201 && first.getData().getSequence() == 1, "registered");
        expect(first.getData().getOccurredAt().isEqual(WHEN), "declared time");
        var again = events.registerEventWithHttpInfo(declared, null, null);
        expect(again.getStatusCode() == 200 && again.getData().equals(first.getData()), "replayed");
        expect(again.getHeaders().get("idempotent-replayed").equals(List.of("true")), "marked");

        Path file = Files.createTempFile("walk", ".bin");
        Files.write(file, FILE);
        Event held = events.registerFile("file", file.toFile(), null, null, WHEN);
        Files.delete(file);
        expect(held.getHash().equals(digest("SHA-256", FILE)), "digest of the file");
        File content = events.getEventContent(held.getEventId(), null, null, null, null, null);
        expect(held.getHash().equals(digest("SHA-256", read(content))), "the file as it is held");
        var proof = events.getEvent(first.getData().getEventId(), null, null).getProof();
        expect(proof.getPreviousChainHash().length() == 64, "proof");
    }

    private static void registerDigest(EventsApi events) throws Exception {
        String hash = digest("SHA-512", FILE);
        Event event = events.registerEvent(new EventDeclaration(new EventHash()
            .clientRef("digest").hash(hash).hashAlg(EventHash.HashAlgEnum.SHA_512)), null, null);
        expect(event.getHash().equals(hash), "digest");
        String kept = ApiClient.createDefaultObjectMapper().writeValueAsString(event);
        expect(kept.contains("\"occurred_at\":null") && kept.contains("\"sealed_at\":null"), kept);
    }

    private static void listAll(EventsApi events) throws Exception {
        List<String> references = new ArrayList<>();
        String cursor = null;
        do {
            EventList page = events.listEvents(null, null, null, null, null, null, null, null, null,
                                              null, null, 1, cursor);
            page.getData().forEach(event -> references.add(event.getClientRef()));
            cursor = page.getNextCursor();
            expect(page.getHasMore() == (cursor != null), "cursor with more");
        } while (cursor != null);
        expect(references.equals(List.of("json", "file")), "all events: " + references);
    }

    private static Certification certify(CertificationsApi certifications) throws Exception {
        CertificationRequest wanted = new CertificationRequest().seqFrom(1L).seqTo(2L);
        Certification now = certifications.requestCertification(wanted, null, null, null);
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (now.getStatus() == Certification.StatusEnum.PROCESSING
               && System.currentTimeMillis() < deadline) {
            Thread.sleep(500);
            now = certifications.getCertification(now.getCertificationId(), null, null);
        }
        expect(now.getStatus() == Certification.StatusEnum.COMPLETED, "certified: " + now);
        expect(now.getEventCount() == 2, "count");
        var listed = certifications.listCertifications(null, null, "completed", null, null, null);
        expect(listed.getData().size() == 1, "listed");
        return now;
    }

    private static void download(PublicApi open, Certification certification) throws Exception {
        expect(!certification.getReports().isEmpty(), "reports");
        for (var report : certification.getReports()) {
            URI link = report.getUrl();
            Map<String, String> query = new HashMap<>();
            for (String pair : link.getQuery().split("&"))
                query.put(pair.split("=")[0], pair.split("=")[1]);
            String name = Path.of(link.getPath()).getFileName().toString();
            File content = open.download(certification.getCertificationId(), name,
                                         Long.valueOf(query.get("expires")), query.get("mac"), null, null,
                                         null);
            expect(report.getSha256().equals(digest("SHA-256", read(content))), "digest of " + name);
        }
        expect(!open.listSigners().getData().isEmpty(), "signers");
    }

    private static void verify(PublicApi pages, Certification certification) throws Exception {
        String identifier = certification.getCertificationId();
        var found = pages.verifyCode(certification.getVerificationCode());
        expect(found.getCertificationId().equals(identifier), "verified");
        found = pages.verify(null, certification.getReports().get(0).getSha256());
        expect(found.getCertificationId().equals(identifier), "verified by digest");
        refused(404, "not_found", () -> pages.verifyCode("SVC-2026-AAAA-AAAA"));
    }

    private static void refused(int status, String code, Call call) throws Exception {
        try {
            call.make();
        } catch (ApiException refusal) {
            var told = ApiClient.createDefaultObjectMapper()
                .readValue(refusal.getResponseBody(), org.constancia.client.model.Error.class);
            expect(refusal.getCode() == status, "status " + refusal.getCode());
            expect(told.getCode().equals(code) && !told.getMessage().isEmpty(), code);
            return;
        }
        throw new AssertionError("not refused: " + code);
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient content = client(arguments[0], arguments[1]);
        EventsApi events = new EventsApi(content);
        EventsApi digests = new EventsApi(client(arguments[0], arguments[2]));
        register(events);
        registerDigest(digests);
        listAll(events);
        Certification certification = certify(new CertificationsApi(content));
        download(new PublicApi(content), certification);
        String pages = arguments[0].replaceFirst("/v1$", "");
        verify(new PublicApi(client(pages, arguments[1])), certification);
        refused(404, "not_found", () -> events.getEvent("evt_none", null, null));
        EventsApi later = new EventsApi(client(arguments[3], arguments[1]));
        refused(404, "code_of_a_later_version", () -> later.getEvent("evt_none", null, null));
        refused(409, "client_ref_conflict", () -> digests.registerEvent(
            new EventDeclaration(new EventHash().clientRef("digest").hash("0".repeat(64))
                .hashAlg(EventHash.HashAlgEnum.SHA_256)), null, null));
        expect(new AccountApi(content).getBalance(null, null).getOperational(), "operational");
    }
}
