package org.constancia.client;

import java.time.OffsetDateTime;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.PropertyNamingStrategies.SnakeCaseStrategy;
import com.fasterxml.jackson.databind.annotation.JsonNaming;

/**
 * A notice of the service.
 *
 * @param id the same on every retry: remember those that are processed
 * @param type for instance {@code certification.completed}; later services may have others
 * @param createdAt when it was made
 * @param mode {@code live} or {@code test}
 * @param data the members as they came
 */
@JsonNaming(SnakeCaseStrategy.class)
public record Notice(String id, String type, OffsetDateTime createdAt, String mode, JsonNode data) {
    /**
     * Returns the data as the class of this type.
     *
     * @return null for a type that this client does not know, whose data can be read all the same
     */
    public NoticeData details() {
        Class<? extends NoticeData> kind = NoticeData.BY_TYPE.get(type);
        return kind == null ? null : Json.decode(Json.bytes(data), kind);
    }
}
