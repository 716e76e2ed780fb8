package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Receipts that keep themselves. */
@Timeout(120)
class ReceiptFileTest {
    private static final String TEXT = "ñ\\n".repeat(20);

    @TempDir
    Path folder;

    static Receipt receipt(String id) {
        return Receipt.of(Json.bytes(Map.of("event_id", id, "client_ref", "r", "sequence", 1, "text", TEXT)), false);
    }

    private static List<String> ids(ReceiptFile file) throws IOException {
        List<String> found = new ArrayList<>();
        for (Path one : file.files()) {
            for (String line : Files.readAllLines(one)) {
                if (!line.isBlank())
                    found.add(Json.MAPPER.readTree(line).get("event_id").asText());
            }
        }
        return found;
    }

    @Test
    void eachReceiptIsALineOfTheUserAlone() throws Exception {
        Path path = folder.resolve("receipts.ndjson");
        ReceiptFile file = new ReceiptFile(path);
        assertEquals(List.of(), file.files());
        file.write(List.of(receipt("a"), receipt("b")));
        file.write(List.of(receipt("c")));
        file.write(List.of());
        assertEquals(List.of("a", "b", "c"), ids(file));
        assertEquals(receipt("c").toJson(), Files.readAllLines(path).get(2));
        assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
    }

    @Test
    void aFileIsRotatedAndNoneIsOverwritten() throws Exception {
        Path path = folder.resolve("receipts.ndjson");
        int size = receipt("0").toJson().getBytes(StandardCharsets.UTF_8).length + 1;
        ReceiptFile file = new ReceiptFile(path, 3L * size);
        for (int n = 0; n < 9; n++)
            file.write(List.of(receipt(Integer.toString(n))));
        assertEquals(List.of("0", "1", "2", "3", "4", "5", "6", "7", "8"), ids(file));
        assertEquals(3, file.files().size());
        Files.writeString(folder.resolve("receipts.ndjson.10"), "kept");
        file.write(List.of(receipt("9"), receipt("10")));
        assertTrue(Files.exists(folder.resolve("receipts.ndjson.11")));
        assertEquals("kept", Files.readString(folder.resolve("receipts.ndjson.10")));
        new ReceiptFile(path, 0).write(IntStream.range(0, 9).mapToObj(n -> receipt("x" + n)).toList());
        assertEquals(5, file.files().size());
        assertThrows(IllegalArgumentException.class, () -> new ReceiptFile(path, -1));
    }

    @Test
    void aRotationThatACrashInterruptedIsEnded() throws Exception {
        Path path = folder.resolve("receipts.ndjson");
        ReceiptFile file = new ReceiptFile(path);
        file.write(List.of(receipt("a")));
        Files.createLink(folder.resolve("receipts.ndjson.1"), path);
        file.write(List.of(receipt("b")));
        assertEquals(List.of("a", "b"), ids(file));
        assertEquals(1, Files.readAllLines(path).size());
    }

    @Test
    void aLineThatACrashToreIsRepaired() throws Exception {
        Path path = folder.resolve("receipts.ndjson");
        ReceiptFile file = new ReceiptFile(path);
        file.write(List.of(receipt("a")));
        Files.writeString(path, receipt("b").toJson(), StandardOpenOption.APPEND); // its end alone is missing
        file.write(List.of(receipt("c")));
        Files.writeString(path, receipt("d").toJson().substring(0, 30), StandardOpenOption.APPEND);
        file.write(List.of(receipt("e")));
        assertEquals(List.of("a", "b", "c", "e"), ids(file));
        assertEquals(receipt("d").toJson().substring(0, 30) + "\n",
            Files.readString(folder.resolve("receipts.ndjson.torn")));
        Path other = Files.write(folder.resolve("other"), new byte[2 << 20]);
        assertThrows(IOException.class, () -> new ReceiptFile(other).write(List.of(receipt("f"))));
        assertEquals(2 << 20, Files.size(other));
    }

    @Test
    void threadsAndProcessesShareAFile() throws Exception {
        Path path = folder.resolve("receipts.ndjson");
        List<Process> processes = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            processes.add(new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("java.class.path"), Writer.class.getName(), path.toString(), "p"
                    + number).inheritIO()
                .start());
        }
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 3; number++) {
            String name = "t" + number;
            threads.add(new Thread(() -> Writer.write(path, name)));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads)
            thread.join();
        for (Process process : processes)
            assertEquals(0, process.waitFor());
        List<String> found = ids(new ReceiptFile(path));
        assertEquals(5 * Writer.COUNT, found.size());
        assertEquals(5 * Writer.COUNT, new TreeSet<>(found).size());
        assertTrue(new ReceiptFile(path).files().size() > 3);
    }

    /** Writes receipts, in a process of its own or a thread. */
    static final class Writer {
        static final int COUNT = 40;

        private Writer() {
        }

        static void write(Path path, String name) {
            ReceiptFile file = new ReceiptFile(path, 4000);
            for (int n = 0; n < COUNT; n++) {
                try {
                    file.write(List.of(receipt(name + "-" + n)));
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            }
        }

        public static void main(String[] arguments) {
            write(Path.of(arguments[0]), arguments[1]);
        }
    }

    @Test
    void whatIsNotKeptIsInTheError() throws Exception {
        String event = "{\"event_id\":\"e\",\"client_ref\":\"r\",\"sequence\":1,\"hash\":\"h\"}";
        try (Scripted server = new Scripted(Scripted.say(201, event), Scripted.say(201, event));
             Client client = server.builder().receipts(all -> {
                 throw new IOException("no space");
             }).build(); Client missing = server.builder().receipts(folder.resolve("none/receipts")).build()) {
            for (Client one : List.of(client, missing)) {
                ReceiptNotKeptException error = assertThrows(ReceiptNotKeptException.class, () ->
                    one.register("r", Map.of()));
                assertEquals(event, error.receipts().get(0).toJson());
            }
        }
    }
}
