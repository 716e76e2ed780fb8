package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.tools.ToolProvider;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.ThrowingConsumer;
import org.junit.jupiter.api.io.TempDir;

/** The examples of README.md and docs/examples/orders, as programs against the service of {@link ServiceTest}. */
class ReadmeTest {
    private static final String CLASSES = System.getProperty("java.class.path");

    @TempDir
    Path folder;

    @Test
    void theExamplesWorkWhenPasted() throws Exception {
        Matcher block = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL)
            .matcher(Files.readString(Path.of("README.md")));
        List<String> imports = new ArrayList<>();
        StringBuilder body = new StringBuilder();
        List<String> first = null;
        while (block.find()) {
            List<String> lines = block.group(1).lines().toList();
            if (block.group(1).contains("class Receiver"))
                continue; // a program of its own
            first = first == null ? lines : first;
            for (String line : lines) {
                if (line.startsWith("import "))
                    imports.add(line);
                else
                    body.append(line).append('\n');
            }
        }
        assertTrue(first != null && first.size() <= 30, "from nothing to a check in at most 30 lines");
        Path source = Files.writeString(folder.resolve("Walk.java"), String.join("\n", imports)
            + "\nclass Walk {\npublic static void main(String[] arguments) throws Exception {\n" + body + "}\n}\n");
        compile(source);
        String said = run("Walk");
        assertTrue(said.startsWith("ORIGIN_NOT_ESTABLISHED ["), said);
        assertTrue(said.contains("signer_not_established client 2\n") && said.contains("\ntrue\non record since 20"),
            said);
        assertTrue(said.contains("reading-") && said.contains(" 3\n"), said);
        assertTrue(Files.exists(folder.resolve("contract-as-held.txt")));
    }

    private void compile(Path source) {
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, "-Xlint:all,-processing,-path",
            "-Werror", "-cp", CLASSES, "-d", folder.toString(), source.toString()));
    }

    /** Runs a program, which has the service's program in its path, and returns what it printed. */
    private String run(String... words) throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        List<String> command = new ArrayList<>(List.of(java, "-cp", CLASSES + ":" + folder));
        command.addAll(List.of(words));
        Path output = folder.resolve("output");
        ProcessBuilder process = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true)
            .redirectOutput(output.toFile());
        Path programs = Path.of(System.getenv("CONSTANCIA_PROGRAM")).getParent();
        process.environment().merge("PATH", programs.toString(), (path, first) -> first + ":" + path);
        int status = process.start().waitFor();
        assertEquals(0, status, Files.readString(output));
        return Files.readString(output);
    }

    private static int post(String address, Map<String, String> headers, byte[] body) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body));
        headers.forEach(request::header);
        return HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.discarding()).statusCode();
    }

    /** Starts the receiver and posts what a test chooses: `each` gets its address. */
    private List<String> received(Path file, ThrowingConsumer<String> each) throws Throwable {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        ProcessBuilder command = new ProcessBuilder(java.toString(), "-cp", CLASSES + ":" + folder, "Receiver", "0",
            file.toString()).redirectError(ProcessBuilder.Redirect.INHERIT);
        command.environment().put("WEBHOOK_SECRET", "whsec_example");
        Process process = command.start();
        try (BufferedReader output = process.inputReader()) {
            String listening = output.readLine();
            assertTrue(listening.startsWith("listening on port "), listening);
            each.accept("http://127.0.0.1:" + listening.substring("listening on port ".length()) + "/hook");
            process.toHandle().destroy(); // unlike Process.destroy, leaves its output open
            return output.lines().toList();
        } finally {
            process.destroyForcibly();
        }
    }

    @Test
    void theReceiverProcessesANoticeOnceAlsoAfterARestart() throws Throwable {
        Matcher block = Pattern.compile("```java\n([^`]*class Receiver .*?)```", Pattern.DOTALL)
            .matcher(Files.readString(Path.of("README.md")));
        assertTrue(block.find());
        compile(Files.writeString(folder.resolve("Receiver.java"), block.group(1)));
        Path file = folder.resolve("processed");
        Webhooks webhooks = Webhooks.of("whsec_example");
        Webhooks.Signed low = webhooks.signNotice("balance.low", Map.of("threshold", 10, "balance", 3));
        Webhooks.Signed other = webhooks.signNotice("later.type", Map.of());
        Webhooks.Signed forged = Webhooks.of("whsec_other").signNotice("balance.low", Map.of("balance", 0));
        assertEquals(List.of("balance 3", "later.type"), received(file, address -> {
            assertEquals(204, post(address, low.headers(), low.body()));
            assertEquals(204, post(address, low.headers(), low.body()));
            assertEquals(400, post(address, forged.headers(), forged.body()));
            assertEquals(400, post(address, Map.of(), low.body()));
            assertEquals(413, post(address, low.headers(), new byte[65_537]));
            assertEquals(204, post(address, other.headers(), other.body()));
        }));
        assertEquals(2, Files.readAllLines(file).size());
        assertEquals(List.of(), received(file, address ->
            assertEquals(204, post(address, low.headers(), low.body()))));
    }

    @Test
    void theTableOfModelsHasAllGetters() throws Exception {
        Matcher row = Pattern.compile("(?m)^\\| `(\\w+)` \\| .* \\| (`get.*) \\|$")
            .matcher(Files.readString(Path.of("README.md")));
        int rows = 0;
        for (; row.find(); rows++) {
            TreeSet<String> getters = new TreeSet<>();
            for (Method method : Class.forName("org.constancia.client.model." + row.group(1)).getDeclaredMethods())
                if (method.getName().startsWith("get") && Modifier.isPublic(method.getModifiers()))
                    getters.add("`" + method.getName() + "`");
            assertEquals(getters, new TreeSet<>(List.of(row.group(2).split(", "))), row.group(1));
        }
        assertEquals(9, rows);
    }

    @Test
    void theExampleDeclaresOrdersAndARepetitionDoesNothingTwice() throws Exception {
        compile(Path.of(System.getenv("CONSTANCIA_CORPUS")).resolve("../../../../docs/examples/orders/Orders.java"));
        String name = UUID.randomUUID() + ".ndjson";
        StringBuilder orders = new StringBuilder();
        for (int number = 0; number < 23; number++)
            orders.append("{\"number\":\"").append(name).append(number).append("\",\"total\":\"49.90\"}\n");
        Files.writeString(folder.resolve(name), orders);
        Files.writeString(folder.resolve("contract.txt"), "We deliver by Friday. ".repeat(5000));
        Files.createDirectory(folder.resolve("evidence"));
        for (int receipts : new int[] {24, 48}) {
            String said = run("Orders", name, "contract.txt", "evidence", System.getenv("CONSTANCIA_TRUST"));
            assertEquals("valid " + receipts + " receipts []\n", said);
        }
    }

    @Test
    void theVersionAndTheLicenceAreTheSameEverywhere() throws Exception {
        String own = "<artifactId>constancia-client</artifactId>\n%s<version>" + Client.VERSION + "</version>";
        assertTrue(Files.readString(Path.of("pom.xml")).contains(String.format(own, "  ")));
        assertTrue(Files.readString(Path.of("README.md")).contains(String.format(own, "  ")));
        assertTrue(Files.readString(Path.of("CHANGELOG.md")).contains("## " + Client.VERSION));
        Path root = Path.of(System.getenv("CONSTANCIA_CORPUS")).resolve("../../../..");
        assertEquals(Files.readString(root.resolve("LICENSE")), Files.readString(Path.of("LICENSE")));
        assertTrue(Files.readString(root.resolve("tests/conformance/clients/official/pom.xml"))
            .contains("<version>" + Client.VERSION + "</version>"));
    }
}
