package constancia

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	itemsMax = 1000
	bytesMax = 8 << 20
)

// Outcome is what became of a declaration: an event, or the error of that one alone.
type Outcome struct {
	ClientRef string
	Event     *Event
	Err       error // an APIError
}

// item is a declaration as it is sent.
type item struct {
	declaration Declaration
	line        []byte // without its end
}

// RegisterMany registers declarations in batches of up to 1,000 and 8 MiB, and gives what became of each, in order. See
// RegisterFrom.
func (c *Client) RegisterMany(ctx context.Context, declarations ...Declaration) *Iterator[Outcome] {
	at := 0
	return c.RegisterFrom(ctx, func() (Declaration, error) {
		if at == len(declarations) {
			return Declaration{}, io.EOF
		}
		at++
		return declarations[at-1], nil
	})
}

// RegisterFrom registers what next returns until io.EOF, and gives what became of each, in order. A batch is sent when
// its first outcome is asked for, and each outcome's receipt is kept by then. A batch whose answer is lost is sent
// again, as are items alone that were refused for a while (429, 503). The iterator's error is about a whole batch:
// repeat from the first declaration without an outcome.
func (c *Client) RegisterFrom(ctx context.Context, next func() (Declaration, error)) *Iterator[Outcome] {
	batches := &batcher{next: next}
	return newIterator(func() ([]Outcome, bool, error) {
		batch, err := batches.batch()
		if len(batch) == 0 {
			return nil, false, err
		}
		outcomes, failed := c.registerBatch(ctx, batch)
		if failed == nil {
			failed = err
		}
		return outcomes, failed == nil, failed
	})
}

// Lines returns what RegisterFrom takes of JSON values that follow each other, such as one in each line. reference makes
// the reference of a value. Numbers of a map[string]any keep their digits.
func Lines[T any](source io.Reader, reference func(value T) string) func() (Declaration, error) {
	values := json.NewDecoder(source)
	values.UseNumber()
	return func() (Declaration, error) {
		var value T
		if err := values.Decode(&value); err != nil {
			return Declaration{}, err
		}
		return Declaration{ClientRef: reference(value), Payload: value}, nil
	}
}

// batcher reads no further than it has to.
type batcher struct {
	next    func() (Declaration, error)
	waiting *item
	err     error
}

// batch returns declarations that fit into one request. One that is too large for any is alone in its own.
func (b *batcher) batch() ([]item, error) {
	var batch []item
	size := 0
	for {
		if b.waiting == nil && b.err == nil {
			b.read()
		}
		if b.waiting == nil {
			if b.err == io.EOF {
				return batch, nil
			}
			return batch, b.err
		}
		more := len(b.waiting.line) + 1
		if len(batch) == itemsMax || len(batch) > 0 && size+more > bytesMax {
			return batch, nil
		}
		batch, b.waiting = append(batch, *b.waiting), nil
		size += more
	}
}

func (b *batcher) read() {
	declaration, err := b.next()
	if err != nil {
		b.err = err
		return
	}
	line, err := declaration.body()
	if err != nil {
		b.err = err
		return
	}
	b.waiting = &item{declaration, line}
}

// registerBatch registers a batch, and repeats the items of it that were refused for a while.
func (c *Client) registerBatch(ctx context.Context, batch []item) ([]Outcome, error) {
	found := make([]Outcome, len(batch))
	left := make([]int, len(batch))
	for at := range left {
		left[at] = at
	}
	var waited time.Duration
	for attempt := 1; ; attempt++ {
		send := make([]item, len(left))
		for number, at := range left {
			send[number] = batch[at]
		}
		outcomes, err := c.sendBatch(ctx, send)
		if err != nil {
			return nil, err
		}
		var again []int
		var longest *time.Duration
		for number, at := range left {
			found[at] = outcomes[number]
			repeat, after := mayRepeat(outcomes[number].Err)
			if !repeat {
				continue
			}
			again = append(again, at)
			if after != nil && (longest == nil || *after > *longest) {
				longest = after
			}
		}
		delay, goesOn := c.transport.retry.delay(attempt, longest, waited)
		if len(again) == 0 || !goesOn {
			return found, nil
		}
		observe(c.transport.hooks.OnRetry, RetryPlanned{
			RequestSent{http.MethodPost, c.base + "/events/batch", attempt}, found[again[0]].Err, delay})
		if err := c.transport.sleep(ctx, delay); err != nil {
			return nil, err
		}
		left, waited = again, waited+delay
	}
}

// sendBatch sends a batch, in halves where the service takes smaller ones, and keeps the receipts.
func (c *Client) sendBatch(ctx context.Context, batch []item) ([]Outcome, error) {
	if len(batch) == 1 && len(batch[0].line) >= bytesMax {
		return c.registerLarge(ctx, batch[0])
	}
	var body bytes.Buffer
	for _, one := range batch {
		body.Write(one.line)
		body.WriteByte('\n')
	}
	var outcomes []Outcome
	err := c.perform(ctx, call{method: http.MethodPost, target: "/events/batch", body: body.Bytes(),
		contentType: "application/x-ndjson"}, func(got *answer) error {
		data, err := got.read(answerMax)
		if err == nil {
			outcomes, err = outcomesOf(batch, data)
		}
		return err
	})
	if errors.Is(err, ErrTooLarge) { // nothing of it was registered
		return c.sendHalves(ctx, batch)
	}
	if err != nil {
		return nil, err
	}
	var events []*Event
	for _, one := range outcomes {
		if one.Event != nil {
			events = append(events, one.Event)
		}
	}
	if err := c.keep(events); err != nil {
		return nil, err
	}
	for number, one := range outcomes {
		if err := checkDigest(batch[number].declaration.Hash, one.Event); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (c *Client) sendHalves(ctx context.Context, batch []item) ([]Outcome, error) {
	if len(batch) == 1 {
		return c.registerLarge(ctx, batch[0])
	}
	half := len(batch) / 2
	first, err := c.sendBatch(ctx, batch[:half])
	if err != nil {
		return nil, err
	}
	second, err := c.sendBatch(ctx, batch[half:])
	return append(first, second...), err
}

// registerLarge has the service say itself what it thinks of an item that no batch can hold.
func (c *Client) registerLarge(ctx context.Context, one item) ([]Outcome, error) {
	event, err := c.registerBody(ctx, one.declaration, one.line)
	outcome := Outcome{ClientRef: one.declaration.ClientRef, Event: event}
	var refused *APIError
	if errors.As(err, &refused) {
		outcome.Err = refused
		return []Outcome{outcome}, nil
	}
	return []Outcome{outcome}, err
}

// outcomesOf returns what the service answered, one line for each item in their order.
func outcomesOf(batch []item, data []byte) ([]Outcome, error) {
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(lines) != len(batch) {
		return nil, unexpected("%d items were sent, and %d lines came back", len(batch), len(lines))
	}
	outcomes := make([]Outcome, len(batch))
	for number, line := range lines {
		outcome, err := outcomeOf(batch[number].declaration.ClientRef, line)
		if err != nil {
			return nil, err
		}
		outcomes[number] = outcome
	}
	return outcomes, nil
}

// outcomeOf reads an Event or an Error, with `http_status`.
func outcomeOf(reference string, line []byte) (Outcome, error) {
	none := unexpected("a line of the answer is not of a batch")
	var members map[string]json.RawMessage
	var head struct {
		Status     int    `json:"http_status"`
		RetryAfter *int64 `json:"retry_after"`
	}
	if json.Unmarshal(line, &members) != nil || json.Unmarshal(line, &head) != nil {
		return Outcome{}, none
	}
	if head.Status >= 300 {
		var record map[string]any
		if json.Unmarshal(line, &record) != nil {
			return Outcome{}, none
		}
		refused := refused(head.Status, record)
		if head.RetryAfter != nil && *head.RetryAfter >= 0 && *head.RetryAfter < 1<<32 {
			wait := time.Duration(*head.RetryAfter) * time.Second
			refused.RetryAfter = &wait
		}
		return Outcome{ClientRef: reference, Err: refused}, nil
	}
	delete(members, "http_status")
	record, err := marshal(members)
	event := &Event{}
	if head.Status < 200 || err != nil || json.Unmarshal(record, event) != nil || event.EventID == "" {
		return Outcome{}, none
	}
	event.Replayed = head.Status == http.StatusOK
	return Outcome{ClientRef: reference, Event: event}, checkReference(reference, event)
}

// checkReference refuses the receipt of another declaration.
func checkReference(reference string, event *Event) error {
	if event.ClientRef != reference {
		return unexpected("the answer is about %q, not %q", event.ClientRef, reference)
	}
	return nil
}
