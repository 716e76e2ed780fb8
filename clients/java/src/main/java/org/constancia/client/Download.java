package org.constancia.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A file that appears under its name whole and checked, or not at all. What arrived before a lost connection stays in
 * the same folder, under a name made of the digest, and a later call adds the rest: one at a time, under a lock. Others
 * meanwhile use a name of their own.
 */
final class Download {
    private static final Pattern RANGE = Pattern.compile("bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})");

    private final Path path;
    private final String expected;
    private final String algorithm;
    private final Progress progress;
    private final long most;
    private final Transport transport;
    private final Function<Map<String, String>, Transport.Request> request;
    private String tag = ""; // of what arrived in this call

    /**
     * expected: the digest, or null. progress: may be null. most: bytes that the file may have. request: makes one with
     * more headers.
     */
    Download(Path path, String expected, String algorithm, Progress progress, long most, Transport transport,
             Function<Map<String, String>, Transport.Request> request) {
        this.path = path.toAbsolutePath();
        this.expected = expected == null ? null : expected.toLowerCase(Locale.ROOT);
        this.algorithm = algorithm;
        this.progress = progress;
        this.most = most;
        this.transport = transport;
        this.request = request;
    }

    /** Returns the digest. */
    String run() {
        Path rest = expected == null ? null : sibling(expected.substring(0, Math.min(32, expected.length())));
        try (Locked claimed = rest == null ? null : Locked.claim(rest)) {
            if (claimed != null)
                return complete(rest, claimed.channel(), true);
            Path own = sibling(UUID.randomUUID().toString().replace("-", ""));
            try (FileChannel channel = FileChannel.open(own, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ,
                                                        StandardOpenOption.WRITE)) {
                return complete(own, channel, false);
            }
        } catch (ClosedByInterruptException error) {
            throw new CallInterruptedException();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private Path sibling(String mark) {
        return path.resolveSibling("." + path.getFileName() + "." + mark + ".part");
    }

    private String complete(Path name, FileChannel part, boolean isResumable) throws IOException {
        try {
            String found = fetchRest(part);
            part.force(true);
            if (!Locked.IS_POSIX)
                part.close(); // Windows renames no file that is open
            Files.move(name, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            return found;
        } catch (IOException | RuntimeException | Error error) {
            if (!isResumable || part.isOpen() && part.size() == 0)
                Files.deleteIfExists(name);
            throw error;
        }
    }

    private String fetchRest(FileChannel part) throws IOException {
        boolean isLeftOver = part.size() > 0;
        if (isLeftOver && digest(part).equals(expected))
            return expected;
        try {
            return fetch(part);
        } catch (DigestMismatchException error) {
            part.truncate(0);
            // What an earlier call left may be spoilt: it is fetched again from the beginning.
            if (!isLeftOver)
                throw error;
        } catch (ApiException error) {
            part.truncate(0);
            if (!isLeftOver || error.status() != 416)
                throw error;
        }
        return fetch(part);
    }

    private String fetch(FileChannel part) throws IOException {
        transport.perform(() -> prepare(part), answer -> receive(answer, part));
        String found = digest(part);
        if (expected != null && !expected.equals(found))
            throw new DigestMismatchException(path.getFileName().toString(), expected, found);
        return found;
    }

    private Transport.Request prepare(FileChannel part) {
        long size;
        try {
            size = part.size();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        // Without a digest only the tag shows that the rest is of the same file.
        if (size == 0 || tag.isEmpty() && expected == null)
            return request.apply(Map.of());
        String range = "bytes=" + size + "-";
        return request.apply(tag.isEmpty() ? Map.of("Range", range) : Map.of("Range", range, "If-Range", tag));
    }

    private Void receive(Transport.Answer answer, FileChannel part) {
        String told = answer.header("ETag").startsWith("\"") ? answer.header("ETag") : ""; // a weak one is for no range
        long at = 0;
        long total = answer.length();
        if (answer.status() == 206) {
            Matcher range = RANGE.matcher(answer.header("Content-Range"));
            if (!range.matches())
                throw new UnexpectedAnswerException("a range arrived that does not say which, and of how much");
            at = Long.parseLong(range.group(1));
            total = Long.parseLong(range.group(2));
        }
        if (total > most)
            throw tooLong("it has " + total + " bytes");
        try {
            if (at > part.size())
                throw new UnexpectedAnswerException("another range arrived than was asked for");
            if (at > 0 && expected == null && (told.isEmpty() || !told.equals(tag)))
                throw new UnexpectedAnswerException("a range of another file arrived than was asked for");
            tag = told;
            part.truncate(at);
            copy(answer, part, at, total);
        } catch (ClosedByInterruptException error) {
            throw new CallInterruptedException();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return null;
    }

    private void copy(Transport.Answer answer, FileChannel part, long begin, long total) throws IOException {
        byte[] chunk = new byte[65536];
        long at = begin;
        for (int size; (size = answer.read(chunk)) >= 0;) {
            if (total >= 0 && at + size > total)
                throw new UnexpectedAnswerException("the answer is longer than the file");
            if (at + size > most) {
                part.truncate(0);
                throw tooLong("more arrived, without a length");
            }
            ByteBuffer left = ByteBuffer.wrap(chunk, 0, size);
            while (left.hasRemaining())
                at += part.write(left, at);
            if (progress != null)
                progress.at(at, total);
        }
        if (total >= 0 && at < total)
            throw new ConnectionFailedException(path.getFileName() + ": the answer ended before the file did", true);
    }

    private UnexpectedAnswerException tooLong(String what) {
        return new UnexpectedAnswerException(path.getFileName() + ": " + what + ", and " + most
            + " bytes are the most that it may have (as the service has on record for it, or downloadMax)");
    }

    private String digest(FileChannel part) throws IOException {
        part.position(0);
        MessageDigest running = Digests.running(algorithm);
        InputStream source = Channels.newInputStream(part); // not closed: the channel is still needed
        byte[] chunk = new byte[65536];
        for (int size; (size = source.read(chunk)) >= 0;)
            running.update(chunk, 0, size);
        return Digests.hex(running);
    }
}
