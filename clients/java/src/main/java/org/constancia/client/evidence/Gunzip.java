package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.util.Arrays;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/** What a gzip file of one member (RFC 1952) unpacks to, in chunks. */
final class Gunzip implements Source<byte[]> {
    private static final int HEADER_CRC = 2;
    private static final int EXTRA = 4;
    private static final int NAME = 8;
    private static final int COMMENT = 16;
    private static final int RESERVED = 0xE0;

    private final Source<byte[]> packed;
    private final String where;
    private final Inflater inflater = new Inflater(true);
    private final CRC32 crc = new CRC32();
    private final CRC32 headCrc = new CRC32();
    private byte[] chunk = new byte[0];
    private int at;
    private boolean hasBegun;
    private boolean hasEnded;

    Gunzip(Source<byte[]> packed, String where) {
        this.packed = packed;
        this.where = where;
    }

    @Override
    public byte[] next() throws IOException {
        if (hasEnded)
            return null;
        if (!hasBegun)
            readHead();
        hasBegun = true;
        byte[] out = new byte[Zip.CHUNK];
        try {
            while (true) {
                int size = inflater.inflate(out);
                if (size > 0) {
                    crc.update(out, 0, size);
                    return Arrays.copyOf(out, size);
                }
                if (inflater.finished()) {
                    readTail();
                    return null;
                }
                require(inflater.needsInput(), where, "a dictionary");
                require(refill(), where, "the gzip file is cut off");
                inflater.setInput(chunk, at, chunk.length - at);
                at = chunk.length;
            }
        } catch (DataFormatException error) {
            throw new Invalid(where + ": the gzip file is damaged");
        }
    }

    /** Returns false at the end of the file. */
    private boolean refill() throws IOException {
        while (chunk != null && at == chunk.length) {
            chunk = packed.next();
            at = 0;
        }
        return chunk != null;
    }

    private int take() throws IOException {
        require(refill(), where, "the gzip file is cut off");
        int one = chunk[at++] & 255;
        headCrc.update(one);
        return one;
    }

    private long number(int size) throws IOException {
        long value = 0;
        for (int place = 0; place < size; place++)
            value |= (long) take() << 8 * place;
        return value;
    }

    private void readHead() throws IOException {
        require(number(2) == 0x8b1f && take() == 8, where, "not a gzip file");
        int flags = take();
        require((flags & RESERVED) == 0, where, "the head of the gzip file");
        number(6);
        if ((flags & EXTRA) != 0) {
            for (long left = number(2); left > 0; left--)
                take();
        }
        for (int flag : new int[] {NAME, COMMENT}) {
            while ((flags & flag) != 0 && take() != 0)
                continue;
        }
        if ((flags & HEADER_CRC) != 0) {
            long expected = headCrc.getValue() & 0xFFFF;
            require(number(2) == expected, where, "the head of the gzip file");
        }
    }

    private void readTail() throws IOException {
        at = chunk.length - inflater.getRemaining();
        long size = inflater.getBytesWritten() & 0xFFFFFFFFL;
        require(number(4) == crc.getValue() && number(4) == size, where, "the end of the gzip file");
        require(!refill(), where, "bytes after the gzip member");
        inflater.end();
        hasEnded = true;
    }
}
