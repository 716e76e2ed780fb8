import java.nio.file.*;
import java.time.Duration;
import java.util.*;

import com.fasterxml.jackson.databind.*;
import org.constancia.client.*;
import org.constancia.client.evidence.*;

/**
 * Declares orders and a contract, has them certified, and verifies the evidence with the receipts.
 *
 * <p>usage: java Orders ORDERS.ndjson CONTRACT FOLDER ROOTS.pem. CONSTANCIA_URL and CONSTANCIA_KEY: the interface and a
 * live key. Run it again after any failure: nothing is done twice.
 */
final class Orders {
    public static void main(String[] words) throws Exception {
        Path orders = Path.of(words[0]), folder = Path.of(words[2]), receipts = folder.resolve("receipts.ndjson");
        List<Declaration> declared = new ArrayList<>();
        for (String line : Files.readAllLines(orders)) {
            JsonNode order = new ObjectMapper().readTree(line);
            declared.add(Declaration.of("order " + order.get("number"), order));
        }
        ArchiveCheck check;
        try (Client client = Client.builder(System.getenv("CONSTANCIA_URL")).key(System.getenv("CONSTANCIA_KEY"))
                .receipts(receipts).build()) {
            List<Receipt> events = new ArrayList<>();
            events.add(client.registerFile("contract of " + orders.getFileName(), Path.of(words[1])));
            client.registerMany(declared).map(Outcome::result).forEach(events::add);
            var range = events.stream().mapToLong(Receipt::getSequence).summaryStatistics();
            var asked = client.certify(Range.ofSequences(range.getMin(), range.getMax()),
                "orders-" + range.getMin() + "-" + range.getMax());
            List<Path> files = client.save(client.await(asked, Duration.ofMinutes(10)), folder);
            List<Path> archives = files.stream().filter(file -> file.toString().endsWith(".zip")).toList();
            check = Archives.of(archives.get(0)).parts(archives.subList(1, archives.size())).receipts(receipts)
                .trust(Path.of(words[3])).verify();
        }
        System.out.println(check.code() + " " + check.receipts().compared() + " receipts " + check.findings());
        System.exit(check.isValid() ? 0 : 1);
    }
}
