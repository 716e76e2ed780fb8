package org.constancia.client;

import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;

/** What is sent, and can be read again for another attempt. */
final class Body {
    /** Opens the content from its beginning. */
    interface Source {
        InputStream open() throws IOException;
    }

    private final long length;
    private final Source source;
    private volatile IOException failure;
    private volatile long movedAt;

    Body(long length, Source source) {
        this.length = length;
        this.source = source;
    }

    static Body of(byte[] content) {
        return new Body(content.length, () -> new ByteArrayInputStream(content));
    }

    /** Returns the error of the local file that ended the last attempt, null if there was none. */
    IOException failure() {
        return failure;
    }

    /** Returns when a part of it was last taken, as System.nanoTime has it. */
    long movedAt() {
        return movedAt;
    }

    BodyPublisher publisher() {
        failure = null;
        movedAt = System.nanoTime();
        return BodyPublishers.fromPublisher(BodyPublishers.ofInputStream(this::opened), length);
    }

    private InputStream opened() {
        InputStream inside;
        try {
            inside = source.open();
        } catch (IOException error) {
            failure = error;
            return InputStream.nullInputStream();
        }
        return new Watched(inside);
    }

    private final class Watched extends FilterInputStream {
        private long left = length;

        Watched(InputStream inside) {
            super(inside);
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
        }

        @Override
        public int read(byte[] into, int offset, int size) throws IOException {
            movedAt = System.nanoTime();
            if (left == 0)
                return -1;
            try {
                int count = super.read(into, offset, (int) Math.min(size, left));
                if (count < 0)
                    throw new IOException("the file became shorter while it was sent");
                left -= count;
                return count;
            } catch (IOException error) {
                failure = error;
                throw error;
            }
        }
    }
}
