package constancia

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Time is a time as the service writes it: UTC with six fractional digits.
type Time struct{ time.Time }

// OptionalTime is the target of a pointer that is nil where the service has null.
type OptionalTime = Time

const timeForm = "2006-01-02T15:04:05.000000Z"

// utc returns a time as it is sent.
func utc(when time.Time) string { return when.UTC().Format(timeForm) }

func (t Time) String() string { return utc(t.Time) }

// MarshalJSON returns the time with six fractional digits.
func (t Time) MarshalJSON() ([]byte, error) {
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return nil, errors.New("the time is not in the years 1 to 9999 of UTC")
	}
	return []byte(`"` + utc(t.Time) + `"`), nil
}

// UnmarshalJSON reads RFC 3339.
func (t *Time) UnmarshalJSON(data []byte) error { return t.Time.UnmarshalJSON(data) }

// Algorithm is that of a digest.
type Algorithm string

// The algorithms of digests.
const (
	SHA256 Algorithm = "sha-256"
	SHA512 Algorithm = "sha-512"
)

// plainEvent has the members of an Event, and no methods.
type plainEvent Event

// UnmarshalJSON reads an event, and keeps it as it came.
func (e *Event) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*plainEvent)(e)); err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return err
	}
	e.Raw = line.Bytes()
	return nil
}

// MarshalJSON returns the receipt for `constancia verify --receipt`: as it came, with members that this client does
// not know.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Raw != nil {
		return e.Raw, nil
	}
	return marshal(plainEvent(e))
}

// line returns the receipt as one line with its end.
func (e *Event) line() ([]byte, error) {
	data, err := e.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, data); err != nil {
		return nil, err
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}

// EventWithProof is an event with what leads from it to trusted time.
type EventWithProof struct {
	Event
	Proof EventProof
}

// UnmarshalJSON reads an event with its proof.
func (e *EventWithProof) UnmarshalJSON(data []byte) error {
	if err := e.Event.UnmarshalJSON(data); err != nil {
		return err
	}
	more := struct {
		Proof *EventProof `json:"proof"`
	}{&e.Proof}
	return json.Unmarshal(data, &more)
}

// Page is a part of a list. NextCursor is empty on the last one.
type Page[T any] struct {
	Data       []T
	HasMore    bool
	NextCursor string
}

// Content is declared content as it is held.
type Content struct {
	Body      []byte
	MediaType string
	FileName  string // of a file; else empty
}

// Declaration is what one event declares: a Payload on a channel that keeps content, or a Hash.
type Declaration struct {
	ClientRef string
	// Payload becomes a JSON object: a map, a struct, or a json.RawMessage.
	Payload any
	// Hash is a SHA-256 or SHA-512 in hexadecimal; its length tells which.
	Hash string
	// OccurredAt is the declared time of the fact; the zero time: none is declared.
	OccurredAt time.Time
}

// Range is what a certification covers: From and To, times of reception, or SeqFrom and SeqTo.
type Range struct {
	From, To       time.Time
	SeqFrom, SeqTo int64
	SealHistory    bool // of a certification: its archive has the seal documents of all segments before its own
}

func (r Range) body() ([]byte, error) {
	members := map[string]any{}
	for name, value := range map[string]time.Time{"from": r.From, "to": r.To} {
		if !value.IsZero() {
			members[name] = Time{value}
		}
	}
	for name, value := range map[string]int64{"seq_from": r.SeqFrom, "seq_to": r.SeqTo} {
		if value != 0 {
			members[name] = value
		}
	}
	if r.SealHistory {
		members["seal_history"] = true
	}
	return marshal(members)
}

// body returns the JSON that POST /events takes.
func (d Declaration) body() ([]byte, error) {
	if !utf8.ValidString(d.ClientRef) || d.ClientRef == "" {
		return nil, fmt.Errorf("the reference %q is empty, or not UTF-8", d.ClientRef)
	}
	members := map[string]any{"client_ref": d.ClientRef}
	switch {
	case (d.Hash == "") == (d.Payload == nil):
		return nil, fmt.Errorf("%s: a declaration has a Payload or a Hash, one of them", d.ClientRef)
	case d.Hash != "":
		algorithm, err := algorithmOf(d.Hash)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.ClientRef, err)
		}
		members["hash"], members["hash_alg"] = d.Hash, algorithm
	default:
		payload, err := objectOf(d.Payload)
		if err != nil {
			return nil, fmt.Errorf("%s: the payload %w", d.ClientRef, err)
		}
		members["payload"] = payload
	}
	if !d.OccurredAt.IsZero() {
		members["occurred_at"] = Time{d.OccurredAt}
	}
	return marshal(members)
}

// algorithmOf returns the algorithm that has digests of this form.
func algorithmOf(digest string) (Algorithm, error) {
	isHex := strings.Trim(digest, "0123456789abcdefABCDEF") == ""
	switch {
	case isHex && len(digest) == 64:
		return SHA256, nil
	case isHex && len(digest) == 128:
		return SHA512, nil
	}
	return "", errors.New("that is no SHA-256 and no SHA-512 in hexadecimal")
}

// objectOf returns a value as a JSON object that says the same. encoding/json writes \ufffd, escaped, for bytes that
// are not UTF-8, and for nothing else: what would be declared is then not what was given.
func objectOf(value any) (json.RawMessage, error) {
	data, err := marshal(value)
	if err != nil {
		return nil, fmt.Errorf("is no JSON: %w", err)
	}
	if data[0] != '{' {
		return nil, errors.New("is no JSON object: give a map or a struct")
	}
	escapes := strings.ReplaceAll(string(data), `\\`, "")
	if strings.Contains(escapes, `\ufffd`) {
		return nil, errors.New("has a text that is not UTF-8")
	}
	return data, nil
}

// marshal returns JSON without escapes of < and >, and without an end of line.
func marshal(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// What is printed of a certification has no link: who has one can open the file.

func (c Certification) String() string { return fmt.Sprintf("%s (%s)", c.CertificationID, c.Status) }

// GoString is String.
func (c Certification) GoString() string { return c.String() }

func (r CertificationReport) String() string {
	return fmt.Sprintf("report %v %s", r.Languages, r.Sha256)
}

// GoString is String.
func (r CertificationReport) GoString() string { return r.String() }

func (p ContentPart) String() string { return fmt.Sprintf("%s %s", p.Name, p.Sha256) }

// GoString is String.
func (p ContentPart) GoString() string { return p.String() }
