package org.constancia.client;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;

import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** Checks which notices the service signed, and reads them. */
public final class Webhooks {
    private static final Duration TOLERANCE = Duration.ofSeconds(300);

    private final List<String> secrets;
    private final String prefix;
    private final Duration tolerance;
    private final Clock clock;

    private Webhooks(List<String> secrets, String prefix, Duration tolerance, Clock clock) {
        this.secrets = secrets;
        this.prefix = prefix;
        this.tolerance = tolerance;
        this.clock = clock;
    }

    /**
     * A notice as the service would send it.
     *
     * @param headers of the request
     * @param body its bytes
     */
    public record Signed(Map<String, String> headers, byte[] body) { }

    /**
     * Returns a verifier with the secret of an endpoint.
     *
     * @param secret of the endpoint
     * @return a verifier
     */
    public static Webhooks of(String secret) {
        return of(List.of(secret));
    }

    /**
     * Returns a verifier with several secrets, for instance while one is replaced.
     *
     * @param secrets one of which has to be right
     * @return a verifier
     */
    public static Webhooks of(Collection<String> secrets) {
        return new Webhooks(secrets.stream().filter(one -> !one.isEmpty()).toList(), "SVC", TOLERANCE,
            Clock.systemUTC());
    }

    /**
     * Returns the same for an installation with another prefix.
     *
     * @param given {@code SVC} by default
     * @return another verifier
     */
    public Webhooks prefix(String given) {
        return new Webhooks(secrets, given, tolerance, clock);
    }

    /**
     * Returns the same with another tolerance.
     *
     * @param given how old, or early, a notice may be; 300 s by default
     * @return another verifier
     */
    public Webhooks tolerance(Duration given) {
        return new Webhooks(secrets, prefix, given, clock);
    }

    /**
     * Returns the same with another clock, for tests.
     *
     * @param given the clock
     * @return another verifier
     */
    public Webhooks clock(Clock given) {
        return new Webhooks(secrets, prefix, tolerance, given);
    }

    /**
     * Returns the notice if one of its signatures is good, or throws an {@link InvalidSignatureException}.
     *
     * @param header returns the header of a name, of either case, or null: for instance {@code request::getHeader}
     * @param body the bytes that came, before a JSON parser has seen them
     * @return the notice
     */
    public Notice verify(Function<String, String> header, byte[] body) {
        String timestamp = text(header.apply("X-" + prefix + "-Timestamp"));
        if (!timestamp.matches("[0-9]{1,18}"))
            throw new InvalidSignatureException("there is no timestamp");
        Duration distance = Duration.ofSeconds(clock.instant().getEpochSecond() - Long.parseLong(timestamp)).abs();
        if (distance.compareTo(tolerance) > 0)
            throw new InvalidSignatureException("the timestamp is too far from now");
        boolean isGood = false;
        // All are compared, so that the time it takes does not depend on which is good.
        for (String secret : secrets) {
            byte[] expected = signature(secret, timestamp, body).getBytes(StandardCharsets.UTF_8);
            for (String given : text(header.apply("X-" + prefix + "-Signature")).split(","))
                isGood |= MessageDigest.isEqual(expected, given.strip().getBytes(StandardCharsets.UTF_8));
        }
        if (!isGood)
            throw new InvalidSignatureException("no signature is good");
        Notice notice = Json.decode(body, Notice.class);
        if (notice.id() == null || notice.type() == null)
            throw new UnexpectedAnswerException("the body is no notice");
        return notice;
    }

    /**
     * Returns the notice if one of its signatures is good.
     *
     * @param headers names of either case
     * @param body the bytes that came, before a JSON parser has seen them
     * @return the notice
     */
    public Notice verify(Map<String, String> headers, byte[] body) {
        return verify(name -> headers.entrySet().stream().filter(one -> one.getKey().equalsIgnoreCase(name))
            .map(Map.Entry::getValue).findFirst().orElse(null), body);
    }

    private static String text(String header) {
        return header == null ? "" : header.strip();
    }

    private static String signature(String secret, String timestamp, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
            mac.update((timestamp + ".").getBytes(StandardCharsets.UTF_8));
            return "v1=" + HexFormat.of().formatHex(mac.doFinal(body));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /**
     * Returns a notice as the service would send it, for tests of a receiver.
     *
     * @param type for instance {@code balance.low}
     * @param data its members
     * @return headers and body
     */
    public Signed signNotice(String type, Map<String, ?> data) {
        ObjectNode notice = Json.MAPPER.createObjectNode();
        notice.put("id", "ntc_" + UUID.randomUUID().toString().replace("-", "").substring(8));
        notice.put("type", type).put("created_at", Json.text(clock.instant())).put("mode", "live");
        notice.set("data", Json.object(Json.MAPPER, data));
        return signNotice(Json.bytes(notice));
    }

    /**
     * Returns the bytes of a notice as the service would send them, for tests of a receiver.
     *
     * @param body of a notice
     * @return headers and body
     */
    public Signed signNotice(byte[] body) {
        Instant now = clock.instant();
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Content-Type", "application/json");
        String timestamp = Long.toString(now.getEpochSecond());
        headers.put("X-" + prefix + "-Timestamp", timestamp);
        headers.put("X-" + prefix + "-Signature", signature(secrets.get(0), timestamp, body));
        try {
            String id = Json.MAPPER.readTree(body).path("id").textValue();
            if (id != null)
                headers.put("X-" + prefix + "-Webhook-Id", id);
        } catch (java.io.IOException error) {
            return new Signed(headers, body); // what is no notice is signed, too: a receiver has to refuse it
        }
        return new Signed(headers, body);
    }
}
