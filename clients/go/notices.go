package constancia

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// noticeMax is the most that ReadNotice reads.
const noticeMax = 1 << 20

// Notice is what the service sends to an endpoint. ID is the same on every retry: remember those that are dealt with.
type Notice struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	CreatedAt Time            `json:"created_at"`
	Mode      Mode            `json:"mode"`
	Data      json.RawMessage `json:"data"`
}

// Details returns Data as the type that Type has, a pointer to one of the …Data types; nil for a Type that this client
// does not know.
//
//	switch data := details.(type) {
//	case *constancia.CertificationData:
//		fmt.Println(data.CertificationID)
//	}
func (n *Notice) Details() (any, error) {
	make, known := noticeData[n.Type]
	if !known {
		return nil, nil
	}
	data := make()
	if err := json.Unmarshal(n.Data, data); err != nil {
		return nil, unexpected("the data of a notice is not that of %s: %v", n.Type, err)
	}
	return data, nil
}

var noticeData = map[string]func() any{
	"certification.completed":      func() any { return &CertificationData{} },
	"certification.failed":         func() any { return &CertificationData{} },
	"certification.evidence_ready": func() any { return &EvidenceReadyData{} },
	"event.sealed":                 func() any { return &EventSealedData{} },
	"balance.low":                  func() any { return &BalanceLowData{} },
	"balance.exhausted":            func() any { return &BalanceExhaustedData{} },
	"events.unpaid_limit_reached":  func() any { return &UnpaidLimitData{} },
	"consumption.limit_reached":    func() any { return &ConsumptionLimitData{} },
	"recharge.auto_completed":      func() any { return &RechargeData{} },
	"recharge.auto_failed":         func() any { return &RechargeData{} },
	"webhook.test":                 func() any { return &TestData{} },
}

// CertificationData is of certification.completed, with a VerificationCode, and certification.failed, with an
// IncidentID.
type CertificationData struct {
	CertificationID  string              `json:"certification_id"`
	ChannelID        string              `json:"channel_id"`
	Status           CertificationStatus `json:"status"`
	EventCount       int64               `json:"event_count"`
	VerificationCode string              `json:"verification_code"`
	IncidentID       string              `json:"incident_id"`
}

// EvidenceReadyData is of certification.evidence_ready.
type EvidenceReadyData struct {
	CertificationID     string              `json:"certification_id"`
	ChannelID           string              `json:"channel_id"`
	Status              CertificationStatus `json:"status"`
	EventCount          int64               `json:"event_count"`
	VerificationCode    string              `json:"verification_code"`
	EvidenceRecordSince Time                `json:"evidence_record_since"`
}

// EventSealedData is of event.sealed.
type EventSealedData struct {
	SealedAt Time            `json:"sealed_at"`
	Segments []NoticeSegment `json:"segments"`
}

// NoticeSegment has the events of one channel that a round sealed.
type NoticeSegment struct {
	ChannelID  string `json:"channel_id"`
	SegmentID  string `json:"segment_id"` // of the last event: a round may have several of a channel
	SeqFrom    int64  `json:"seq_from"`
	SeqTo      int64  `json:"seq_to"`
	EventCount int64  `json:"event_count"`
}

// BalanceLowData is of balance.low.
type BalanceLowData struct {
	ThresholdID string `json:"threshold_id"`
	Threshold   int64  `json:"threshold"`
	Balance     int64  `json:"balance"`
}

// BalanceExhaustedData is of balance.exhausted.
type BalanceExhaustedData struct {
	ChannelID string `json:"channel_id"`
}

// UnpaidLimitData is of events.unpaid_limit_reached.
type UnpaidLimitData struct {
	UnpaidLimit   int64 `json:"unpaid_limit"`
	UnpaidEvents  int64 `json:"unpaid_events"`
	UnpaidCredits int64 `json:"unpaid_credits"`
}

// ConsumptionLimitData is of consumption.limit_reached.
type ConsumptionLimitData struct {
	LimitID   string  `json:"limit_id"`
	Scope     string  `json:"scope"` // channel or key
	ChannelID string  `json:"channel_id"`
	KeyID     *string `json:"key_id"`
	Period    string  `json:"period"` // day or month
	PeriodKey string  `json:"period_key"`
	MaxEvents int64   `json:"max_events"`
	Action    string  `json:"action"` // warn or block
}

// RechargeData is of recharge.auto_completed, with a Balance, and recharge.auto_failed, with a Reason.
type RechargeData struct {
	RechargeID           *string `json:"recharge_id"`
	PackID               string  `json:"pack_id"`
	Credits              *int64  `json:"credits"`
	Amount               *string `json:"amount"` // a decimal
	Currency             *string `json:"currency"`
	Threshold            int64   `json:"threshold"`
	Balance              *int64  `json:"balance"`
	Reason               *string `json:"reason"`
	PaymentURL           *string `json:"payment_url"`
	AutoRechargeDisabled bool    `json:"auto_recharge_disabled"`
}

// TestData is of webhook.test.
type TestData struct {
	EndpointID string `json:"endpoint_id"`
	Message    string `json:"message"`
}

// NoticeKey is what checks and signs notices.
type NoticeKey struct {
	// Secrets are those of the endpoint: one of them has to have signed, and all of them sign.
	Secrets []string
	// Prefix is the installation's, of its headers. "SVC" by default.
	Prefix string
	// Tolerance is how old a notice may be, or early. Five minutes by default.
	Tolerance time.Duration
	// Now is the time, instead of the clock's.
	Now time.Time
}

func (k NoticeKey) header(name string) string {
	prefix := k.Prefix
	if prefix == "" {
		prefix = "SVC"
	}
	return "X-" + prefix + "-" + name
}

func (k NoticeKey) now() time.Time {
	if k.Now.IsZero() {
		return time.Now()
	}
	return k.Now
}

// VerifyNotice returns the notice, if it was signed with the endpoint's secret, or one of several. body has the bytes
// that came, before a JSON parser has seen them.
func VerifyNotice(header http.Header, body []byte, secrets ...string) (*Notice, error) {
	return NoticeKey{Secrets: secrets}.Verify(header, body)
}

// ReadNotice reads a request of the service, and returns its notice, as VerifyNotice does.
func ReadNotice(request *http.Request, secrets ...string) (*Notice, error) {
	body, err := io.ReadAll(io.LimitReader(request.Body, noticeMax+1))
	if err != nil {
		return nil, err
	}
	if len(body) > noticeMax {
		return nil, unexpected("the notice has more than %d bytes", noticeMax)
	}
	return VerifyNotice(request.Header, body, secrets...)
}

var timestampForm = regexp.MustCompile(`^[0-9]{1,15}$`)

// Verify is VerifyNotice with what the key has.
func (k NoticeKey) Verify(header http.Header, body []byte) (*Notice, error) {
	tolerance := k.Tolerance
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	timestamp := strings.TrimSpace(header.Get(k.header("Timestamp")))
	if !timestampForm.MatchString(timestamp) {
		return nil, fmt.Errorf("%w: there is no timestamp", ErrInvalidSignature)
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: the timestamp is no number", ErrInvalidSignature)
	}
	age := k.now().Unix() - seconds
	if limit := int64(tolerance / time.Second); age > limit || age < -limit {
		return nil, fmt.Errorf("%w: the timestamp is too far from now", ErrInvalidSignature)
	}
	// All are compared, so that the time it takes tells nothing of which is good.
	isGood := false
	for _, secret := range k.Secrets {
		if secret == "" {
			continue
		}
		expected := []byte(signature(secret, timestamp, body))
		for _, given := range strings.Split(strings.Join(header.Values(k.header("Signature")), ","), ",") {
			if hmac.Equal(expected, []byte(strings.TrimSpace(given))) {
				isGood = true
			}
		}
	}
	if !isGood {
		return nil, fmt.Errorf("%w: no signature is good", ErrInvalidSignature)
	}
	notice := &Notice{}
	if err := json.Unmarshal(body, notice); err != nil {
		return nil, unexpected("the notice is no JSON of this kind: %v", err)
	}
	return notice, nil
}

func signature(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// SignNotice returns the headers and the body of a notice as the service would send it, for the tests of a receiver.
// Members that are empty are made.
func SignNotice(secret string, notice Notice) (http.Header, []byte, error) {
	return NoticeKey{Secrets: []string{secret}}.Sign(notice)
}

// Sign is SignNotice with what the key has.
func (k NoticeKey) Sign(notice Notice) (http.Header, []byte, error) {
	if notice.ID == "" {
		made, err := token()
		if err != nil {
			return nil, nil, err
		}
		notice.ID = "ntc_" + made[:24]
	}
	if notice.Type == "" {
		notice.Type = "webhook.test"
	}
	if notice.CreatedAt.IsZero() {
		notice.CreatedAt = Time{k.now()}
	}
	if notice.Mode == "" {
		notice.Mode = ModeLive
	}
	if notice.Data == nil {
		notice.Data = json.RawMessage("{}")
	}
	body, err := marshal(notice)
	if err != nil {
		return nil, nil, err
	}
	header, err := k.SignBody(body)
	if err == nil {
		header.Set(k.header("Webhook-Id"), notice.ID)
	}
	return header, body, err
}

// SignBody returns the headers of a body as it is, such as one that no notice has.
func (k NoticeKey) SignBody(body []byte) (http.Header, error) {
	timestamp := strconv.FormatInt(k.now().Unix(), 10)
	var signatures []string
	for _, secret := range k.Secrets {
		if secret == "" {
			return nil, errors.New("a secret is not empty")
		}
		signatures = append(signatures, signature(secret, timestamp, body))
	}
	if signatures == nil {
		return nil, errors.New("there is no secret to sign with")
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set(k.header("Timestamp"), timestamp)
	header.Set(k.header("Signature"), strings.Join(signatures, ","))
	return header, nil
}
