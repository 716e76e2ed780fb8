package constancia

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kinds of refusals, for errors.Is. They follow the status of HTTP, and some the code. An error that the service
// comes to know later has no code here, but the kind of its status.
var (
	ErrInvalidRequest  = errors.New("400: the request is not valid")
	ErrUnauthorized    = errors.New("401: no key, or none that is valid")
	ErrPaymentRequired = errors.New("402: unpaid events, or too little balance")
	ErrForbidden       = errors.New("403: the account or channel is suspended or disabled")
	// ErrSuspended is an ErrForbidden: the service suspended the channel or its account.
	ErrSuspended = errors.New("403 suspended")
	// ErrAccountDisabled is an ErrForbidden: every call is refused until support enables the account.
	ErrAccountDisabled = errors.New("403 account_disabled")
	ErrNotFound        = errors.New("404: not on this channel and chain, or a link that is expired")
	// ErrConflict has the EventID of the original. Nothing was overwritten.
	ErrConflict = errors.New("409: the same reference was used for something else")
	ErrTooLarge = errors.New("413: too large")
	// ErrLimitBlocked has a RetryAfter where the service says when its next period begins.
	ErrLimitBlocked    = errors.New("422 limit_blocked: a consumption limit of the owner blocks registrations")
	ErrTooManyRequests = errors.New("429: too many requests")
	ErrServer          = errors.New("5xx: the service failed")
	// ErrUnavailable is an ErrServer: nothing was acknowledged.
	ErrUnavailable = errors.New("503: the service is not available")

	// ErrInvalidSignature is of a notice that the service did not sign, or not lately.
	ErrInvalidSignature = errors.New("the notice is not signed as it should be")
)

// APIError is a refusal of the service. Code is for programs, Message for people; new codes may appear, so that a
// program falls back on the kind: errors.Is(err, ErrConflict).
type APIError struct {
	Status  int
	Code    string
	Message string
	// RequestID names the request in the service's log.
	RequestID string
	// IncidentID is for the operator, of errors 5xx.
	IncidentID string
	// RetryAfter is nil if the service says none.
	RetryAfter *time.Duration
	// EventID is of the original, on a conflict of a registration.
	EventID string
	DocURL  string
}

func (e *APIError) Error() string {
	marks := []string{strings.TrimSpace(fmt.Sprintf("%d %s", e.Status, e.Code))}
	if e.RequestID != "" {
		marks = append(marks, "request "+e.RequestID)
	}
	if e.IncidentID != "" {
		marks = append(marks, "incident "+e.IncidentID)
	}
	return fmt.Sprintf("%s (%s)", e.Message, strings.Join(marks, ", "))
}

// Is returns whether the refusal is of a kind.
func (e *APIError) Is(kind error) bool {
	switch kind {
	case ErrInvalidRequest:
		return e.Status == 400
	case ErrUnauthorized:
		return e.Status == 401
	case ErrPaymentRequired:
		return e.Status == 402
	case ErrForbidden:
		return e.Status == 403
	case ErrSuspended:
		return e.Status == 403 && e.Code == "suspended"
	case ErrAccountDisabled:
		return e.Status == 403 && e.Code == "account_disabled"
	case ErrNotFound:
		return e.Status == 404
	case ErrConflict:
		return e.Status == 409
	case ErrTooLarge:
		return e.Status == 413
	case ErrLimitBlocked:
		return e.Status == 422 && e.Code == "limit_blocked"
	case ErrTooManyRequests:
		return e.Status == 429
	case ErrServer:
		return e.Status >= 500
	case ErrUnavailable:
		return e.Status == 503
	}
	return false
}

// ConnectionError is of a request without a whole answer: the service may or may not have done what was asked.
type ConnectionError struct {
	// Sent is false if not a byte of the request left.
	Sent bool
	what string
}

func (e *ConnectionError) Error() string { return e.what }

// UnexpectedAnswerError is of something that is not the service, or not one that this client understands.
type UnexpectedAnswerError struct{ what string }

func (e *UnexpectedAnswerError) Error() string { return e.what }

func unexpected(form string, words ...any) error {
	return &UnexpectedAnswerError{fmt.Sprintf(form, words...)}
}

// DigestMismatchError is of content that is not what it should be.
type DigestMismatchError struct{ What, Expected, Found string }

func (e *DigestMismatchError) Error() string {
	return fmt.Sprintf("%s: the digest is %s, not %s", e.What, e.Found, e.Expected)
}

// ReceiptNotKeptError has events that are registered, and whose receipts could not be kept.
type ReceiptNotKeptError struct {
	Events []*Event
	Err    error // of the file or the sink
}

func (e *ReceiptNotKeptError) Error() string {
	var names []string
	for _, event := range e.Events {
		if len(names) == 3 {
			names = append(names, fmt.Sprintf("and %d more", len(e.Events)-3))
			break
		}
		names = append(names, event.EventID)
	}
	return fmt.Sprintf("%s: registered, but the receipt was not kept: %v", strings.Join(names, ", "), e.Err)
}

// Unwrap returns what the file or the sink said.
func (e *ReceiptNotKeptError) Unwrap() error { return e.Err }

// CertifyError is of a call of Certify that failed, and may have been carried out nevertheless: repeat it with this
// key.
type CertifyError struct {
	IdempotencyKey string
	Err            error
}

func (e *CertifyError) Error() string {
	return fmt.Sprintf("%v (idempotency key %s)", e.Err, e.IdempotencyKey)
}

// Unwrap returns the reason.
func (e *CertifyError) Unwrap() error { return e.Err }

// CertificationFailedError is of a certification that could not be issued; the same range can be requested again.
type CertificationFailedError struct{ Certification *Certification }

func (e *CertificationFailedError) Error() string {
	return e.Certification.CertificationID + " failed"
}

// NotIssuedError is of a Wait that ended before the certification was issued; waiting can go on.
type NotIssuedError struct {
	Certification *Certification // as it was last seen; nil if it was not
	Err           error          // of the context
}

func (e *NotIssuedError) Error() string {
	return fmt.Sprintf("the certification is not issued yet: %v", e.Err)
}

// Unwrap returns the context's error.
func (e *NotIssuedError) Unwrap() error { return e.Err }
