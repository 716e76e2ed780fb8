package org.constancia.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * One receipt a line, each on the disk before the call that registered the event returns.
 *
 * <p>Threads and Java processes may share the file: each line is one write, under a lock. A line that a crash tore is
 * moved to {@code ….torn} by the next write. Before the file exceeds the size of rotation it is renamed to
 * {@code ….1},
 * then {@code ….2} and so on; the highest number is the newest, and no file is ever overwritten or removed. Files are
 * readable by the user alone. On Windows the file is not rotated.
 */
public final class ReceiptFile implements ReceiptSink {
    /** A file of this size is one that {@code constancia verify --receipt} takes. */
    public static final long ROTATE_BYTES = 4 << 20;
    private static final int TORN_MAX = 1 << 20;

    private final Path path;
    private final long rotateBytes;

    /**
     * Names a file, which need not exist.
     *
     * @param path its path
     */
    public ReceiptFile(Path path) {
        this(path, ROTATE_BYTES);
    }

    /**
     * Names a file, which need not exist.
     *
     * @param path its path
     * @param rotateBytes the size before which it is rotated; 0: never
     */
    public ReceiptFile(Path path, long rotateBytes) {
        if (rotateBytes < 0)
            throw new IllegalArgumentException("rotateBytes is 0 (no rotation) or more");
        this.path = path.toAbsolutePath();
        this.rotateBytes = rotateBytes;
    }

    @Override
    public void write(List<Receipt> receipts) throws IOException {
        StringBuilder lines = new StringBuilder();
        receipts.forEach(one -> lines.append(one.toJson()).append('\n'));
        if (receipts.isEmpty())
            return;
        byte[] bytes = lines.toString().getBytes(StandardCharsets.UTF_8);
        // POSIX ends the locks of a process with any close of the file, such as a reader's. Only this class opens this one.
        Path lock = path.resolveSibling(path.getFileName() + ".lock");
        try (Locked alone = Locked.waitFor(lock); Locked file = opened()) {
            append(file, bytes);
        }
    }

    /**
     * Returns the files that exist, the oldest first.
     *
     * @return those that it was rotated to, and the current one
     * @throws IOException if the folder cannot be read
     */
    public List<Path> files() throws IOException {
        Pattern rotated = Pattern.compile(Pattern.quote(path.getFileName().toString()) + "\\.[1-9][0-9]{0,17}");
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> folder = Files.newDirectoryStream(path.getParent())) {
            for (Path one : folder) {
                if (rotated.matcher(one.getFileName().toString()).matches())
                    found.add(one);
            }
        } catch (NoSuchFileException error) {
            return found;
        }
        found.sort(Comparator.comparingLong(ReceiptFile::number));
        if (Files.exists(path))
            found.add(path);
        return found;
    }

    /** Returns the number of a rotated file. */
    private static long number(Path rotated) {
        String name = rotated.getFileName().toString();
        return Long.parseLong(name.substring(name.lastIndexOf('.') + 1));
    }

    /** Opens the file under its lock, repaired. */
    private Locked opened() throws IOException {
        while (true) {
            Locked file = Locked.waitFor(path);
            try {
                if (!endRotation()) {
                    if (file.isNew())
                        syncFolder();
                    repair(file.channel());
                    return file;
                }
            } catch (IOException | RuntimeException error) {
                file.close();
                throw error;
            }
            file.close();
        }
    }

    /** Ends a rotation that a crash interrupted after its link; returns whether there was one. */
    private boolean endRotation() throws IOException {
        if (!Locked.IS_POSIX || ((Number) Files.getAttribute(path, "unix:nlink")).intValue() == 1)
            return false;
        List<Path> all = files();
        if (all.size() < 2 || !Files.isSameFile(all.get(all.size() - 2), path))
            return false;
        Files.delete(path);
        syncFolder();
        return true;
    }

    private void append(Locked file, byte[] lines) throws IOException {
        FileChannel channel = file.channel();
        long size = channel.size();
        if (Locked.IS_POSIX && rotateBytes > 0 && size > 0 && size + lines.length > rotateBytes) {
            rotate();
            try (Locked fresh = opened()) {
                append(fresh, lines);
            }
            return;
        }
        try {
            writeAll(channel, lines, size);
            channel.force(true);
        } catch (IOException | RuntimeException error) {
            try {
                channel.truncate(size);
            } catch (IOException second) {
                error.addSuppressed(second);
            }
            throw error;
        }
    }

    private static void writeAll(FileChannel channel, byte[] bytes, long at) throws IOException {
        ByteBuffer left = ByteBuffer.wrap(bytes);
        while (left.hasRemaining())
            channel.write(left, at + left.position());
    }

    private void rotate() throws IOException {
        List<Path> all = files();
        long number = all.size() < 2 ? 1 : number(all.get(all.size() - 2)) + 1;
        while (true) {
            Path name = path.resolveSibling(path.getFileName() + "." + number);
            try {
                Files.createLink(name, path); // unlike a rename it replaces nothing
            } catch (FileAlreadyExistsException error) {
                number++;
                continue;
            } catch (IOException | UnsupportedOperationException error) { // a file system without links
                if (Files.exists(name, LinkOption.NOFOLLOW_LINKS)) {
                    number++;
                    continue;
                }
                Files.move(path, name);
                break;
            }
            syncFolder();
            Files.delete(path);
            break;
        }
        syncFolder();
    }

    /** Completes a last line without its end, which a crash left, or moves it away. */
    private void repair(FileChannel channel) throws IOException {
        long size = channel.size();
        int length = (int) Math.min(size, TORN_MAX);
        if (size == 0 || read(channel, size - 1, 1)[0] == '\n')
            return;
        byte[] tail = read(channel, size - length, length);
        int begin = tail.length;
        while (begin > 0 && tail[begin - 1] != '\n')
            begin--;
        byte[] torn = Arrays.copyOfRange(tail, begin, tail.length);
        if (torn.length == TORN_MAX)
            throw new IOException(path + " is not a file of receipts");
        if (isReceipt(torn)) {
            writeAll(channel, new byte[] {'\n'}, size);
        } else {
            moveAway(torn);
            channel.truncate(size - torn.length);
        }
        channel.force(true);
        syncFolder();
    }

    private void moveAway(byte[] torn) throws IOException {
        try (Locked file = Locked.waitFor(path.resolveSibling(path.getFileName() + ".torn"))) {
            byte[] line = Arrays.copyOf(torn, torn.length + 1);
            line[torn.length] = '\n';
            writeAll(file.channel(), line, file.channel().size());
            file.channel().force(true);
        }
    }

    private static byte[] read(FileChannel channel, long at, int size) throws IOException {
        ByteBuffer into = ByteBuffer.allocate(size);
        while (into.hasRemaining()) {
            if (channel.read(into, at + into.position()) < 0)
                throw new IOException("the file became shorter");
        }
        return into.array();
    }

    private static boolean isReceipt(byte[] line) {
        try {
            JsonNode value = Json.MAPPER.readTree(line);
            return value != null && value.isObject() && value.has("event_id");
        } catch (IOException error) {
            return false;
        }
    }

    private void syncFolder() throws IOException {
        if (!Locked.IS_POSIX)
            return; // Windows opens no folder
        try (FileChannel folder = FileChannel.open(path.getParent(), StandardOpenOption.READ)) {
            folder.force(true);
        }
    }

    @Override
    public String toString() {
        return "ReceiptFile[" + path + "]";
    }
}
