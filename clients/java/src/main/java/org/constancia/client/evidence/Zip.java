package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.zip.CRC32;

/**
 * A ZIP file of the format's shape, in which every byte has its place: other shapes are Invalid. The directory is read
 * at once, contents are read when they are asked for.
 */
final class Zip {
    static final int CHUNK = 65536;
    static final int LINES_MAX = 100000;
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._/-]{1,100}");

    private final FileChannel file;
    private final String where;
    private final long size;
    private final Map<String, Entry> entries = new LinkedHashMap<>();
    private final Map<String, String> digests = new HashMap<>();

    /** A file inside. */
    record Entry(String name, long at, long size, int crc) { }

    Zip(FileChannel file, String where, int entriesMax) throws IOException {
        this.file = file;
        this.where = where;
        size = file.size();
        require(size >= 22 && size <= (1L << 32) - 1, where, "its size");
        ByteBuffer end = bytes(size - 22, 22);
        int count = Short.toUnsignedInt(end.getShort(10));
        long length = Integer.toUnsignedLong(end.getInt(12));
        long offset = Integer.toUnsignedLong(end.getInt(16));
        ByteBuffer expected = buffer(22).putInt(0x06054b50).putInt(0).putShort((short) count).putShort((short) count)
            .putInt((int) length).putInt((int) offset).putShort((short) 0);
        require(Arrays.equals(end.array(), expected.array()), where, "the end record");
        require(offset + length + 22 == size, where, "the place of the directory");
        require(count >= 1 && count <= entriesMax && length <= count * 146L, where, "the number of entries");
        readDirectory(bytes(offset, (int) length), count, offset);
    }

    /** Returns whether a file is meant to be a ZIP file: it begins or ends as one. */
    static boolean isZip(FileChannel file) throws IOException {
        long size = file.size();
        return size >= 4 && read(file, 0, 4).getInt(0) == 0x04034b50
            || size >= 22 && read(file, size - 22, 4).getInt(0) == 0x06054b50;
    }

    private static ByteBuffer buffer(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void readDirectory(ByteBuffer directory, int count, long offset) throws IOException {
        long at = 0;
        int place = 0;
        for (int number = 0; number < count; number++) {
            require(place + 46 <= directory.capacity(), where, "the directory is cut off");
            int crc = directory.getInt(place + 16);
            long length = Integer.toUnsignedLong(directory.getInt(place + 24));
            int nameLength = Short.toUnsignedInt(directory.getShort(place + 28));
            require(place + 46 + nameLength <= directory.capacity(), where, "a name");
            byte[] raw = Arrays.copyOfRange(directory.array(), place + 46, place + 46 + nameLength);
            String name = new String(raw, StandardCharsets.ISO_8859_1);
            require(NAME.matcher(name).matches(), where, "a name");
            List<String> steps = List.of(name.split("/", -1));
            require(!entries.containsKey(name) && !steps.contains("") && !steps.contains(".") && !steps.contains(".."),
                where, "the name " + name);
            ByteBuffer central = buffer(46).putInt(0x02014b50).putShort((short) 0x030A).put(common(crc, length,
                nameLength))
                .putShort((short) 0).putShort((short) 0).putShort((short) 0).putInt(0x81A40000).putInt((int) at);
            require(Arrays.equals(central.array(), 0, 46, directory.array(), place, place + 46), where,
                "the directory's record of " + name);
            long begin = at + 30 + nameLength;
            require(begin + length <= offset, where, name + " is cut off");
            ByteBuffer local = buffer(30 + nameLength).putInt(0x04034b50).put(common(crc, length, nameLength)).put(raw);
            require(Arrays.equals(bytes(at, 30 + nameLength).array(), local.array()), where,
                "the local header of " + name);
            entries.put(name, new Entry(name, begin, length, crc));
            at = begin + length;
            place += 46 + nameLength;
        }
        require(at == offset && place == directory.capacity(), where, "bytes of no entry");
    }

    /** Returns the members that both headers of an entry have. */
    private static byte[] common(int crc, long length, int nameLength) {
        return buffer(26).putShort((short) 10).putShort((short) 0).putShort((short) 0).putShort((short) 0)
            .putShort((short) 0x21).putInt(crc).putInt((int) length).putInt((int) length).putShort((short) nameLength)
            .putShort((short) 0).array();
    }

    private ByteBuffer bytes(long at, int length) throws IOException {
        require(at >= 0 && at + length <= size, where, "cut off");
        return read(file, at, length);
    }

    private static ByteBuffer read(FileChannel file, long at, int length) throws IOException {
        ByteBuffer into = buffer(length);
        while (into.hasRemaining()) {
            if (file.read(into, at + into.position()) < 0)
                throw new Invalid("the file is cut off");
        }
        return into.flip();
    }

    long size() {
        return size;
    }

    String where() {
        return where;
    }

    List<String> names() {
        return new ArrayList<>(entries.keySet());
    }

    boolean has(String name) {
        return entries.containsKey(name);
    }

    long sizeOf(String name) {
        return entries.get(name).size;
    }

    /** Returns the content of an entry in chunks; its CRC is compared at the end. */
    Source<byte[]> chunks(String name) {
        Entry entry = entries.get(name);
        CRC32 crc = new CRC32();
        long[] done = {0};
        return () -> {
            int length = (int) Math.min(CHUNK, entry.size - done[0]);
            if (length == 0) {
                require((int) crc.getValue() == entry.crc, name, "the CRC");
                return null;
            }
            byte[] chunk = bytes(entry.at + done[0], length).array();
            crc.update(chunk);
            done[0] += length;
            return chunk;
        };
    }

    /** Returns the content of an entry, which is refused above the maximum size. */
    byte[] read(String name, int most) throws IOException {
        require(entries.containsKey(name), name, "missing");
        Entry entry = entries.get(name);
        require(entry.size <= most, name, "its size");
        ByteBuffer whole = ByteBuffer.allocate((int) entry.size);
        Source<byte[]> chunks = chunks(name);
        for (byte[] chunk; (chunk = chunks.next()) != null;)
            whole.put(chunk);
        return whole.array();
    }

    /** Returns the SHA-256 of the whole file. */
    String digest() throws IOException {
        MessageDigest running = Forms.running("SHA-256");
        for (long at = 0; at < size; at += CHUNK)
            running.update(bytes(at, (int) Math.min(CHUNK, size - at)));
        return HexFormat.of().formatHex(running.digest());
    }

    /** Returns the SHA-256 of an entry. */
    String digest(String name) throws IOException {
        String known = digests.get(name);
        if (known != null)
            return known;
        MessageDigest running = Forms.running("SHA-256");
        Source<byte[]> chunks = chunks(name);
        for (byte[] chunk; (chunk = chunks.next()) != null;)
            running.update(chunk);
        String found = HexFormat.of().formatHex(running.digest());
        digests.put(name, found);
        return found;
    }

    /** Returns the files of a stream, in order. */
    List<String> streams(String stream) {
        List<String> names = new ArrayList<>();
        while (true) {
            String name = String.format("%s/%s-%06d.ndjson.gz", stream, stream, names.size() + 1);
            if (!entries.containsKey(name))
                return names;
            names.add(name);
        }
    }

    /** Returns the lines of a stream without their ends, without its first ones. */
    Source<byte[]> lines(String stream, long skip) {
        List<String> names = streams(stream);
        int first = (int) Math.min(skip / LINES_MAX, names.size());
        return new Streamed(names, first, skip - (long) first * LINES_MAX);
    }

    private final class Streamed implements Source<byte[]> {
        private final List<String> names;
        private int next;
        private long left;
        private Source<byte[]> inside;
        private int count;

        Streamed(List<String> names, int first, long skip) {
            this.names = names;
            next = first;
            left = skip;
        }

        @Override
        public byte[] next() throws IOException {
            while (true) {
                if (inside == null) {
                    if (next == names.size())
                        return null;
                    String name = names.get(next++);
                    count = 0;
                    inside = new Lines(new Gunzip(chunks(name), name), name, Forms.LINE_MAX, LINES_MAX);
                }
                byte[] line = inside.next();
                if (line == null) {
                    require(count == LINES_MAX || count > 0 && next == names.size(), names.get(next - 1),
                        "its number of lines");
                    inside = null;
                    continue;
                }
                count++;
                if (left == 0)
                    return line;
                left--;
            }
        }
    }
}
