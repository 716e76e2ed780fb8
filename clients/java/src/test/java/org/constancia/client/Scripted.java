package org.constancia.client;

import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BooleanSupplier;

/** A server that answers each request, on a connection of its own, with the next of its steps. */
final class Scripted implements AutoCloseable {
    /** What is done with a connection after its request arrived. */
    interface Step {
        void run(Socket connection, Request request) throws Exception;
    }

    record Request(String method, String target, Map<String, String> headers, byte[] body) {
        String header(String name) {
            return headers.get(name.toLowerCase(Locale.ROOT));
        }
    }

    final List<Request> seen = Collections.synchronizedList(new ArrayList<>());
    private final ServerSocket server;
    private final Deque<Step> steps;
    private volatile Exception failure;

    Scripted(Step... steps) throws IOException {
        this.steps = new ArrayDeque<>(Arrays.asList(steps));
        server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        Thread thread = new Thread(this::serve);
        thread.setDaemon(true);
        thread.start();
    }

    String url() {
        return "http://127.0.0.1:" + server.getLocalPort();
    }

    Client.Builder builder() {
        return Client.builder(url()).key("svc_test_key").userAgent("shop/1")
            .retry(new Retry(4, Duration.ofSeconds(60)));
    }

    Client client() {
        return builder().build();
    }

    private void serve() {
        while (true) {
            Socket connection;
            try {
                connection = server.accept();
            } catch (IOException error) {
                return;
            }
            Thread thread = new Thread(() -> answer(connection));
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void answer(Socket connection) {
        try (connection) {
            Request request = read(connection);
            Step step;
            synchronized (this) {
                seen.add(request);
                step = steps.poll();
            }
            if (step == null)
                throw new IllegalStateException("more requests than steps: " + request.method + " " + request.target);
            step.run(connection, request);
        } catch (SocketException | EOFException error) {
            return; // the client went away
        } catch (Exception error) {
            failure = error;
        }
    }

    private static Request read(Socket connection) throws IOException {
        InputStream in = connection.getInputStream();
        String[] first = line(in).split(" ");
        Map<String, String> headers = new TreeMap<>();
        for (String line; !(line = line(in)).isEmpty();)
            headers.put(line.substring(0, line.indexOf(':')).toLowerCase(Locale.ROOT),
                line.substring(line.indexOf(':') + 1).strip());
        int length = Integer.parseInt(headers.getOrDefault("content-length", "0"));
        byte[] body = in.readNBytes(length);
        if (body.length != length)
            throw new EOFException();
        return new Request(first[0], first[1], headers, body);
    }

    private static String line(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int one; (one = in.read()) != '\n';) {
            if (one < 0)
                throw new EOFException();
            if (one != '\r')
                line.write(one);
        }
        return line.toString(StandardCharsets.ISO_8859_1);
    }

    /** Answers; headers are names and values in turn. */
    static Step say(int status, byte[] body, String... headers) {
        return cut(status, body, body.length, () -> true, headers);
    }

    static Step say(int status, String body, String... headers) {
        return say(status, body.getBytes(StandardCharsets.UTF_8), headers);
    }

    static Step say(int status) {
        return say(status, "");
    }

    /** Answers without a length, by so many chunks. */
    static Step chunked(String body, int count) {
        byte[] chunk = (Integer.toHexString(body.length()) + "\r\n" + body + "\r\n")
            .getBytes(StandardCharsets.US_ASCII);
        return (connection, request) -> {
            OutputStream out = connection.getOutputStream();
            out.write("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                .getBytes(StandardCharsets.US_ASCII));
            for (int sent = 0; sent < count; sent++)
                out.write(chunk);
            out.write("0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
        };
    }

    /** Ends the connection in the first line of an answer. Without a byte java.net.http itself repeats a GET once. */
    static Step hangUp() {
        return (connection, request) ->
            connection.getOutputStream().write("HTTP/1".getBytes(StandardCharsets.US_ASCII));
    }

    /** Sends the beginning of an answer of this length, and ends the connection once it was taken. */
    static Step cut(int status, byte[] body, int length, BooleanSupplier isTaken, String... headers) {
        return (connection, request) -> {
            StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " x\r\nContent-Length: " + length
                + "\r\nConnection: close\r\n");
            for (int at = 0; at < headers.length; at += 2)
                head.append(headers[at]).append(": ").append(headers[at + 1]).append("\r\n");
            connection.getOutputStream().write(head.append("\r\n").toString().getBytes(StandardCharsets.UTF_8));
            connection.getOutputStream().write(body);
            connection.getOutputStream().flush();
            for (int at = 0; !isTaken.getAsBoolean() && at < 3000; at++)
                Thread.sleep(10);
        };
    }

    @Override
    public void close() throws Exception {
        server.close();
        if (failure != null)
            throw failure;
        if (!steps.isEmpty())
            throw new AssertionError(steps.size() + " steps were not reached");
    }
}
