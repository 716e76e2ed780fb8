package org.constancia.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Supplier;

import com.fasterxml.jackson.databind.JsonNode;

/** Requests with retries. Each may be repeated: it has the effect of once. */
final class Transport {
    /** The service is busy; or the request did not arrive whole, or its answer did not come back. */
    static final Set<Integer> AGAIN = Set.of(429, 503, 408, 502, 504);
    private static final int ERROR_BODY_MAX = 65536;
    private static final int ANSWER_MAX = 256 << 20;
    private static final System.Logger LOG = System.getLogger("org.constancia.client");

    private final HttpClient http;
    private final Duration timeout;
    private final Retry retry;
    private final Hooks hooks;

    Transport(HttpClient http, Duration timeout, Retry retry, Hooks hooks) {
        this.http = http;
        this.timeout = timeout;
        this.retry = retry;
        this.hooks = hooks;
    }

    /** What is sent. */
    record Request(String method, URI url, Map<String, String> headers, Body body) {
        /** Returns the address without its query, for messages and hooks. */
        String shown() {
            return url.getScheme() + "://" + url.getRawAuthority() + url.getRawPath();
        }

        String name() {
            return method + " " + shown();
        }
    }

    /** Makes a result of an answer. */
    interface Reader<T> {
        T read(Answer answer);
    }

    /** An answer whose body ends where it should, or reading it throws ConnectionFailedException. */
    static final class Answer implements AutoCloseable {
        private final String name;
        private final HttpResponse<InputStream> response;

        Answer(String name, HttpResponse<InputStream> response) {
            this.name = name;
            this.response = response;
        }

        int status() {
            return response.statusCode();
        }

        HttpHeaders headers() {
            return response.headers();
        }

        String header(String of) {
            return response.headers().firstValue(of).orElse("");
        }

        /** Returns the length of the body, -1 if it is not stated. */
        long length() {
            return response.headers().firstValueAsLong("Content-Length").orElse(-1);
        }

        int read(byte[] chunk) {
            try {
                return response.body().read(chunk);
            } catch (InterruptedIOException error) {
                throw new CallInterruptedException();
            } catch (IOException error) {
                throw new ConnectionFailedException(name + ": " + error.getMessage(), true);
            }
        }

        byte[] readAll(int most) {
            try {
                byte[] body = response.body().readNBytes(most);
                if (body.length == most && most == ANSWER_MAX)
                    throw new UnexpectedAnswerException(name + ": the answer has more than " + most + " bytes");
                return body;
            } catch (InterruptedIOException error) {
                throw new CallInterruptedException();
            } catch (IOException error) {
                throw new ConnectionFailedException(name + ": " + error.getMessage(), true);
            }
        }

        byte[] readAll() {
            return readAll(ANSWER_MAX);
        }

        boolean isReplayed() {
            return header("Idempotent-Replayed").equalsIgnoreCase("true");
        }

        @Override
        public void close() {
            ((Arriving) response.body()).close();
        }
    }

    /** Returns what the reader makes of a good answer. The next attempt's request is prepared from scratch. */
    <T> T perform(Supplier<Request> prepare, Reader<T> reader) {
        Duration waited = Duration.ZERO;
        for (int attempt = 1;; attempt++) {
            Request request = prepare.get();
            ConstanciaException failure;
            Duration retryAfter = null;
            try {
                return exchange(request, reader, attempt);
            } catch (ApiException error) {
                if (!AGAIN.contains(error.status()))
                    throw error;
                failure = error;
                retryAfter = error.retryAfter();
            } catch (ConnectionFailedException error) {
                failure = error;
            }
            Duration pause = retry.delay(attempt, retryAfter, waited);
            if (pause == null)
                throw failure;
            call(hooks::onRetry, new Hooks.RetryPlanned(request.method, request.shown(), attempt, pause, failure));
            sleep(pause);
            waited = waited.plus(pause);
        }
    }

    Retry retry() {
        return retry;
    }

    static void sleep(Duration pause) {
        try {
            Thread.sleep(pause.toMillis());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new CallInterruptedException();
        }
    }

    private <T> T exchange(Request request, Reader<T> reader, int attempt) {
        call(hooks::onRequest, new Hooks.RequestSent(request.method, request.shown(), attempt));
        long began = System.nanoTime();
        try (Answer answer = new Answer(request.name(), send(request))) {
            call(hooks::onResponse, new Hooks.ResponseReceived(request.method, request.shown(), attempt,
                answer.status(),
                Duration.ofNanos(System.nanoTime() - began), answer.headers().firstValue("X-Request-Id").orElse(null)));
            if (answer.status() >= 300)
                throw refusal(answer);
            return reader.read(answer);
        }
    }

    private HttpResponse<InputStream> send(Request request) {
        HttpRequest.Builder made = HttpRequest.newBuilder(request.url).version(HttpClient.Version.HTTP_1_1);
        request.headers.forEach(made::header);
        // Without Expect: java.net.http of Java 17 discards the body of an answer that comes instead of 100.
        made.method(request.method,
            request.body == null ? HttpRequest.BodyPublishers.noBody() : request.body.publisher());
        CompletableFuture<HttpResponse<InputStream>> coming =
            http.sendAsync(made.build(), head -> new Arriving(timeout));
        try {
            return await(coming, request);
        } catch (InterruptedException error) {
            coming.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallInterruptedException();
        } catch (ExecutionException error) {
            throw failure(request, error.getCause());
        } catch (TimeoutException error) {
            coming.cancel(true);
            throw new ConnectionFailedException(
                request.name() + ": no sign of the service for " + timeout.toMillis() + " ms", true);
        }
    }

    /** Waits for the head of the answer, as long as the body is being taken or the time is not over. */
    private HttpResponse<InputStream> await(CompletableFuture<HttpResponse<InputStream>> coming, Request request)
            throws InterruptedException, ExecutionException, TimeoutException {
        long since = System.nanoTime();
        while (true) {
            long left = timeout.toNanos() - (System.nanoTime() - since);
            try {
                return coming.get(Math.max(left, 0), TimeUnit.NANOSECONDS);
            } catch (TimeoutException error) {
                if (request.body == null || request.body.movedAt() - since <= 0)
                    throw error;
                since = request.body.movedAt();
            }
        }
    }

    private static RuntimeException failure(Request request, Throwable cause) {
        if (request.body != null && request.body.failure() != null)
            return new UncheckedIOException(request.body.failure());
        if (!(cause instanceof IOException))
            return new IllegalStateException(cause);
        boolean unsent = cause instanceof ConnectException || cause instanceof HttpConnectTimeoutException;
        String why = cause.getMessage() == null ? cause.getClass().getSimpleName() : cause.getMessage();
        return new ConnectionFailedException(request.name() + ": " + why, !unsent);
    }

    /** Returns the error of an answer, as far as its record arrived. */
    private static ApiException refusal(Answer answer) {
        JsonNode record = Json.MAPPER.missingNode();
        try {
            record = Json.MAPPER.readTree(answer.readAll(ERROR_BODY_MAX));
        } catch (IOException | ConnectionFailedException error) {
            LOG.log(Level.DEBUG, "an error has no record", error);
        }
        return refusal(answer.status(), record, answer.header("Retry-After"),
            answer.headers().firstValue("X-Request-Id").orElse(null));
    }

    static ApiException refusal(int status, JsonNode record, String retryAfter, String requestId) {
        return ApiException.of(new ApiException.Facts(status, text(record, "code", ""), text(record, "message",
            "refused"),
            requestId, text(record, "incident_id", null), seconds(retryAfter), text(record, "event_id", null),
            text(record, "doc_url", null)));
    }

    static Duration seconds(String text) {
        return text.matches("[0-9]{1,9}") ? Duration.ofSeconds(Long.parseLong(text)) : null;
    }

    private static String text(JsonNode record, String name, String missing) {
        String value = record == null ? null : record.path(name).textValue();
        return value == null || value.isEmpty() ? missing : value;
    }

    /** Calls a hook. A fault of it must not hide what the service did. */
    private static <T> void call(Consumer<T> hook, T value) {
        try {
            hook.accept(value);
        } catch (RuntimeException error) {
            LOG.log(Level.ERROR, "a hook failed", error);
        }
    }
}
