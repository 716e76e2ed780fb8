package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.ByteArrayOutputStream;
import java.io.IOException;

/** Lines without their ends, each of which has one, of bytes that come in chunks. */
final class Lines implements Source<byte[]> {
    private final Source<byte[]> chunks;
    private final String where;
    private final int lineMax;
    private final int linesMax;
    private byte[] chunk = new byte[0];
    private int at;
    private int count;

    Lines(Source<byte[]> chunks, String where, int lineMax, int linesMax) {
        this.chunks = chunks;
        this.where = where;
        this.lineMax = lineMax;
        this.linesMax = linesMax;
    }

    @Override
    public byte[] next() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        while (true) {
            int end = at;
            while (end < chunk.length && chunk[end] != '\n')
                end++;
            require(line.size() + (end - at) <= lineMax, where, "a line that is too long");
            line.write(chunk, at, end - at);
            if (end < chunk.length) {
                at = end + 1;
                require(++count <= linesMax, where, "too many lines");
                return line.toByteArray();
            }
            at = 0;
            chunk = chunks.next();
            if (chunk == null) {
                chunk = new byte[0];
                require(line.size() == 0, where, "the last line has no end");
                return null;
            }
        }
    }
}
