package org.constancia.client.evidence;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

import org.constancia.client.CallInterruptedException;

/** The program {@code constancia verify}, which judges the same files. */
final class Program {
    private static final int ERRORS_MAX = 500;
    private static final int OUTPUT_MAX = 64 << 20;

    private final Path program;
    private final List<Path> trust;
    private final List<Path> signerLists;
    private final List<String> signers;
    private final Instant at;

    /** What it printed and how it ended. `said` is null unless it is JSON. */
    record Answer(JsonNode said, int status, String errors) { }

    Program(Path program, List<Path> trust, List<Path> signerLists, List<String> signers, Instant at) {
        this.program = program;
        this.trust = trust;
        this.signerLists = signerLists;
        this.signers = signers;
        this.at = at;
    }

    /** Returns the path of a program, null if it is not installed. */
    static Path find(Path name) {
        if (name.getNameCount() > 1 || name.isAbsolute())
            return Files.isExecutable(name) && Files.isRegularFile(name) ? name.toAbsolutePath() : null;
        String folders = System.getenv("PATH");
        for (String folder : folders == null ? new String[0] : folders.split(File.pathSeparator)) {
            Path found = Path.of(folder).resolve(name);
            if (!folder.isEmpty() && Files.isExecutable(found) && Files.isRegularFile(found))
                return found.toAbsolutePath();
        }
        return null;
    }

    Path path() {
        return program;
    }

    Answer run(Path archive, List<Path> parts) throws IOException {
        Path folder = Files.createTempDirectory("constancia-verify-");
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        try {
            Process process = new ProcessBuilder(command(archive, parts, folder)).redirectOutput(output.toFile())
                .redirectError(errors.toFile()).start();
            process.getOutputStream().close();
            int status = await(process);
            return new Answer(parsed(output), status, text(errors));
        } finally {
            for (Path one : List.of(output, errors, folder.resolve("roots.pem")))
                Files.deleteIfExists(one);
            Files.delete(folder);
        }
    }

    private static int await(Process process) {
        try {
            return process.waitFor();
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
            throw new CallInterruptedException();
        }
    }

    private List<String> command(Path archive, List<Path> parts, Path folder) throws IOException {
        List<String> words = new ArrayList<>(List.of(program.toString(), "verify",
            archive.toAbsolutePath().toString()));
        parts.forEach(one -> words.add(one.toAbsolutePath().toString()));
        words.addAll(List.of("--json", "--config", ""));
        if (!trust.isEmpty())
            words.addAll(List.of("--trust", joined(folder).toString()));
        signerLists.forEach(one -> words.addAll(List.of("--signers", one.toString())));
        signers.forEach(one -> words.addAll(List.of("--signer", one)));
        if (at != null)
            words.addAll(List.of("--at", at.toString()));
        return words;
    }

    /** Returns one PEM file that holds all roots. */
    private Path joined(Path folder) throws IOException {
        if (trust.size() == 1)
            return trust.get(0).toAbsolutePath();
        Path all = folder.resolve("roots.pem");
        for (Path one : trust) {
            Files.write(all, Files.readAllBytes(one), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            Files.writeString(all, "\n", StandardOpenOption.APPEND);
        }
        return all;
    }

    private static JsonNode parsed(Path output) throws IOException {
        if (Files.size(output) > OUTPUT_MAX)
            return null;
        try {
            return Forms.MAPPER.readTree(Files.readAllBytes(output));
        } catch (JsonProcessingException error) {
            return null;
        }
    }

    private static String text(Path errors) throws IOException {
        try (InputStream file = Files.newInputStream(errors)) {
            return new String(file.readNBytes(ERRORS_MAX), StandardCharsets.UTF_8).strip();
        }
    }
}
