package org.constancia.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

import org.junit.jupiter.api.Test;

/** Notices: signatures and types. */
class WebhooksTest {
    private static final Clock THEN = Clock.fixed(Instant.parse("2026-01-31T08:30:00Z"), ZoneOffset.UTC);
    private final Webhooks webhooks = Webhooks.of("whsec_one").clock(THEN);

    @Test
    void aSignedNoticeIsTaken() {
        Webhooks.Signed signed = webhooks.signNotice("balance.low",
            Map.of("threshold_id", "t", "threshold", 10, "balance", 3, "new", 1));
        Notice notice = webhooks.verify(signed.headers(), signed.body());
        assertEquals("2026-01-31T08:30Z", notice.createdAt().toString());
        NoticeData.BalanceLow low = assertInstanceOf(NoticeData.BalanceLow.class, notice.details());
        assertEquals(List.of("t", 10L, 3L), List.of(low.thresholdId(), low.threshold(), low.balance()));
        assertEquals(signed.headers().get("X-SVC-Webhook-Id"), notice.id());
        Webhooks.Signed later = webhooks.signNotice("later.type", Map.of("a", 1));
        assertNull(webhooks.verify(later.headers(), later.body()).details());
        assertEquals("1", webhooks.verify(later.headers(), later.body()).data().get("a").asText());
        for (Map.Entry<String, Class<? extends NoticeData>> kind : NoticeData.BY_TYPE.entrySet()) {
            Webhooks.Signed empty = webhooks.signNotice(kind.getKey(), Map.of());
            assertInstanceOf(kind.getValue(), webhooks.verify(empty.headers(), empty.body()).details());
        }
    }

    @Test
    void theSignatureIsTheOneThatTheServiceDocuments() {
        Webhooks.Signed signed = webhooks.signNotice("{}".getBytes(StandardCharsets.UTF_8));
        assertEquals("1769848200", signed.headers().get("X-SVC-Timestamp"));
        assertEquals("v1=2a3add6b0868cfc5953c2034a161f958674272f672b50620a1013485b1c6f196",
            signed.headers().get("X-SVC-Signature"));
    }

    @Test
    void whatIsNotSignedOrNotNowIsRefused() {
        Webhooks.Signed signed = webhooks.signNotice("webhook.test", Map.of("endpoint_id", "e", "message", "m"));
        byte[] body = signed.body();
        for (Map.Entry<String, String> bad : Map.of("X-SVC-Signature", "v1=" + "0".repeat(64), "X-SVC-Timestamp",
                "1769848201").entrySet()) {
            Map<String, String> headers = new HashMap<>(signed.headers());
            headers.put(bad.getKey(), bad.getValue());
            assertThrows(InvalidSignatureException.class, () -> webhooks.verify(headers, body));
        }
        assertThrows(InvalidSignatureException.class, () -> webhooks.verify(Map.of(), body));
        byte[] other = new String(body, StandardCharsets.UTF_8).replace("\"m\"",
            "\"n\"").getBytes(StandardCharsets.UTF_8);
        assertThrows(InvalidSignatureException.class, () -> webhooks.verify(signed.headers(), other));
        for (int distance : new int[] {-301, 301}) {
            Clock far = Clock.offset(THEN, Duration.ofSeconds(distance));
            assertThrows(InvalidSignatureException.class, () -> webhooks.clock(far).verify(signed.headers(), body));
        }
        assertThrows(InvalidSignatureException.class, () ->
            Webhooks.of("other").clock(THEN).verify(signed.headers(), body));
        assertThrows(InvalidSignatureException.class, () -> Webhooks.of("").clock(THEN).verify(signed.headers(), body));
        Notice notice = Webhooks.of(List.of("other", "whsec_one")).clock(THEN).verify(name -> {
            String lower = name.toLowerCase(Locale.ROOT);
            return lower.endsWith("signature") ? "v1=00, " + signed.headers().get(name) : signed.headers().get(name);
        }, body);
        assertEquals("webhook.test", notice.type());
        Webhooks prefixed = webhooks.prefix("ACME");
        Webhooks.Signed acme = prefixed.signNotice(body);
        assertEquals("webhook.test", prefixed.verify(acme.headers(), body).type());
    }
}
