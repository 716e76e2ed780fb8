package org.constancia.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Digests in hexadecimal, for {@link Client#registerDigest}. */
public final class Digests {
    private Digests() {
    }

    /**
     * Returns the SHA-256 of a file, which is read in chunks.
     *
     * @param file its path
     * @return 64 hexadecimal digits
     */
    public static String of(Path file) {
        return of(file, "sha-256");
    }

    /**
     * Returns the digest of a file, which is read in chunks.
     *
     * @param file its path
     * @param algorithm {@code sha-256} or {@code sha-512}
     * @return hexadecimal digits
     */
    public static String of(Path file, String algorithm) {
        MessageDigest running = running(algorithm);
        try (InputStream source = Files.newInputStream(file)) {
            byte[] chunk = new byte[65536];
            for (int size; (size = source.read(chunk)) >= 0;)
                running.update(chunk, 0, size);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return hex(running);
    }

    /**
     * Returns the digest of bytes.
     *
     * @param content the bytes
     * @param algorithm {@code sha-256} or {@code sha-512}
     * @return hexadecimal digits
     */
    public static String of(byte[] content, String algorithm) {
        MessageDigest running = running(algorithm);
        running.update(content);
        return hex(running);
    }

    static String hex(MessageDigest running) {
        return HexFormat.of().formatHex(running.digest());
    }

    static MessageDigest running(String algorithm) {
        if (!algorithm.equals("sha-256") && !algorithm.equals("sha-512"))
            throw new IllegalArgumentException("the algorithm is sha-256 or sha-512, not " + algorithm);
        try {
            return MessageDigest.getInstance(algorithm.toUpperCase(java.util.Locale.ROOT));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
