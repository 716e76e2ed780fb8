package org.constancia.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The body of an answer: one group of buffers is asked for at a time, and silence of the service ends it. */
final class Arriving extends InputStream implements HttpResponse.BodySubscriber<InputStream> {
    private static final Object END = new Object();

    private final Duration timeout;
    private final BlockingQueue<Object> arrived = new LinkedBlockingQueue<>();
    private final Deque<ByteBuffer> current = new ArrayDeque<>();
    private volatile Flow.Subscription subscription;
    private boolean ended;

    Arriving(Duration timeout) {
        this.timeout = timeout;
    }

    @Override
    public CompletionStage<InputStream> getBody() {
        return CompletableFuture.completedStage(this);
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        given.request(1);
    }

    @Override
    public void onNext(List<ByteBuffer> buffers) {
        arrived.add(buffers);
    }

    @Override
    public void onError(Throwable error) {
        arrived.add(error);
    }

    @Override
    public void onComplete() {
        arrived.add(END);
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        while (current.isEmpty() && !ended && length > 0)
            take();
        if (ended)
            return -1;
        int size = Math.min(length, length == 0 ? 0 : current.peek().remaining());
        if (size == 0)
            return 0;
        current.peek().get(into, offset, size);
        if (!current.peek().hasRemaining())
            current.remove();
        if (current.isEmpty())
            subscription.request(1);
        return size;
    }

    private void take() throws IOException {
        Object next;
        try {
            next = arrived.poll(timeout.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException();
        }
        if (next == null)
            throw new IOException("no sign of the service for " + timeout.toMillis() + " ms");
        if (next instanceof Throwable error)
            throw new IOException(error.getMessage(), error);
        if (next == END) {
            ended = true;
            return;
        }
        for (Object buffer : (List<?>) next) {
            if (((ByteBuffer) buffer).hasRemaining())
                current.add((ByteBuffer) buffer);
        }
        if (current.isEmpty())
            subscription.request(1);
    }


    @Override
    public void close() {
        if (!ended && subscription != null)
            subscription.cancel();
        ended = true;
    }
}
