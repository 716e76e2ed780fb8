package constancia

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const secretOne, secretTwo = "whsec_01", "whsec_02"

var noticeBody = []byte(`{"id":"ntc_1","type":"balance.low","created_at":"2026-01-02T03:04:05.000000Z","mode":"live",` +
	`"data":{"threshold_id":"thr_1","threshold":5,"balance":4,"later":1},"new":1}`)

func TestANoticeIsTakenWithAGoodSignatureAlone(t *testing.T) {
	const now = 1767323045
	check := func(given string, change func(*NoticeKey, http.Header)) error {
		header := http.Header{}
		header.Set("X-SVC-Timestamp", strconv.Itoa(now))
		header.Set("X-SVC-Signature", given)
		key := NoticeKey{Secrets: []string{secretOne}, Now: time.Unix(now, 0)}
		if change != nil {
			change(&key, header)
		}
		_, err := key.Verify(header, noticeBody)
		return err
	}
	good, other := signature(secretOne, strconv.Itoa(now), noticeBody), signature(secretTwo, strconv.Itoa(now), noticeBody)
	for _, given := range []string{good, other + "," + good, good + ", " + other} {
		must(t, check(given, nil))
	}
	must(t, check(other, func(key *NoticeKey, _ http.Header) { key.Secrets = []string{secretOne, secretTwo} }))
	for _, given := range []string{other, "", "v1=", good[:len(good)-1], good[3:], strings.Replace(good, "v1", "v2", 1), good + "0", "ñ"} {
		expect(t, errors.Is(check(given, nil), ErrInvalidSignature), "%q", given)
	}
	for number, change := range []func(*NoticeKey, http.Header){
		func(key *NoticeKey, _ http.Header) { key.Now = time.Unix(now+301, 0) },
		func(key *NoticeKey, _ http.Header) { key.Now = time.Unix(now-301, 0) },
		func(key *NoticeKey, _ http.Header) { key.Secrets = nil },
		func(key *NoticeKey, _ http.Header) { key.Secrets = []string{""} },
		func(key *NoticeKey, _ http.Header) { key.Prefix = "ACME" },
		func(_ *NoticeKey, header http.Header) { header.Set("X-SVC-Timestamp", "now") },
		func(_ *NoticeKey, header http.Header) { header.Set("X-SVC-Timestamp", "-1") },
		func(_ *NoticeKey, header http.Header) { header.Set("X-SVC-Timestamp", strings.Repeat("9", 5000)) },
		func(_ *NoticeKey, header http.Header) { header.Del("X-SVC-Timestamp") },
	} {
		expect(t, errors.Is(check(good, change), ErrInvalidSignature), "%d", number)
	}
	empty := signature("", strconv.Itoa(now), noticeBody)
	expect(t, errors.Is(check(empty, func(key *NoticeKey, _ http.Header) { key.Secrets = []string{""} }), ErrInvalidSignature),
		"an empty secret signs nothing")
}

func TestANoticeHasItsDataByType(t *testing.T) {
	for kind, make := range noticeData {
		header, body, err := SignNotice(secretOne, Notice{Type: kind})
		must(t, err)
		notice, err := VerifyNotice(header, body, secretOne)
		must(t, err)
		expect(t, header.Get("X-SVC-Webhook-Id") == notice.ID && notice.Mode == ModeLive, "%v", header)
		details, err := notice.Details()
		must(t, err)
		expect(t, strings.HasSuffix(typeName(details), "Data") && typeName(details) == typeName(make()), "%T", details)
	}
	notice := &Notice{Type: "balance.low", Data: json.RawMessage(`{"threshold":5,"balance":4,"later":1}`)}
	details, err := notice.Details()
	must(t, err)
	expect(t, details.(*BalanceLowData).Balance == 4, "%v", details)
	notice.Data = json.RawMessage(`{"balance":"x"}`)
	var other *UnexpectedAnswerError
	_, err = notice.Details()
	expect(t, errors.As(err, &other), "%v", err)
	details, err = (&Notice{Type: "moon.full", Data: json.RawMessage(`{"a":[1]}`)}).Details()
	expect(t, details == nil && err == nil, "a type that is not known yet does no harm")
}

func typeName(value any) string {
	switch value.(type) {
	case *CertificationData:
		return "CertificationData"
	case *EvidenceReadyData:
		return "EvidenceReadyData"
	case *EventSealedData:
		return "EventSealedData"
	case *BalanceLowData:
		return "BalanceLowData"
	case *BalanceExhaustedData:
		return "BalanceExhaustedData"
	case *UnpaidLimitData:
		return "UnpaidLimitData"
	case *ConsumptionLimitData:
		return "ConsumptionLimitData"
	case *RechargeData:
		return "RechargeData"
	case *TestData:
		return "TestData"
	}
	return ""
}

func TestAReceiversTestSignsItsOwnNotices(t *testing.T) {
	now := time.Unix(1767323045, 900_000_000)
	key := NoticeKey{Secrets: []string{secretTwo, secretOne}, Prefix: "ACME", Now: now}
	header, err := key.SignBody(noticeBody)
	must(t, err)
	expect(t, header.Get("X-ACME-Timestamp") == "1767323045" &&
		header.Get("X-ACME-Signature") == signature(secretTwo, "1767323045", noticeBody)+","+
			signature(secretOne, "1767323045", noticeBody), "%v", header)
	notice, err := NoticeKey{Secrets: []string{secretOne}, Prefix: "ACME", Now: now}.Verify(header, noticeBody)
	must(t, err)
	expect(t, notice.ID == "ntc_1" && notice.CreatedAt.String() == "2026-01-02T03:04:05.000000Z", "%v", notice)
	for _, none := range [][]string{nil, {""}, {secretOne, ""}} {
		_, err := NoticeKey{Secrets: none}.SignBody(noticeBody)
		expect(t, err != nil, "%v", none)
	}
	signed, body, err := SignNotice(secretOne, Notice{})
	must(t, err)
	request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/hook", bytes.NewReader(body))
	must(t, err)
	request.Header = signed
	notice, err = ReadNotice(request, secretOne)
	must(t, err)
	expect(t, notice.Type == "webhook.test", "%v", notice)
	request.Body = http.NoBody
	_, err = ReadNotice(request, secretOne)
	expect(t, errors.Is(err, ErrInvalidSignature), "%v", err)
}

func TestANoticeOfTheServiceIsGood(t *testing.T) {
	path := os.Getenv("CONSTANCIA_NOTICE")
	if path == "" {
		t.Skip("CONSTANCIA_NOTICE names no notice")
	}
	var given struct {
		Secret, Body string
		Headers      map[string]string
	}
	must(t, json.Unmarshal(readFile(t, path), &given))
	header := http.Header{}
	for name, value := range given.Headers {
		header.Set(name, value)
	}
	notice, err := NoticeKey{Secrets: []string{given.Secret}, Tolerance: time.Hour}.Verify(header, []byte(given.Body))
	must(t, err)
	details, err := notice.Details()
	must(t, err)
	expect(t, notice.Type == "webhook.test" && details.(*TestData).EndpointID != "", "%v", details)
}
