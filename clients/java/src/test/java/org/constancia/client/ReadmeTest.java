package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.tools.ToolProvider;

import org.junit.jupiter.api.Test;
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
