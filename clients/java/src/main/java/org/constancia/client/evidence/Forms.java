package org.constancia.client.evidence;

import static org.constancia.client.evidence.Invalid.require;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Documents: canonical JSON with exactly the members of the format, each of its form. */
final class Forms {
    static final long INTEGER_MAX = (1L << 53) - 1;
    static final int LINE_MAX = 262144;
    static final ObjectMapper MAPPER = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION);
    private static final int TOLERANCE_SECONDS = 300;
    private static final String LATEST = "9999-12-31T23:59:59.999999Z";
    private static final Pattern TIME =
        Pattern.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z");
    private static final Pattern HASH = Pattern.compile("[0-9a-f]{64}");
    private static final DateTimeFormatter TEXT = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'");

    /** What a member has to be. */
    interface Form {
        boolean test(JsonNode value);
    }

    static final Form IS_TEXT = value -> value.isTextual() && value.textValue().indexOf('\0') < 0;
    static final Form IS_TIME = Forms::isTime;
    static final Form IS_HASH = value -> value.isTextual() && HASH.matcher(value.textValue()).matches();
    static final Form IS_OBJECT = JsonNode::isObject;
    static final Form IS_LIST = JsonNode::isArray;
    static final Form IS_BOOLEAN = JsonNode::isBoolean;
    static final Form IS_CHAIN = oneOf("live", "test");

    private Forms() {
    }

    // ---- digests and times ----

    static MessageDigest running(String algorithm) {
        try {
            return MessageDigest.getInstance(algorithm);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    static String sha256(byte[] data) {
        return HexFormat.of().formatHex(running("SHA-256").digest(data));
    }

    static LocalDateTime timeOf(String text) {
        return LocalDateTime.parse(text.substring(0, 26));
    }

    static String textOf(LocalDateTime time) {
        return time.format(TEXT);
    }

    /** Returns the latest time that is not after one, give or take 300 s. Times compare as texts. */
    static String later(String text) {
        LocalDateTime time = timeOf(text).plusSeconds(TOLERANCE_SECONDS);
        return time.getYear() > 9999 ? LATEST : textOf(time);
    }

    private static boolean isTime(JsonNode value) {
        if (!value.isTextual() || !TIME.matcher(value.textValue()).matches() || value.textValue().startsWith("0000"))
            return false;
        try {
            timeOf(value.textValue());
            return true;
        } catch (DateTimeException error) {
            return false;
        }
    }

    // ---- forms of members ----

    static Form integer(long first, long last) {
        return value -> value.isIntegralNumber() && value.canConvertToLong() && value.longValue() >= first
            && value.longValue() <= last;
    }

    static Form integer() {
        return integer(1, INTEGER_MAX);
    }

    static Form oneOf(String... words) {
        List<String> known = List.of(words);
        return value -> value.isTextual() && known.contains(value.textValue());
    }

    static Form brief(int most) {
        return value -> IS_TEXT.test(value) && !value.textValue().isEmpty()
            && value.textValue().getBytes(StandardCharsets.UTF_8).length <= most;
    }

    static Form hashes(int most) {
        return value -> {
            if (!value.isArray() || value.size() > most)
                return false;
            for (JsonNode one : value) {
                if (!IS_HASH.test(one))
                    return false;
            }
            return true;
        };
    }

    static Form ascending(int most) {
        return value -> {
            if (!hashes(most).test(value))
                return false;
            for (int at = 1; at < value.size(); at++) {
                if (value.get(at - 1).textValue().compareTo(value.get(at).textValue()) >= 0)
                    return false;
            }
            return true;
        };
    }

    static Form orNull(Form form) {
        return value -> value.isNull() || form.test(value);
    }

    static Form base64(int most) {
        return value -> value.isTextual() && !value.textValue().isEmpty() && decoded(value).length <= most;
    }

    static byte[] decoded(JsonNode value) {
        byte[] data;
        try {
            data = Base64.getDecoder().decode(value.textValue());
        } catch (IllegalArgumentException error) {
            throw new Invalid("base64 is wrong");
        }
        require(Base64.getEncoder().encodeToString(data).equals(value.textValue()), "base64",
            "other bits than its own");
        return data;
    }

    // ---- documents ----

    /** Returns an object that has exactly these members, each of its form. */
    static JsonNode members(JsonNode value, Map<String, Form> forms, String where) {
        Set<String> names = new HashSet<>();
        value.fieldNames().forEachRemaining(names::add);
        require(value.isObject() && names.equals(forms.keySet()), where, "other members");
        forms.forEach((name, form) -> require(form.test(value.get(name)), where, "'" + name + "' is not of its form"));
        return value;
    }

    /** Returns the value of canonical JSON. */
    static JsonNode parsed(byte[] data, String where, int most) {
        require(data.length > 0 && data.length <= most, where, "its size");
        JsonNode value;
        try {
            value = MAPPER.readTree(data);
        } catch (IOException error) {
            throw new Invalid(where + ": it is no JSON");
        }
        require(Arrays.equals(canonical(value), data), where, "not canonical");
        return value;
    }

    static JsonNode document(byte[] data, Map<String, Form> forms, String where, int most) {
        return members(parsed(data, where, most), forms, where);
    }

    static JsonNode document(byte[] data, Map<String, Form> forms, String where) {
        return document(data, forms, where, LINE_MAX);
    }

    /** Returns the canonical form (RFC 8785) of what documents hold, which has no fractions. */
    static byte[] canonical(JsonNode value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void write(JsonNode value, StringBuilder out) {
        if (value.isObject()) {
            Map<String, JsonNode> sorted = new TreeMap<>();
            value.properties().forEach(one -> sorted.put(one.getKey(), one.getValue()));
            out.append('{');
            sorted.forEach((name, inside) -> {
                if (out.charAt(out.length() - 1) != '{')
                    out.append(',');
                quote(name, out);
                write(inside, out.append(':'));
            });
            out.append('}');
        } else if (value.isArray()) {
            out.append('[');
            for (int at = 0; at < value.size(); at++)
                write(value.get(at), at == 0 ? out : out.append(','));
            out.append(']');
        } else if (value.isTextual()) {
            quote(value.textValue(), out);
        } else {
            require(value.isNull() || value.isBoolean() || value.isIntegralNumber(), "JSON", "a fraction");
            out.append(value.asText());
        }
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int at = 0; at < text.length(); at++) {
            char one = text.charAt(at);
            int plain = "\"\\\b\f\n\r\t".indexOf(one);
            if (plain >= 0)
                out.append('\\').append("\"\\bfnrt".charAt(plain));
            else if (one < 32)
                out.append(String.format("\\u%04x", (int) one));
            else
                out.append(one);
        }
        out.append('"');
    }

    // ---- the tree ----

    static byte[] join(byte[] one, byte[] other) {
        MessageDigest running = running("SHA-256");
        boolean isFirst = Arrays.compareUnsigned(one, other) <= 0;
        running.update(isFirst ? one : other);
        return running.digest(isFirst ? other : one);
    }

    static String along(String leaf, JsonNode path) {
        byte[] hash = HexFormat.of().parseHex(leaf);
        for (JsonNode sibling : path)
            hash = join(hash, HexFormat.of().parseHex(sibling.textValue()));
        return HexFormat.of().formatHex(hash);
    }
}
