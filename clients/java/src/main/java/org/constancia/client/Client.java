package org.constancia.client;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.constancia.client.Batches.Item;
import org.constancia.client.Transport.Answer;
import org.constancia.client.Transport.Request;
import org.constancia.client.evidence.ArchiveCheck;
import org.constancia.client.evidence.Archives;
import org.constancia.client.model.AccountBalance;
import org.constancia.client.model.Certification;
import org.constancia.client.model.CertificationList;
import org.constancia.client.model.Channel;
import org.constancia.client.model.Event;
import org.constancia.client.model.EventList;
import org.constancia.client.model.EventWithProof;
import org.constancia.client.model.FileCheck;
import org.constancia.client.model.IssuedDocument;
import org.constancia.client.model.Signer;
import org.constancia.client.model.SignerList;
import org.constancia.client.model.Verification;

/**
 * A channel of the service, in the mode of its key. Threads may share a client. Every call may throw a
 * {@link ConstanciaException}, and an {@link UncheckedIOException} for a local file that cannot be read or written. An
 * interrupted call ends with a {@link CallInterruptedException} and sends nothing more.
 */
public final class Client implements AutoCloseable {
    /** The version of this client. */
    public static final String VERSION = "0.1.0";

    /** No file that the service issues is larger. */
    private static final long DOWNLOAD_MAX = 1L << 32;
    private static final Duration POLL_FIRST = Duration.ofMillis(250);
    private static final Duration POLL_LONGEST = Duration.ofSeconds(5);
    private static final Pattern EXACT_NAME = Pattern.compile("filename\\*=utf-8''([^;\\s]+)",
        Pattern.CASE_INSENSITIVE);
    private static final Pattern NAME = Pattern.compile("filename=\"?([^\";]+)\"?");

    private final String base;
    private final String site;
    private final Map<String, String> open;
    private final Map<String, String> keyed;
    private final Transport transport;
    private final HttpClient own;
    private final ReceiptSink receipts;
    private final ObjectMapper mapper;
    private final long downloadMax;
    private volatile boolean isClosed;

    private Client(Builder given) {
        String address = given.baseUrl.replaceAll("/+$", "");
        base = address.endsWith("/v1") ? address : address + "/v1";
        site = base.substring(0, base.length() - "/v1".length());
        checkAddress(base);
        String agent = "constancia-java/" + VERSION + " Java/" + System.getProperty("java.version");
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("User-Agent", given.userAgent == null ? agent : given.userAgent + " " + agent);
        headers.put("Accept", "application/json, */*;q=0.5");
        if (given.language != null)
            headers.put("Accept-Language", given.language);
        open = Collections.unmodifiableMap(new LinkedHashMap<>(headers));
        if (given.key != null) {
            if (!given.key.matches("[!-~]+"))
                throw new IllegalArgumentException("the key is empty, or has what no key has, such as a line's end");
            headers.put("Authorization", "Bearer " + given.key);
        }
        if (given.scenario != null)
            headers.put("X-" + given.headerPrefix + "-Test-Scenario", given.scenario);
        headers.forEach(Client::checkHeader);
        keyed = Collections.unmodifiableMap(headers);
        if (given.http != null && given.http.followRedirects() != HttpClient.Redirect.NEVER)
            throw new IllegalArgumentException("an HttpClient that follows redirects would take the key to another host: "
                + "followRedirects(NEVER)");
        own = given.http != null ? null
            : HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(given.timeout).build();
        transport = new Transport(own != null ? own : given.http, given.timeout, given.retry, given.hooks);
        receipts = given.receipts;
        downloadMax = given.downloadMax;
        mapper = given.mapper == null ? Json.MAPPER : Json.withTimes(given.mapper);
    }

    /**
     * Begins a client.
     *
     * @param baseUrl address of the interface, {@code https://…/v1}
     * @return a builder
     */
    public static Builder builder(String baseUrl) {
        return new Builder(baseUrl);
    }

    /** What a client consists of. */
    public static final class Builder {
        private final String baseUrl;
        private String key;
        private String language;
        private Duration timeout = Duration.ofSeconds(60);
        private Retry retry = Retry.DEFAULT;
        private String scenario;
        private String headerPrefix = "SVC";
        private String userAgent;
        private HttpClient http;
        private ReceiptSink receipts;
        private Hooks hooks = Hooks.NONE;
        private ObjectMapper mapper;
        private long downloadMax = DOWNLOAD_MAX;

        private Builder(String baseUrl) {
            this.baseUrl = Objects.requireNonNull(baseUrl, "baseUrl");
        }

        /**
         * Sets the key, which public operations do not need.
         *
         * @param given the key
         * @return this
         */
        public Builder key(String given) {
            key = given;
            return this;
        }

        /**
         * Sets the language of messages and of {@code report_url}.
         *
         * @param given {@code en} or {@code es}
         * @return this
         */
        public Builder language(String given) {
            language = given;
            return this;
        }

        /**
         * Sets the longest time without a sign of the service.
         *
         * @param given one minute by default
         * @return this
         */
        public Builder timeout(Duration given) {
            timeout = given;
            return this;
        }

        /**
         * Sets how often a call is repeated.
         *
         * @param given {@link Retry#DEFAULT} by default
         * @return this
         */
        public Builder retry(Retry given) {
            retry = given;
            return this;
        }

        /**
         * Sets the refusal that a test key forces.
         *
         * @param given for instance {@code rate_limited}
         * @return this
         */
        public Builder scenario(String given) {
            scenario = given;
            return this;
        }

        /**
         * Sets the prefix of the installation's headers.
         *
         * @param given {@code SVC} by default
         * @return this
         */
        public Builder headerPrefix(String given) {
            headerPrefix = given;
            return this;
        }

        /**
         * Sets the name of the caller's program, which goes before that of this client.
         *
         * @param given for instance {@code shop/1}
         * @return this
         */
        public Builder userAgent(String given) {
            userAgent = given;
            return this;
        }

        /**
         * Sets the HTTP client, for a proxy or TLS of one's own. It must not follow redirects.
         *
         * @param given one that the caller ends
         * @return this
         */
        public Builder httpClient(HttpClient given) {
            http = given;
            return this;
        }

        /**
         * Keeps the receipt of each registration in a file before the call returns: see {@link ReceiptFile}.
         *
         * @param file its path
         * @return this
         */
        public Builder receipts(Path file) {
            return receipts(new ReceiptFile(file));
        }

        /**
         * Keeps the receipt of each registration before the call returns.
         *
         * @param given what keeps them
         * @return this
         */
        public Builder receipts(ReceiptSink given) {
            receipts = given;
            return this;
        }

        /**
         * Sets the hooks for logs and metrics.
         *
         * @param given their methods
         * @return this
         */
        public Builder hooks(Hooks given) {
            hooks = given;
            return this;
        }

        /**
         * Sets what writes payloads. Times of java.time with an offset are always written in UTC with microseconds.
         *
         * @param given a mapper with the caller's modules
         * @return this
         */
        public Builder mapper(ObjectMapper given) {
            mapper = given;
            return this;
        }

        /**
         * Limits files that are fetched to the disk. {@link Client#save} takes no more than the service has on record for
         * a file.
         *
         * @param bytes the most that a file has; 4 GiB by default
         * @return this builder
         */
        public Builder downloadMax(long bytes) {
            downloadMax = bytes;
            return this;
        }

        /**
         * Returns the client.
         *
         * @return a client
         */
        public Client build() {
            return new Client(this);
        }
    }

    private static void checkAddress(String address) {
        URI uri;
        try {
            uri = URI.create(address);
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException("the address is no URI");
        }
        boolean isHttp = "http".equals(uri.getScheme()) || "https".equals(uri.getScheme());
        if (!isHttp || uri.getHost() == null || uri.getRawUserInfo() != null)
            throw new IllegalArgumentException("an address is http:// or https://, a host, and no user name");
    }

    private static void checkHeader(String name, String value) {
        if (!name.matches("[!#-'*+.^-z|~A-Z0-9-]+") || !value.matches("[\t -~\\xa0-\\xff]*"))
            throw new IllegalArgumentException(name + " has what no header has, such as a line's end");
    }

    /** Ends the client. Calls that follow are refused. */
    @Override
    public void close() {
        isClosed = true;
        if (own instanceof AutoCloseable closeable) { // from Java 21 on
            try {
                closeable.close();
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }

    @Override
    public String toString() {
        return "Client[" + base + "]";
    }

    // ---- registering: repeated with the same clientRef it has the effect of once ----

    /**
     * Registers a JSON object, on a channel that keeps content.
     *
     * @param clientRef its own reference
     * @param payload a map, a record, an ObjectNode or what else Jackson writes as an object
     * @return the receipt
     */
    public Receipt register(String clientRef, Object payload) {
        return register(Declaration.of(clientRef, Objects.requireNonNull(payload, "payload")));
    }

    /**
     * Registers a declaration.
     *
     * @param declared a payload or a digest
     * @return the receipt
     */
    public Receipt register(Declaration declared) {
        Receipt receipt = kept(post(Body.of(Batches.body(declared, mapper)), "application/json"));
        checkReference(receipt, declared.clientRef());
        checkDigest(declared.hash(), receipt);
        return receipt;
    }

    /**
     * Registers a SHA-256 alone, on a channel that keeps no content.
     *
     * @param clientRef its own reference
     * @param sha256 of {@link Digests#of(Path)}
     * @return the receipt
     */
    public Receipt registerDigest(String clientRef, String sha256) {
        return register(Declaration.ofDigest(clientRef, sha256));
    }

    /**
     * Registers a digest alone, on a channel that keeps no content.
     *
     * @param clientRef its own reference
     * @param digest of {@link Digests#of(Path, String)}
     * @param algorithm {@code sha-256} or {@code sha-512}
     * @return the receipt
     */
    public Receipt registerDigest(String clientRef, String digest, String algorithm) {
        return register(new Declaration(clientRef, null, digest, algorithm, null));
    }

    /**
     * Registers a file, on a channel that keeps content. It is sent in chunks, and the digest of the receipt is
     * compared with that of what was sent.
     *
     * @param clientRef its own reference
     * @param file its path
     * @return the receipt
     */
    public Receipt registerFile(String clientRef, Path file) {
        return registerFile(clientRef, file, file.getFileName().toString(), null);
    }

    /**
     * Registers a file, on a channel that keeps content.
     *
     * @param clientRef its own reference
     * @param file its path
     * @param name the name to register it under
     * @param occurredAt declared time of the fact; may be null
     * @return the receipt
     */
    public Receipt registerFile(String clientRef, Path file, String name, Instant occurredAt) {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("client_ref", Objects.requireNonNull(clientRef, "clientRef"));
        if (occurredAt != null)
            fields.put("occurred_at", Json.text(occurredAt));
        Form form = new Form(fields, file, name);
        Receipt receipt = kept(post(form.body(), form.contentType()));
        checkReference(receipt, clientRef);
        if (!form.sha256().equals(receipt.getHash())) {
            throw new DigestMismatchException(receipt.getEventId() + " as it was recorded", form.sha256(),
                receipt.getHash());
        }
        return receipt;
    }

    /**
     * Registers declarations in batches of up to 1,000 and 8 MiB, which are sent while the stream is used. Each
     * outcome's receipt is kept by then. A batch whose answer is lost is repeated, as are declarations alone that were
     * refused for a while. An exception is about a whole batch: repeat the call with what has no outcome yet.
     *
     * @param declarations read no further than needed
     * @return what became of each, in order
     */
    public Stream<Outcome> registerMany(Iterable<Declaration> declarations) {
        Iterator<List<Item>> batches = new Batches(declarations.iterator(), mapper);
        Iterable<List<Item>> all = () -> batches;
        return StreamSupport.stream(all.spliterator(), false).flatMap(batch -> registerBatch(batch).stream());
    }

    private List<Outcome> registerBatch(List<Item> batch) {
        Outcome[] found = new Outcome[batch.size()];
        List<Integer> left = new ArrayList<>();
        for (int at = 0; at < found.length; at++)
            left.add(at);
        Duration waited = Duration.ZERO;
        for (int attempt = 1;; attempt++) {
            List<Outcome> outcomes = sendBatch(left.stream().map(batch::get).collect(Collectors.toList()));
            List<Integer> again = new ArrayList<>();
            Duration retryAfter = null;
            for (int at = 0; at < left.size(); at++) {
                ApiException error = outcomes.get(at).error();
                found[left.get(at)] = outcomes.get(at);
                if (error == null || !Transport.AGAIN.contains(error.status()))
                    continue;
                again.add(left.get(at));
                Duration asked = error.retryAfter();
                if (asked != null && (retryAfter == null || asked.compareTo(retryAfter) > 0))
                    retryAfter = asked;
            }
            Duration pause = again.isEmpty() ? null : transport.retry().delay(attempt, retryAfter, waited);
            if (pause == null)
                return List.of(found);
            Transport.sleep(pause);
            waited = waited.plus(pause);
            left = again;
        }
    }

    /** Sends a batch, in halves where the service takes smaller ones, and keeps the receipts. */
    private List<Outcome> sendBatch(List<Item> batch) {
        if (batch.size() == 1 && batch.get(0).line().length >= Batches.BYTES_MAX)
            return List.of(registerLarge(batch.get(0)));
        List<Outcome> told;
        try {
            told = perform("POST", "/events/batch", Map.of("Content-Type", "application/x-ndjson"),
                Body.of(Batches.joined(batch)), answer -> Batches.outcomes(batch, answer.readAll()));
        } catch (ApiException.TooLarge error) { // nothing of it was registered
            if (batch.size() == 1)
                return List.of(registerLarge(batch.get(0)));
            int half = batch.size() / 2;
            List<Outcome> both = new ArrayList<>(sendBatch(batch.subList(0, half)));
            both.addAll(sendBatch(batch.subList(half, batch.size())));
            return both;
        }
        keep(told.stream().map(Outcome::receipt).filter(Objects::nonNull).collect(Collectors.toList()));
        for (int at = 0; at < told.size(); at++)
            checkDigest(batch.get(at).hash(), told.get(at).receipt());
        return told;
    }

    /** Has the service say itself what it answers to a declaration that no batch can hold. */
    private Outcome registerLarge(Item item) {
        try {
            Receipt receipt = kept(post(Body.of(item.line()), "application/json"));
            checkReference(receipt, item.clientRef());
            checkDigest(item.hash(), receipt);
            return new Outcome(item.clientRef(), receipt, null);
        } catch (ApiException error) {
            return new Outcome(item.clientRef(), null, error);
        }
    }

    private Receipt post(Body body, String contentType) {
        return perform("POST", "/events", Map.of("Content-Type", contentType), body,
            answer -> Receipt.of(answer.readAll(), answer.isReplayed()));
    }

    private Receipt kept(Receipt receipt) {
        keep(List.of(receipt));
        return receipt;
    }

    private void keep(List<Receipt> given) {
        if (receipts == null || given.isEmpty())
            return;
        try {
            receipts.write(given);
        } catch (Exception error) {
            throw new ReceiptNotKeptException(given, error);
        }
    }

    private static void checkDigest(String declared, Receipt receipt) {
        if (declared != null && receipt != null && !declared.equalsIgnoreCase(receipt.getHash()))
            throw new DigestMismatchException(receipt.getEventId() + " as it was recorded", declared, receipt.getHash());
    }

    private static void checkReference(Receipt receipt, String clientRef) {
        if (!clientRef.equals(receipt.getClientRef())) {
            throw new UnexpectedAnswerException(
                "the answer is about " + receipt.getClientRef() + ", not " + clientRef);
        }
    }

    // ---- events ----

    /**
     * Returns an event with its proof.
     *
     * @param eventId its identifier
     * @return the event
     */
    public EventWithProof event(String eventId) {
        return get("/events/" + quoted(eventId), EventWithProof.class);
    }

    /**
     * Returns all events that the filters let through, fetched page by page while they are used.
     *
     * @param query the filters
     * @return a list
     */
    public Pages<Event> events(Query query) {
        Query paged = query.paged();
        return new Pages<>(cursor -> eventsPage(cursor == null ? paged : paged.cursor(cursor)));
    }

    /**
     * Returns one page of events, for callers that keep a cursor.
     *
     * @param query the filters
     * @return a page
     */
    public Page<Event> eventsPage(Query query) {
        EventList list = get("/events" + query.text(), EventList.class);
        return page(list.getData(), list.getHasMore(), list.getNextCursor());
    }

    private static <T> Page<T> page(List<T> data, Boolean hasMore, String cursor) {
        if (data == null || hasMore == null)
            throw new UnexpectedAnswerException("the answer is no list");
        return new Page<>(data, hasMore, cursor);
    }

    /**
     * Returns the events of this channel that declare content of this digest.
     *
     * @param digest in hexadecimal, of either case
     * @return a list
     */
    public Pages<Event> findByHash(String digest) {
        return events(Query.ALL.hash(digest.toLowerCase(Locale.ROOT)));
    }

    /**
     * Returns the events of this channel that declare this file, by SHA-256 or SHA-512. It is hashed here and not sent.
     *
     * @param file its path
     * @return none if it is not on record
     */
    public List<Event> findFile(Path file) {
        try (InputStream source = Files.newInputStream(file)) {
            return find(source);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /**
     * Returns the events of this channel that declare these bytes, by SHA-256 or SHA-512. They are hashed here and not
     * sent.
     *
     * @param content the bytes
     * @return none if they are not on record
     */
    public List<Event> findContent(byte[] content) {
        try {
            return find(new ByteArrayInputStream(content));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private List<Event> find(InputStream source) throws IOException {
        Map<String, MessageDigest> running = new LinkedHashMap<>();
        for (String name : List.of("sha-256", "sha-512"))
            running.put(name, Digests.running(name));
        byte[] chunk = new byte[65536];
        for (int size; (size = source.read(chunk)) >= 0;) {
            for (MessageDigest one : running.values())
                one.update(chunk, 0, size);
        }
        List<Event> found = new ArrayList<>();
        running.forEach((name, one) ->
            events(Query.ALL.hash(Digests.hex(one)).hashAlg(name)).forEach(found::add));
        return found;
    }

    /**
     * Returns whether an event of this channel declares this file. It is hashed here and not sent.
     *
     * @param file its path
     * @return true if it is on record
     */
    public boolean isOnRecord(Path file) {
        return !findFile(file).isEmpty();
    }

    /**
     * Returns whether an event of this channel declares these bytes. They are hashed here and not sent.
     *
     * @param content the bytes
     * @return true if they are on record
     */
    public boolean isOnRecord(byte[] content) {
        return !findContent(content).isEmpty();
    }

    /**
     * Returns the declared content, in memory; {@link #saveContent} writes it to a file and checks it.
     *
     * @param eventId its identifier
     * @return the content
     */
    public Content content(String eventId) {
        return perform("GET", "/events/" + quoted(eventId) + "/content", Map.of(), null, answer ->
            new Content(answer.readAll(), answer.header("Content-Type").split(";")[0].strip(),
                fileName(answer.header("Content-Disposition"))));
    }

    /** Returns the name of a Content-Disposition: the exact one before the one for older programs. */
    private static String fileName(String disposition) {
        Matcher exact = EXACT_NAME.matcher(disposition);
        if (exact.find())
            return URLDecoder.decode(exact.group(1).replace("+", "%2B"), StandardCharsets.UTF_8);
        Matcher plain = NAME.matcher(disposition);
        return plain.find() ? plain.group(1) : null;
    }

    /**
     * Writes the declared content to a file, checked against the event's digest.
     *
     * @param event the event
     * @param path the file, which appears once it is whole
     * @return the digest
     */
    public String saveContent(Event event, Path path) {
        return saveContent(event, path, null);
    }

    /**
     * Writes the declared content to a file, checked against the event's digest.
     *
     * @param event the event
     * @param path the file, which appears once it is whole
     * @param progress may be null
     * @return the digest
     */
    public String saveContent(Event event, Path path, Progress progress) {
        checkOpen();
        URI url = URI.create(base + "/events/" + quoted(event.getEventId()) + "/content");
        return new Download(path, event.getHash(), event.getHashAlg().getValue(), progress, downloadMax, transport,
            more -> new Request("GET", url, joined(keyed, more), null)).run();
    }

    /**
     * Returns the evidence record of an event (RFC 4998, in DER); {@link ApiException.NotFound} until it is sealed.
     *
     * @param eventId its identifier
     * @return the record, compared with its SHA-256
     */
    public byte[] eventEvidenceRecord(String eventId) {
        return record("/events/" + quoted(eventId) + "/evidence-record");
    }

    // ---- channel and account ----

    /**
     * Returns the channel with the newest 1,000 versions of its configuration.
     *
     * @return the channel
     */
    public Channel channel() {
        return get("/channel", Channel.class);
    }

    /**
     * Returns the channel with versions of its configuration that are older than one.
     *
     * @param version the first one of the answer before
     * @return the channel
     */
    public Channel channelBefore(long version) {
        return get("/channel?before_version=" + version, Channel.class);
    }

    /**
     * Fetches the seal documents of the segments that contain events of a range to a file, for {@code constancia verify
     * --bridge}.
     *
     * @param range the events; null: the whole chain
     * @param path the file, which appears once it is whole
     * @return its SHA-256
     */
    public String channelSeals(Range range, Path path) {
        return channelSeals(range, path, null);
    }

    /**
     * Fetches the seal documents of the segments that contain events of a range to a file, for {@code constancia verify
     * --bridge}.
     *
     * @param range the events; null: the whole chain
     * @param path the file, which appears once it is whole
     * @param progress may be null
     * @return its SHA-256
     */
    public String channelSeals(Range range, Path path, Progress progress) {
        checkOpen();
        URI url = URI.create(base + "/channel/seals" + (range == null ? "" : range.query()));
        return new Download(path, null, "sha-256", progress, downloadMax, transport,
            more -> new Request("GET", url, joined(keyed, more), null)).run();
    }

    /**
     * Returns the credits of the account.
     *
     * @return the balance
     */
    public AccountBalance balance() {
        return get("/account/balance", AccountBalance.class);
    }

    // ---- notices of the test mode ----

    /**
     * Returns the notices of the test mode after a cursor, with a test key. {@link Page#nextCursor} is where the next
     * page begins, also after the last one.
     *
     * @param cursor of the page before; null: the page is empty, and its cursor is the present end
     * @param wait how long the service waits for a notice if there is none; at most 30 s
     * @return a page
     */
    public Page<Notice> noticesPage(String cursor, Duration wait) {
        String query = "?wait=" + wait.toSeconds() + (cursor == null ? "" : "&cursor=" + encoded(cursor));
        JsonNode list = get("/notices" + query, ObjectNode.class);
        List<Notice> notices = new ArrayList<>();
        list.path("data").forEach(one -> notices.add(Json.decode(Json.bytes(one), Notice.class)));
        return page(notices, list.path("has_more").asBoolean(), list.path("next_cursor").textValue());
    }

    /**
     * Creates a notice with sample data for {@link #noticesPage}, with a test key.
     *
     * @param type for instance {@code balance.low}
     * @return the notice
     */
    public Notice createNotice(String type) {
        byte[] body = Json.bytes(Map.of("type", type));
        return perform("POST", "/notices", Map.of("Content-Type", "application/json"), Body.of(body),
            answer -> Json.decode(answer.readAll(), Notice.class));
    }

    // ---- certifications ----

    /**
     * Requests a certification under a key of its own, which an error has as {@link
     * ConstanciaException#idempotencyKey()}.
     *
     * @param range the events
     * @return the certification, which is issued later: see {@link #await}
     */
    public CertificationState certify(Range range) {
        byte[] random = new byte[24];
        new SecureRandom().nextBytes(random);
        return certify(range, Base64.getUrlEncoder().encodeToString(random));
    }

    /**
     * Requests a certification. For 24 hours the same key has the same certification, and one fee: store it before the
     * call.
     *
     * @param range the events
     * @param idempotencyKey 1 to 255 visible ASCII characters
     * @return the certification, which is issued later: see {@link #await}
     */
    public CertificationState certify(Range range, String idempotencyKey) {
        if (!idempotencyKey.matches("[!-~]{1,255}"))
            throw new IllegalArgumentException("an idempotency key is 1 to 255 visible ASCII characters");
        try {
            return perform("POST", "/certifications", Map.of("Content-Type", "application/json",
                "Idempotency-Key", idempotencyKey), Body.of(range.body()), Client::state);
        } catch (ConstanciaException error) {
            error.setIdempotencyKey(idempotencyKey);
            throw error;
        }
    }

    private static CertificationState state(Answer answer) {
        return CertificationState.of(answer.readAll(), answer.isReplayed(),
            Transport.seconds(answer.header("Retry-After")));
    }

    /**
     * Returns a certification with fresh links.
     *
     * @param certificationId its identifier
     * @return its state
     */
    public CertificationState certification(String certificationId) {
        return perform("GET", "/certifications/" + quoted(certificationId), Map.of(), null, Client::state);
    }

    /**
     * Returns all certifications that the filter lets through, fetched page by page while they are used.
     *
     * @param query status, order and limit
     * @return a list
     */
    public Pages<Certification> certifications(Query query) {
        Query paged = query.paged();
        return new Pages<>(cursor -> certificationsPage(cursor == null ? paged : paged.cursor(cursor)));
    }

    /**
     * Returns one page of certifications, for callers that keep a cursor.
     *
     * @param query status, order, limit and cursor
     * @return a page
     */
    public Page<Certification> certificationsPage(Query query) {
        CertificationList list = get("/certifications" + query.text(), CertificationList.class);
        return page(list.getData(), list.getHasMore(), list.getNextCursor());
    }

    /**
     * Blocks until a certification is completed.
     *
     * @param certification one that was requested
     * @param timeout the longest waiting, after which a {@link WaitTimeoutException} is thrown
     * @return the completed certification
     */
    public CertificationState await(Certification certification, Duration timeout) {
        return await(certification.getCertificationId(), timeout, now -> { });
    }

    /**
     * Blocks until a certification is completed.
     *
     * @param certificationId its identifier
     * @param timeout the longest waiting, after which a {@link WaitTimeoutException} is thrown
     * @param progress is called with each state that is seen, the last of them completed, with a progress of 1
     * @return the completed certification
     */
    public CertificationState await(String certificationId, Duration timeout, Consumer<CertificationState> progress) {
        long end = System.nanoTime() + timeout.toNanos();
        for (Duration pause = POLL_FIRST;; pause = shorter(pause.multipliedBy(2), POLL_LONGEST)) {
            CertificationState now = certification(certificationId);
            if (now.getStatus() == Certification.StatusEnum.COMPLETED)
                now.setProgress(BigDecimal.ONE);
            progress.accept(now);
            if (now.getStatus() == Certification.StatusEnum.COMPLETED)
                return now;
            if (now.getStatus() == Certification.StatusEnum.FAILED)
                throw new CertificationFailedException(now);
            Duration left = Duration.ofNanos(end - System.nanoTime());
            if (left.isNegative() || left.isZero())
                throw new WaitTimeoutException(now, timeout);
            boolean isAsked = now.retryAfter() != null && now.retryAfter().compareTo(pause) > 0;
            Transport.sleep(shorter(isAsked ? now.retryAfter() : pause, left));
        }
    }

    private static Duration shorter(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    /**
     * Returns the evidence record of a certification (RFC 4998, in DER); {@link ApiException.NotFound} until it is
     * made, soon after issuing.
     *
     * @param certificationId its identifier
     * @return the record, compared with its SHA-256
     */
    public byte[] certificationEvidenceRecord(String certificationId) {
        return record("/certifications/" + quoted(certificationId) + "/evidence-record");
    }

    /**
     * Writes an issued file, by its link, to a file that appears once it is whole. The key is not sent. With a digest,
     * a later call continues where one that failed ended.
     *
     * @param url the link
     * @param path the file
     * @param sha256 the SHA-256 that it has to have; null: any
     * @return its SHA-256
     */
    public String download(String url, Path path, String sha256) {
        return download(url, path, sha256, null);
    }

    /**
     * Writes an issued file, by its link, to a file that appears once it is whole.
     *
     * @param url the link
     * @param path the file
     * @param sha256 the SHA-256 that it has to have; null: any
     * @param progress may be null
     * @return its SHA-256
     */
    public String download(String url, Path path, String sha256, Progress progress) {
        return download(url, path, sha256, progress, downloadMax);
    }

    private String download(String url, Path path, String sha256, Progress progress, long most) {
        checkOpen();
        checkAddress(url);
        URI link = URI.create(url);
        return new Download(path, sha256, "sha-256", progress, most, transport,
            more -> new Request("GET", link, joined(open, more), null)).run();
    }

    /**
     * Writes all files of a completed certification to a folder, each checked against the digest that the service has
     * on record for it. Their names have the certification's, so that a folder may have the files of several.
     *
     * @param certification one that is completed
     * @param folder created if it is missing
     * @return the files
     */
    public List<Path> save(Certification certification, Path folder) {
        String code = certification.getVerificationCode();
        if (certification.getStatus() != Certification.StatusEnum.COMPLETED || code == null)
            throw new IllegalArgumentException(certification.getCertificationId() + " is not completed");
        List<String> links = linksOf(certification);
        Map<String, IssuedDocument> documents = verify(code).getDocuments().stream()
            .collect(Collectors.toMap(IssuedDocument::getName, one -> one));
        try {
            Files.createDirectories(folder);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        List<Path> saved = new ArrayList<>();
        for (String link : links) {
            String path = URI.create(link).getPath();
            String name = path.substring(path.lastIndexOf('/') + 1);
            IssuedDocument document = documents.get(name);
            if (document == null)
                throw new UnexpectedAnswerException("the service has no digest of " + name);
            String own = certification.getCertificationId();
            Path file = folder.resolve(Path.of(name.contains(own) ? name : own + "-" + name).getFileName());
            Long bytes = document.getBytes();
            download(link, file, document.getSha256(), null,
                bytes == null ? downloadMax : Math.min(bytes, downloadMax));
            saved.add(file);
        }
        return saved;
    }

    /** Returns the links of a completed certification's files, none of which may be missing. */
    private static List<String> linksOf(Certification certification) {
        Map<String, Object> given = new LinkedHashMap<>();
        given.put("evidence_url", certification.getEvidenceUrl());
        for (int at = 0; at < certification.getReports().size(); at++)
            given.put("reports[" + at + "].url", certification.getReports().get(at).getUrl());
        for (int at = 0; at < certification.getContentParts().size(); at++)
            given.put("content_parts[" + at + "].url", certification.getContentParts().get(at).getUrl());
        given.forEach((member, link) -> {
            if (link == null || link.toString().isEmpty())
                throw new UnexpectedAnswerException(certification.getCertificationId() + " is completed and has no "
                    + member + ": ask for the certification again");
        });
        return given.values().stream().map(Object::toString).toList();
    }

    // ---- public operations ----

    /**
     * Returns the service's signing certificates.
     *
     * @return the oldest first
     */
    public List<Signer> signers() {
        return page(get("/signers", SignerList.class).getData(), false, null).data();
    }

    /**
     * Returns the same as the service signed it (CMS, in DER), for {@code constancia verify --signers};
     * {@link ApiException.NotFound} while there is none.
     *
     * @return the signed list
     */
    public byte[] signerList() {
        return perform("GET", "/signers.p7m", Map.of(), null, Answer::readAll);
    }

    /**
     * Returns what the service issued under a code; {@link ApiException.NotFound} if nothing.
     *
     * @param code of a certification
     * @return the certification and the digests of its files
     */
    public Verification verify(String code) {
        return get(site + "/verify/" + quoted(code), Verification.class);
    }

    /**
     * Returns the certification with a file of this SHA-256; {@link ApiException.NotFound} if none.
     *
     * @param sha256 of the file
     * @return the certification and the digests of its files
     */
    public Verification verifyDigest(String sha256) {
        return get(site + "/verify?sha256=" + encoded(sha256), Verification.class);
    }

    /**
     * Has a report or an archive checked in full by the service.
     *
     * @param file its path
     * @return what the service found
     */
    public FileCheck verifyFile(Path file) {
        Form form = new Form(Map.of(), file, file.getFileName().toString());
        return perform("POST", site + "/verify", Map.of("Content-Type", form.contentType()), form.body(),
            answer -> Json.decode(answer.readAll(), FileCheck.class));
    }

    /**
     * Checks an evidence archive here, without the service: see {@link Archives}.
     *
     * @param archive its path
     * @param receipts files of receipts, with those that they were rotated to
     * @return what was found
     */
    public ArchiveCheck verifyArchive(Path archive, Path... receipts) {
        return Archives.verify(archive, receipts);
    }

    /**
     * Returns the interface's description.
     *
     * @return OpenAPI, as YAML
     */
    public String description() {
        return text("/openapi.yaml");
    }

    /**
     * Returns the description of notices.
     *
     * @return OpenAPI, as YAML
     */
    public String webhookDescription() {
        return text("/webhooks.yaml");
    }

    /**
     * Returns where the service has its pages.
     *
     * @return names and addresses
     */
    public JsonNode index() {
        return get("/", JsonNode.class);
    }

    // ---- requests ----

    private void checkOpen() {
        if (isClosed)
            throw new IllegalStateException("the client is closed");
    }

    /** target: a path of the interface, which takes the key; or a public page, which does not. */
    private <T> T perform(String method, String target, Map<String, String> headers, Body body,
                          Transport.Reader<T> reader) {
        checkOpen();
        boolean isKeyed = target.startsWith("/");
        Request request = new Request(method, URI.create(isKeyed ? base + target : target),
            joined(isKeyed ? keyed : open, headers), body);
        return transport.perform(() -> request, reader);
    }

    private static Map<String, String> joined(Map<String, String> headers, Map<String, String> more) {
        Map<String, String> all = new LinkedHashMap<>(headers);
        all.putAll(more);
        return all;
    }

    private <T> T get(String target, Class<T> kind) {
        return perform("GET", target, Map.of(), null, answer -> Json.decode(answer.readAll(), kind));
    }

    private String text(String target) {
        return perform("GET", target, Map.of(), null,
            answer -> new String(answer.readAll(), StandardCharsets.UTF_8));
    }

    /** The ETag of a record is its SHA-256. */
    private byte[] record(String target) {
        return perform("GET", target, Map.of(), null, answer -> {
            byte[] body = answer.readAll();
            String found = Digests.of(body, "sha-256");
            String told = answer.header("ETag").replace("\"", "");
            if (!told.equals(found))
                throw new DigestMismatchException("the evidence record", told, found);
            return body;
        });
    }

    /** Returns a name as one step of a path. */
    private static String quoted(String name) {
        if (name.isEmpty() || name.equals(".") || name.equals(".."))
            throw new IllegalArgumentException("'" + name + "' names nothing");
        return encoded(name);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}
