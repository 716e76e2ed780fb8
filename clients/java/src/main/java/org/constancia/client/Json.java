package org.constancia.client;

import java.io.IOException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;

/** JSON as the service reads and writes it. Members that are not known are ignored. */
final class Json {
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'");
    static final ObjectMapper MAPPER = withTimes(new ObjectMapper())
        .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)
        .configure(DeserializationFeature.FAIL_ON_TRAILING_TOKENS, true);

    private Json() {
    }

    /** Returns a time as it is sent: RFC 3339 in UTC with microseconds. */
    static String text(Instant time) {
        OffsetDateTime utc = time.atOffset(ZoneOffset.UTC).truncatedTo(ChronoUnit.MICROS);
        if (utc.getYear() < 1 || utc.getYear() > 9999)
            throw new IllegalArgumentException(time + " is not in the years 1 to 9999 of UTC");
        return utc.format(TIME);
    }

    /** Returns a mapper that also writes times as the service does. */
    static ObjectMapper withTimes(ObjectMapper given) {
        SimpleModule times = new SimpleModule("constancia-times");
        times.addSerializer(new Written<>(Instant.class) {
            private static final long serialVersionUID = 1L;

            @Override
            Instant instant(Instant value) {
                return value;
            }
        });
        times.addSerializer(new Written<>(OffsetDateTime.class) {
            private static final long serialVersionUID = 1L;

            @Override
            Instant instant(OffsetDateTime value) {
                return value.toInstant();
            }
        });
        times.addSerializer(new Written<>(ZonedDateTime.class) {
            private static final long serialVersionUID = 1L;

            @Override
            Instant instant(ZonedDateTime value) {
                return value.toInstant();
            }
        });
        times.addDeserializer(OffsetDateTime.class, new StdDeserializer<>(OffsetDateTime.class) {
            private static final long serialVersionUID = 1L;

            @Override
            public OffsetDateTime deserialize(JsonParser parser, DeserializationContext context) throws IOException {
                return OffsetDateTime.parse(parser.getValueAsString(""));
            }
        });
        return given.copy().registerModule(times);
    }

    private abstract static class Written<T> extends StdSerializer<T> {
        private static final long serialVersionUID = 1L;

        Written(Class<T> kind) {
            super(kind);
        }

        abstract Instant instant(T value);

        @Override
        public void serialize(T value, JsonGenerator generator, SerializerProvider provider) throws IOException {
            generator.writeString(text(instant(value)));
        }
    }

    /** Returns a payload as a JSON object. */
    static ObjectNode object(ObjectMapper mapper, Object payload) {
        JsonNode tree = mapper.valueToTree(payload);
        if (!(tree instanceof ObjectNode object))
            throw new IllegalArgumentException("a payload is a JSON object: a map, a record, an ObjectNode");
        refuseInfinite(object);
        return object;
    }

    private static void refuseInfinite(JsonNode node) {
        if ((node.isDouble() || node.isFloat()) && !Double.isFinite(node.doubleValue()))
            throw new IllegalArgumentException(node.asText() + " is no number of JSON");
        node.forEach(Json::refuseInfinite);
    }

    static byte[] bytes(Object value) {
        try {
            return MAPPER.writeValueAsBytes(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error.getOriginalMessage(), error);
        }
    }

    static String line(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error.getOriginalMessage(), error);
        }
    }

    /** Returns an answer as a model. */
    static <T> T decode(byte[] body, Class<T> kind) {
        try {
            T value = MAPPER.readValue(body, kind);
            if (value != null)
                return value;
        } catch (IOException | RuntimeException error) {
            throw new UnexpectedAnswerException("the answer is no " + kind.getSimpleName() + ": "
                + error.getClass().getSimpleName());
        }
        throw new UnexpectedAnswerException("the answer is no " + kind.getSimpleName() + ": null");
    }
}
