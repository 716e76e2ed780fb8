package constancia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

const (
	errorBodyMax = 1 << 16
	answerMax    = 64 << 20
	// A body of this size waits for the service to accept its head, which may be refused.
	expectBytes = 1 << 20
)

// Retry says how calls are repeated: after 429 and 503 when the service says so by Retry-After, after a lost
// connection in growing steps, each with some chance added so that many clients do not come back at once.
type Retry struct {
	// Attempts are all of a call; 1: no retry. 5 by default.
	Attempts int
	// Patience is the most that the waiting of a call takes. A minute by default.
	Patience time.Duration
}

// delay returns the time until the next attempt, after this one; false when it was the last.
func (r Retry) delay(attempt int, after *time.Duration, waited time.Duration) (time.Duration, bool) {
	chance := rand.Float64()
	left := r.Patience - waited
	var wanted time.Duration
	if after == nil {
		steps := attempt - 1
		if steps > 20 { // a shift by more overflows; Patience ends the waiting long before
			steps = 20
		}
		wanted = time.Duration((0.25+0.25*chance)*float64(time.Second)) << steps
	} else {
		wanted = *after + time.Duration(0.25*chance*float64(*after))
	}
	if attempt >= r.Attempts || left <= 0 || after != nil && *after > left {
		return 0, false
	}
	if wanted > left {
		wanted = left
	}
	return wanted, true
}

// Hooks observe requests, for logs and metrics. They see no key, no body and no query of an address. A panic of
// theirs is ignored.
type Hooks struct {
	OnRequest  func(RequestSent)
	OnResponse func(ResponseReceived)
	OnRetry    func(RetryPlanned)
}

// RequestSent is an attempt that begins; the first one is 1.
type RequestSent struct {
	Method, URL string
	Attempt     int
}

// ResponseReceived is an answer whose head came.
type ResponseReceived struct {
	RequestSent
	Status    int
	RequestID string
	Duration  time.Duration
}

// RetryPlanned is an attempt that failed, and will be followed by another one after Delay.
type RetryPlanned struct {
	RequestSent
	Err   error
	Delay time.Duration
}

// observe calls a hook.
func observe[T any](hook func(T), what T) {
	if hook == nil {
		return
	}
	defer func() { _ = recover() }()
	hook(what)
}

// request is one attempt.
type request struct {
	method, url string
	header      http.Header
	body        io.Reader // nil: none
	length      int64
}

// shown returns the address without its query, which may open a file.
func (r *request) shown() string {
	parsed, err := url.Parse(r.url)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host + parsed.EscapedPath()
}

// answer is a response. Its body ends where it should, or reading it is a ConnectionError.
type answer struct {
	name   string
	status int
	header http.Header
	length int64 // -1: not known
	body   io.Reader
}

func (a *answer) read(most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.body, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, unexpected("%s: the answer has more than %d bytes", a.name, most)
	}
	return data, err
}

// decode reads JSON.
func (a *answer) decode(target any) error {
	data, err := a.read(answerMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, target); err != nil {
		return unexpected("%s: the answer is no JSON of this kind: %v", a.name, err)
	}
	return nil
}

// retryAfter returns what a header says, or nil.
func retryAfter(text string) *time.Duration {
	seconds, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil
	}
	after := time.Duration(seconds) * time.Second
	return &after
}

type transport struct {
	client  *http.Client
	timeout time.Duration
	retry   Retry
	hooks   Hooks
	sleep   func(context.Context, time.Duration) error
}

// pause sleeps, or returns the context's error.
func pause(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayRepeat returns whether trying again may help: the service is busy; or the request did not come through whole, or
// its answer did not come back.
func mayRepeat(err error) (bool, *time.Duration) {
	var refused *APIError
	if errors.As(err, &refused) {
		switch refused.Status {
		case 429, 503, 408, 502, 504:
			return true, refused.RetryAfter
		}
		return false, nil
	}
	var lost *ConnectionError
	return errors.As(err, &lost), nil
}

// perform has a good answer consumed. Consuming may fail with a ConnectionError: the next attempt's request is
// prepared again.
func (t *transport) perform(ctx context.Context, prepare func() (*request, error), consume func(*answer) error) error {
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		made, err := prepare()
		if err != nil {
			return err
		}
		sent := RequestSent{made.method, made.shown(), attempt}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("%s %s: %w", sent.Method, sent.URL, err)
		}
		err = t.exchange(ctx, made, sent, consume)
		if err == nil {
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return fmt.Errorf("%s %s: %w", sent.Method, sent.URL, ended)
		}
		again, after := mayRepeat(err)
		delay, goesOn := t.retry.delay(attempt, after, waited)
		if !again || !goesOn {
			return err
		}
		observe(t.hooks.OnRetry, RetryPlanned{sent, err, delay})
		if ended := t.sleep(ctx, delay); ended != nil {
			return fmt.Errorf("%s %s: %w", sent.Method, sent.URL, ended)
		}
		waited += delay
	}
}

// outgoing is a body on its way. An error of what is sent is returned as it is, and not as the connection's. net/http may
// still read it when the answer is there: after its end it does not touch the source, which may be sent again.
type outgoing struct {
	alive   func()
	mutex   sync.Mutex
	source  io.Reader
	err     error
	isEnded bool
}

func (o *outgoing) Read(into []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.isEnded {
		return 0, io.ErrClosedPipe
	}
	count, err := o.source.Read(into)
	if err != nil && err != io.EOF {
		o.err = err
	}
	o.alive()
	return count, err
}

// end returns what reading the source failed with.
func (o *outgoing) end() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.isEnded = true
	return o.err
}

// incoming is a body that comes.
type incoming struct {
	io.Reader
	name  string
	alive func()
}

func (i *incoming) Read(into []byte) (int, error) {
	count, err := i.Reader.Read(into)
	i.alive()
	if err != nil && err != io.EOF {
		err = &ConnectionError{Sent: true, what: fmt.Sprintf("%s: the connection ended before the answer did", i.name)}
	}
	return count, err
}

func (t *transport) exchange(ctx context.Context, made *request, sent RequestSent, consume func(*answer) error) error {
	name := sent.Method + " " + sent.URL
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(t.timeout, cancel)
	defer silence.Stop()
	alive := func() { silence.Reset(t.timeout) }

	body := &outgoing{alive: alive, source: made.body}
	defer body.end()
	built, err := http.NewRequestWithContext(inner, made.method, made.url, nil)
	if err != nil {
		return errors.New("the address is not one of HTTP")
	}
	built.Header = made.header
	if made.body != nil {
		built.Body, built.ContentLength = io.NopCloser(body), made.length
		if made.length >= expectBytes {
			built.Header.Set("Expect", "100-continue")
		}
	}
	observe(t.hooks.OnRequest, sent)
	begun := time.Now()
	response, err := t.client.Do(built)
	if err != nil {
		if failed := body.end(); failed != nil {
			return failed
		}
		return lost(name, err, inner.Err() != nil)
	}
	defer response.Body.Close()
	alive()
	observe(t.hooks.OnResponse, ResponseReceived{sent, response.StatusCode, response.Header.Get("X-Request-Id"),
		time.Since(begun)})
	got := &answer{name, response.StatusCode, response.Header, response.ContentLength,
		&incoming{response.Body, name, alive}}
	if got.status >= 300 {
		return refusal(got)
	}
	return consume(got)
}

// lost returns the error of a request without an answer. What net/http says has the address, with its query.
func lost(name string, err error, isSilent bool) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	var operation *net.OpError
	isDialled := !(errors.As(err, &operation) && operation.Op == "dial")
	what := err.Error()
	if isSilent {
		what = "no sign of the service"
	}
	return &ConnectionError{Sent: isDialled, what: fmt.Sprintf("%s: %s", name, what)}
}

// refusal reads the Error record, as far as it came.
func refusal(got *answer) error {
	data, _ := got.read(errorBodyMax)
	var record map[string]any
	if json.Unmarshal(data, &record) != nil {
		record = nil
	}
	refused := refused(got.status, record)
	refused.RequestID = got.header.Get("X-Request-Id")
	refused.RetryAfter = retryAfter(got.header.Get("Retry-After"))
	return refused
}

func refused(status int, record map[string]any) *APIError {
	text := func(name string) string {
		value, _ := record[name].(string)
		return value
	}
	message := text("message")
	if message == "" {
		message = http.StatusText(status)
	}
	return &APIError{Status: status, Code: text("code"), Message: message, IncidentID: text("incident_id"),
		EventID: text("event_id"), DocURL: text("doc_url")}
}
