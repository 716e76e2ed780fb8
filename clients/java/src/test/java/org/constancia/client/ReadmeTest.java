package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.tools.ToolProvider;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The examples of README.md, one after the other as a program, against the service of {@link ServiceTest}. */
class ReadmeTest {
    @TempDir
    Path folder;

    @Test
    void theExamplesWorkWhenPasted() throws Exception {
        Matcher block = Pattern.compile("```java\n(.*?)```",
            Pattern.DOTALL).matcher(Files.readString(Path.of("README.md")));
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
        String path = System.getProperty("java.class.path");
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, "-Xlint:all,-processing,-path",
            "-Werror", "-cp", path, "-d", folder.toString(), source.toString()));
        Path output = folder.resolve("output");
        int status = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
            path + ":" + folder, "Walk").directory(folder.toFile()).redirectErrorStream(true)
            .redirectOutput(output.toFile()).start().waitFor();
        String said = Files.readString(output);
        assertEquals(0, status, said);
        assertTrue(said.startsWith("ORIGIN_NOT_ESTABLISHED []") || said.startsWith("ORIGIN_NOT_ESTABLISHED [Finding"),
            said);
        assertTrue(said.contains("signer_not_established client 2\n") && said.contains("\ntrue\non record since 20"),
            said);
        assertTrue(said.contains("reading-") && said.contains(" 3\n"), said);
        assertTrue(Files.exists(folder.resolve("contract-as-held.txt")));
    }
}
