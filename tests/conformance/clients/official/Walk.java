import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.constancia.client.ApiException;
import org.constancia.client.CertificationState;
import org.constancia.client.Client;
import org.constancia.client.Digests;
import org.constancia.client.Query;
import org.constancia.client.Range;
import org.constancia.client.Receipt;
import org.constancia.client.evidence.ArchiveCheck;
import org.constancia.client.evidence.Archives;
import org.constancia.client.model.Event;

/** Walks through the interface with our own client: Walk BASE_URL CONTENT_KEY DIGEST_KEY FOLDER. */
final class Walk {
    private Walk() {
    }

    private static void expect(boolean holds, String what) {
        if (!holds)
            throw new AssertionError("not so: " + what);
    }

    public static void main(String[] words) throws Exception {
        Path folder = Files.createDirectories(Path.of(words[3]));
        Path receipts = folder.resolve("receipts.ndjson");
        Path source = Files.writeString(folder.resolve("source.txt"), "I declare.\n");
        Receipt first;
        Receipt file;
        try (Client client = Client.builder(words[0]).key(words[1]).receipts(receipts).build()) {
            first = client.register("json", Map.of("total", "49.90"));
            Receipt again = client.register("json", Map.of("total", "49.90"));
            expect(again.isReplayed() && again.getEventId().equals(first.getEventId()), "replayed");
            file = client.registerFile("file", source);
            expect(file.getHash().equals(Digests.of(source)), "digest of the file");
            List<String> listed = client.events(Query.ALL.limit(1)).stream().map(Event::getClientRef).toList();
            expect(listed.equals(List.of("json", "file")), "all events: " + listed);
            CertificationState done = client.await(client.certify(Range.ofSequences(1, 2)), Duration.ofMinutes(5));
            List<Path> files = client.save(done, folder.resolve("certification"));
            Path report = files.stream().filter(one -> one.toString().endsWith(".pdf")).findFirst().orElseThrow();
            expect(client.verifyFile(report).getVerification().getValid(), "the report");
            Path archive = files.stream().filter(one -> one.toString().endsWith("evidence.zip")).findFirst().orElseThrow();
            ArchiveCheck check = Archives.of(archive).receipts(receipts).withoutProgram().verify();
            expect(check.verdict() == ArchiveCheck.Verdict.ORIGIN_NOT_ESTABLISHED && check.receipts().compared() == 3,
                check.findings().toString());
        }
        try (Client client = Client.builder(words[0]).key(words[2]).build()) {
            client.registerDigest("digest", file.getHash());
            client.registerDigest("digest", first.getHash());
            throw new AssertionError("a conflict is refused");
        } catch (ApiException.Conflict refused) {
            expect(refused.code().equals("client_ref_conflict"), refused.code());
        }
    }
}
