package org.constancia.client;

import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.PropertyNamingStrategies.SnakeCaseStrategy;
import com.fasterxml.jackson.databind.annotation.JsonNaming;

/**
 * What {@code data} of a notice has, by its type. The members have the meaning that the description of notices gives;
 * one that a notice does not have is null.
 */
public sealed interface NoticeData {
    /** The classes by the type of the notice. */
    Map<String, Class<? extends NoticeData>> BY_TYPE = Map.ofEntries(
        Map.entry("certification.completed", CertificationData.class),
        Map.entry("certification.failed", CertificationData.class),
        Map.entry("certification.evidence_ready", EvidenceReady.class),
        Map.entry("event.sealed", EventSealed.class), Map.entry("balance.low", BalanceLow.class),
        Map.entry("balance.exhausted", BalanceExhausted.class),
        Map.entry("events.unpaid_limit_reached", UnpaidLimit.class),
        Map.entry("consumption.limit_reached", ConsumptionLimit.class),
        Map.entry("recharge.auto_completed", Recharge.class), Map.entry("recharge.auto_failed", Recharge.class),
        Map.entry("webhook.test", TestNotice.class));

    /**
     * {@code certification.completed}, {@code certification.failed}.
     *
     * @param certificationId {@code certification_id}
     * @param channelId {@code channel_id}
     * @param status {@code status}
     * @param eventCount {@code event_count}
     * @param verificationCode {@code verification_code}
     * @param incidentId {@code incident_id}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record CertificationData(String certificationId, String channelId, String status, Long eventCount,
        String verificationCode, String incidentId) implements NoticeData { }

    /**
     * {@code certification.evidence_ready}.
     *
     * @param certificationId {@code certification_id}
     * @param channelId {@code channel_id}
     * @param status {@code status}
     * @param eventCount {@code event_count}
     * @param verificationCode {@code verification_code}
     * @param evidenceRecordSince {@code evidence_record_since}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record EvidenceReady(String certificationId, String channelId, String status, Long eventCount,
        String verificationCode, OffsetDateTime evidenceRecordSince) implements NoticeData { }

    /**
     * The events of one channel that a round sealed.
     *
     * @param channelId {@code channel_id}
     * @param segmentId {@code segment_id}
     * @param seqFrom {@code seq_from}
     * @param seqTo {@code seq_to}
     * @param eventCount {@code event_count}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record SealedSegment(String channelId, String segmentId, Long seqFrom, Long seqTo, Long eventCount) { }

    /**
     * {@code event.sealed}.
     *
     * @param sealedAt {@code sealed_at}
     * @param segments {@code segments}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record EventSealed(OffsetDateTime sealedAt, List<SealedSegment> segments) implements NoticeData { }

    /**
     * {@code balance.low}.
     *
     * @param thresholdId {@code threshold_id}
     * @param threshold {@code threshold}
     * @param balance {@code balance}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record BalanceLow(String thresholdId, Long threshold, Long balance) implements NoticeData { }

    /**
     * {@code balance.exhausted}.
     *
     * @param channelId {@code channel_id}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record BalanceExhausted(String channelId) implements NoticeData { }

    /**
     * {@code events.unpaid_limit_reached}.
     *
     * @param unpaidLimit {@code unpaid_limit}
     * @param unpaidEvents {@code unpaid_events}
     * @param unpaidCredits {@code unpaid_credits}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record UnpaidLimit(Long unpaidLimit, Long unpaidEvents, Long unpaidCredits) implements NoticeData { }

    /**
     * {@code consumption.limit_reached}.
     *
     * @param limitId {@code limit_id}
     * @param scope {@code scope}
     * @param channelId {@code channel_id}
     * @param keyId {@code key_id}
     * @param period {@code period}
     * @param periodKey {@code period_key}
     * @param maxEvents {@code max_events}
     * @param action {@code action}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record ConsumptionLimit(String limitId, String scope, String channelId, String keyId, String period,
        String periodKey, Long maxEvents, String action) implements NoticeData { }

    /**
     * {@code recharge.auto_completed}, {@code recharge.auto_failed}.
     *
     * @param packId {@code pack_id}
     * @param threshold {@code threshold}
     * @param rechargeId {@code recharge_id}
     * @param credits {@code credits}
     * @param amount {@code amount}
     * @param currency {@code currency}
     * @param balance {@code balance}
     * @param reason {@code reason}
     * @param paymentUrl {@code payment_url}
     * @param autoRechargeDisabled {@code auto_recharge_disabled}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record Recharge(String packId, Long threshold, String rechargeId, Long credits, String amount, String currency,
        Long balance, String reason, String paymentUrl, Boolean autoRechargeDisabled) implements NoticeData { }

    /**
     * {@code webhook.test}.
     *
     * @param endpointId {@code endpoint_id}
     * @param message {@code message}
     */
    @JsonNaming(SnakeCaseStrategy.class)
    record TestNotice(String endpointId, String message) implements NoticeData { }
}
