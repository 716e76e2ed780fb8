package org.constancia.client;

import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** multipart/form-data of some texts and a file, whose SHA-256 is computed while it is sent. */
final class Form {
    private final String boundary = UUID.randomUUID().toString().replace("-", "");
    private final Body body;
    private volatile String sha256 = "";

    Form(Map<String, String> fields, Path file, String name) {
        if (name.isEmpty() || name.chars().anyMatch(Character::isISOControl))
            throw new IllegalArgumentException("a file's name is not empty and has no control characters");
        StringBuilder head = new StringBuilder();
        fields.forEach((field, value) -> head.append("--").append(boundary)
            .append("\r\nContent-Disposition: form-data; name=\"").append(field).append("\"\r\n\r\n")
            .append(value).append("\r\n"));
        head.append("--").append(boundary).append("\r\nContent-Disposition: form-data; name=\"file\"; filename=\"")
            .append(name.replace("\"", "%22")).append("\"\r\nContent-Type: application/octet-stream\r\n\r\n");
        byte[] before = head.toString().getBytes(StandardCharsets.UTF_8);
        byte[] after = ("\r\n--" + boundary + "--\r\n").getBytes(StandardCharsets.UTF_8);
        try {
            long size = Files.size(file);
            body = new Body(before.length + size + after.length, () -> new SequenceInputStream(
                Collections.enumeration(List.of(new ByteArrayInputStream(before),
                    new Hashed(Files.newInputStream(file), size), new ByteArrayInputStream(after)))));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    Body body() {
        return body;
    }

    String contentType() {
        return "multipart/form-data; boundary=" + boundary;
    }

    /** Returns the SHA-256 of the file as it was sent last. */
    String sha256() {
        return sha256;
    }

    private final class Hashed extends FilterInputStream {
        private final MessageDigest running = Digests.running("sha-256");
        private long left;
        private boolean isHashed;

        Hashed(InputStream file, long size) {
            super(file);
            left = size;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
        }

        @Override
        public int read(byte[] into, int offset, int size) throws IOException {
            if (left == 0) {
                end();
                return -1;
            }
            int count = super.read(into, offset, (int) Math.min(size, left));
            if (count < 0)
                throw new IOException("the file became shorter while it was sent");
            running.update(into, offset, count);
            left -= count;
            return count;
        }

        private void end() {
            if (!isHashed)
                sha256 = Digests.hex(running);
            isHashed = true;
        }
    }
}
