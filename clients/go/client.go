package constancia

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	pollFirst   = 250 * time.Millisecond
	pollLongest = 5 * time.Second
	waitDefault = 10 * time.Minute
	pageSize    = 500
)

// Options are those of a client.
type Options struct {
	// URL is of the interface, `https://…/v1`.
	URL string
	// Key is not needed for what anybody may ask.
	Key string
	// Receipts keeps the receipt of each registration before the call returns: a ReceiptFile, or a sink of one's own.
	Receipts Sink
	// Language is of messages and ReportURL: "en" or "es".
	Language string
	// Timeout is the time without a sign of the service. A minute by default.
	Timeout time.Duration
	Retry   Retry
	Hooks   Hooks
	// Scenario is, with a test key, the refusal that is forced.
	Scenario string
	// HeaderPrefix is the installation's. "SVC" by default.
	HeaderPrefix string
	// UserAgent goes before this client's own.
	UserAgent string
	// HTTPClient is for roots or a proxy of one's own.
	HTTPClient *http.Client
	// DownloadMax is the most bytes that a file has which is fetched to the disk. 4 GiB by default. Save takes no more
	// than the service has on record for a file.
	DownloadMax int64
}

// No file that the service issues is larger.
const downloadMax = 1 << 32

// Client is a channel, in the mode of its key. Goroutines may share one.
type Client struct {
	base, site  string
	open, keyed http.Header
	transport   *transport
	receipts    Sink
	downloadMax int64
}

// New returns a client. It does not connect.
func New(options Options) (*Client, error) {
	base := strings.TrimRight(options.URL, "/")
	parsed, err := url.Parse(base)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil ||
		parsed.RawQuery != "" || parsed.Fragment != "" {
		return nil, errors.New("an address is http:// or https://, a host, and no user name")
	}
	if !strings.HasSuffix(base, "/v1") {
		base += "/v1"
	}
	client := &Client{base: base, site: strings.TrimSuffix(base, "/v1"), receipts: options.Receipts}
	if err := client.setHeaders(options); err != nil {
		return nil, err
	}
	client.transport = &transport{client: httpClient(options.HTTPClient), timeout: options.Timeout,
		retry: options.Retry, hooks: options.Hooks, sleep: pause}
	client.downloadMax = options.DownloadMax
	if options.DownloadMax == 0 {
		client.downloadMax = downloadMax
	}
	if options.Timeout == 0 {
		client.transport.timeout = time.Minute
	}
	if options.Retry.Attempts == 0 {
		client.transport.retry.Attempts = 5
	}
	if options.Retry.Patience == 0 {
		client.transport.retry.Patience = time.Minute
	}
	return client, nil
}

// httpClient returns one that follows no redirection: the service has none, and a key goes nowhere else.
func httpClient(given *http.Client) *http.Client {
	var own http.Client
	if given != nil {
		own = *given
	} else {
		kept := http.DefaultTransport.(*http.Transport).Clone()
		kept.MaxIdleConnsPerHost = 64
		own.Transport = kept
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

var (
	keyForm    = regexp.MustCompile(`^[!-~]+$`)
	nameForm   = regexp.MustCompile("^[!#-'*+.^-z|~A-Z0-9-]+$")
	headerForm = regexp.MustCompile(`^[\t -~]*$`)
)

func (c *Client) setHeaders(options Options) error {
	agent := fmt.Sprintf("constancia-go/%s %s", Version, runtime.Version())
	if options.UserAgent != "" {
		agent = options.UserAgent + " " + agent
	}
	c.open = http.Header{"Accept": {"application/json, */*;q=0.5"}, "Accept-Encoding": {"identity"},
		"User-Agent": {agent}}
	if options.Language != "" {
		c.open.Set("Accept-Language", options.Language)
	}
	c.keyed = c.open.Clone()
	if options.Key != "" {
		if !keyForm.MatchString(options.Key) {
			return errors.New("the key has what no key has, such as a line's end")
		}
		c.keyed.Set("Authorization", "Bearer "+options.Key)
	}
	if options.Scenario != "" {
		prefix := options.HeaderPrefix
		if prefix == "" {
			prefix = "SVC"
		}
		c.keyed.Set("X-"+prefix+"-Test-Scenario", options.Scenario)
	}
	for name, values := range c.keyed {
		if !nameForm.MatchString(name) || !headerForm.MatchString(values[0]) {
			return fmt.Errorf("%s has what no header has, such as a line's end", name)
		}
	}
	return nil
}

func (c *Client) String() string { return "constancia.Client " + c.base }

// GoString is String: a client's key is not printed.
func (c *Client) GoString() string { return c.String() }

// Close ends the connections that are kept; the next call makes new ones.
func (c *Client) Close() { c.transport.client.CloseIdleConnections() }

// ---- registering: repeated with the same reference it has the effect of once ----

// RegisterOption is for a registration.
type RegisterOption func(*registration)

type registration struct {
	occurredAt time.Time
	name       string
}

// OccurredAt declares the time of the fact.
func OccurredAt(when time.Time) RegisterOption { return func(r *registration) { r.occurredAt = when } }

// FileName is that of a file, instead of its own.
func FileName(name string) RegisterOption { return func(r *registration) { r.name = name } }

func optionsOf(options []RegisterOption) registration {
	var all registration
	for _, one := range options {
		one(&all)
	}
	return all
}

// Register registers a JSON object, on a channel that keeps content: a map, a struct, or a json.RawMessage. After a
// lost answer call it again with the same reference: it is registered once.
func (c *Client) Register(ctx context.Context, clientRef string, payload any, options ...RegisterOption) (*Event, error) {
	if payload == nil {
		return nil, fmt.Errorf("%s: there is no payload", clientRef)
	}
	return c.register(ctx, Declaration{ClientRef: clientRef, Payload: payload, OccurredAt: optionsOf(options).occurredAt})
}

// RegisterDigest registers a SHA-256 or SHA-512 alone, on a channel that keeps no content; Digest takes a file's.
func (c *Client) RegisterDigest(ctx context.Context, clientRef, digest string, options ...RegisterOption) (*Event, error) {
	if _, err := algorithmOf(digest); err != nil {
		return nil, fmt.Errorf("%s: %w", clientRef, err)
	}
	return c.register(ctx, Declaration{ClientRef: clientRef, Hash: digest, OccurredAt: optionsOf(options).occurredAt})
}

func (c *Client) register(ctx context.Context, declared Declaration) (*Event, error) {
	body, err := declared.body()
	if err != nil {
		return nil, err
	}
	return c.registerBody(ctx, declared, body)
}

func (c *Client) registerBody(ctx context.Context, declared Declaration, body []byte) (*Event, error) {
	return c.registered(ctx, call{method: http.MethodPost, target: "/events", body: body}, declared.ClientRef,
		func() string { return declared.Hash })
}

// RegisterFile registers a file, on a channel that keeps content. It goes in pieces, and what the receipt says is
// compared with the digest of what was sent.
func (c *Client) RegisterFile(ctx context.Context, clientRef, path string, options ...RegisterOption) (*Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return c.RegisterReader(ctx, clientRef, file, append([]RegisterOption{FileName(path)}, options...)...)
}

// RegisterReader registers what can be read from here to the end, as a file. Another attempt reads it again.
func (c *Client) RegisterReader(ctx context.Context, clientRef string, file io.ReadSeeker,
	options ...RegisterOption) (*Event, error) {
	given := optionsOf(options)
	fields := [][2]string{{"client_ref", clientRef}}
	if !given.occurredAt.IsZero() {
		fields = append(fields, [2]string{"occurred_at", utc(given.occurredAt)})
	}
	made, err := newForm(fields, file, given.name)
	if err != nil {
		return nil, err
	}
	return c.registered(ctx, call{method: http.MethodPost, target: "/events", form: made}, clientRef, made.sha256)
}

// registered sends a registration, and keeps its receipt.
func (c *Client) registered(ctx context.Context, made call, clientRef string, hash func() string) (*Event, error) {
	event := &Event{}
	err := c.perform(ctx, made, func(got *answer) error {
		if err := got.decode(event); err != nil {
			return err
		}
		if event.EventID == "" {
			return unexpected("%s: the answer is no event", got.name)
		}
		event.Replayed = isReplayed(got)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.keep([]*Event{event}); err != nil {
		return event, err
	}
	if err := checkReference(clientRef, event); err != nil {
		return event, err
	}
	return event, checkDigest(hash(), event)
}

func (c *Client) keep(events []*Event) error {
	if c.receipts == nil || len(events) == 0 {
		return nil
	}
	if err := c.receipts.Keep(events); err != nil {
		return &ReceiptNotKeptError{events, err}
	}
	return nil
}

// checkDigest refuses a receipt of another digest than was declared.
func checkDigest(declared string, event *Event) error {
	if declared == "" || event == nil || event.Hash == strings.ToLower(declared) {
		return nil
	}
	return &DigestMismatchError{event.EventID + " as it was recorded", declared, event.Hash}
}

func isReplayed(got *answer) bool {
	return strings.EqualFold(got.header.Get("Idempotent-Replayed"), "true")
}

// ---- events ----

// EventFilter is what a list of events lets through. Zero values let all through.
type EventFilter struct {
	From, To       time.Time
	SeqFrom, SeqTo int64
	Status         EventStatus
	ClientRef      string
	Hash           string
	HashAlg        Algorithm
	Order          string // "asc" by default, or "desc"
	Limit          int    // of a page
	Cursor         string // of EventsPage
}

func (f EventFilter) query() url.Values {
	return queryOf(map[string]any{"from": f.From, "to": f.To, "seq_from": f.SeqFrom, "seq_to": f.SeqTo,
		"status": string(f.Status), "client_ref": f.ClientRef, "hash": f.Hash, "hash_alg": string(f.HashAlg), "order": f.Order,
		"limit": int64(f.Limit), "cursor": f.Cursor})
}

// Events gives all events that the filter lets through, fetched page by page while they are used.
func (c *Client) Events(ctx context.Context, filter EventFilter) *Iterator[Event] {
	if filter.Limit == 0 {
		filter.Limit = pageSize
	}
	return newIterator(func() ([]Event, bool, error) {
		page, err := c.EventsPage(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		filter.Cursor = page.NextCursor
		return page.Data, page.NextCursor != "", nil
	})
}

// EventsPage returns one page, for programs that keep a cursor.
func (c *Client) EventsPage(ctx context.Context, filter EventFilter) (*Page[Event], error) {
	return fetchPage[Event](ctx, c, "/events", filter.query())
}

// Event returns an event with its proof.
func (c *Client) Event(ctx context.Context, eventID string) (*EventWithProof, error) {
	return ask[EventWithProof](ctx, c, "/events/", eventID, "")
}

// FindDigest gives the channel's events with this digest of their content, in the order of the chain.
func (c *Client) FindDigest(ctx context.Context, digest string) *Iterator[Event] {
	algorithm, err := algorithmOf(digest)
	if err != nil {
		return newIterator(func() ([]Event, bool, error) { return nil, false, err })
	}
	return c.Events(ctx, EventFilter{Hash: strings.ToLower(digest), HashAlg: algorithm})
}

// FindFile returns the channel's events that declare this file, by SHA-256 or SHA-512. It is hashed here and not sent.
func (c *Client) FindFile(ctx context.Context, path string) ([]Event, error) {
	var found []Event
	for _, algorithm := range []Algorithm{SHA256, SHA512} {
		events, err := c.find(ctx, path, algorithm).All()
		if err != nil {
			return nil, err
		}
		found = append(found, events...)
	}
	return found, nil
}

// IsOnRecord returns whether an event of the channel declares this file. It is hashed here and not sent.
func (c *Client) IsOnRecord(ctx context.Context, path string) (bool, error) {
	for _, algorithm := range []Algorithm{SHA256, SHA512} {
		events := c.find(ctx, path, algorithm)
		if events.Next() {
			return true, nil
		}
		if err := events.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (c *Client) find(ctx context.Context, path string, algorithm Algorithm) *Iterator[Event] {
	digest, err := Digest(path, algorithm)
	if err != nil {
		return newIterator(func() ([]Event, bool, error) { return nil, false, err })
	}
	return c.FindDigest(ctx, digest)
}

// Content returns the declared content, in memory; SaveContent writes it to a file and checks it.
func (c *Client) Content(ctx context.Context, eventID string) (*Content, error) {
	content := &Content{}
	target, err := stepOf("/events/", eventID, "/content")
	if err != nil {
		return nil, err
	}
	err = c.perform(ctx, call{method: http.MethodGet, target: target}, func(got *answer) error {
		var err error
		content.MediaType, _, _ = mime.ParseMediaType(got.header.Get("Content-Type"))
		if _, given, err := mime.ParseMediaType(got.header.Get("Content-Disposition")); err == nil {
			content.FileName = given["filename"]
		}
		content.Body, err = got.read(answerMax)
		return err
	})
	return content, err
}

// SaveContent writes the declared content to a file, checked against the event's digest, which it returns.
func (c *Client) SaveContent(ctx context.Context, event *Event, path string, progress Progress) (string, error) {
	target, err := stepOf("/events/", event.EventID, "/content")
	if err != nil {
		return "", err
	}
	return c.download(ctx, c.base+target, c.keyed, path, event.Hash, event.HashAlg, progress, c.downloadMax)
}

// EventEvidenceRecord returns a record of RFC 4998, in DER; ErrNotFound until the event is sealed.
func (c *Client) EventEvidenceRecord(ctx context.Context, eventID string) ([]byte, error) {
	return c.record(ctx, "/events/", eventID)
}

// ---- channel and account ----

// Channel returns the channel with the newest 1,000 versions of its configuration, numbered from 1.
func (c *Client) Channel(ctx context.Context) (*Channel, error) {
	return ask[Channel](ctx, c, "/channel", "", "")
}

// ChannelBefore is Channel with the versions before one, while the first of an answer is later than 1.
func (c *Client) ChannelBefore(ctx context.Context, version int64) (*Channel, error) {
	return ask[Channel](ctx, c, "/channel?before_version="+strconv.FormatInt(version, 10), "", "")
}

// ChannelSeals fetches the seal documents of the segments that contain events of a range to a file, for "constancia
// verify --bridge", and returns its SHA-256. A bound of the range that is not set is an end of the chain.
func (c *Client) ChannelSeals(ctx context.Context, wanted Range, path string, progress Progress) (string, error) {
	query := queryOf(map[string]any{"from": wanted.From, "to": wanted.To})
	for name, sequence := range map[string]int64{"from": wanted.SeqFrom, "to": wanted.SeqTo} {
		if sequence != 0 && query.Has(name) {
			return "", errors.New("a bound is a sequence number or a time, not both")
		}
		if sequence != 0 {
			query.Set(name, strconv.FormatInt(sequence, 10))
		}
	}
	target := c.base + "/channel/seals?" + query.Encode()
	return c.download(ctx, target, c.keyed, path, "", SHA256, progress, c.downloadMax)
}

// Balance returns the credits of the account that owns the channel.
func (c *Client) Balance(ctx context.Context) (*AccountBalance, error) {
	return ask[AccountBalance](ctx, c, "/account/balance", "", "")
}

// ---- notices of the test mode ----

// NoticeFilter is where a page of notices begins. Wait is rounded to seconds, and at most 30 of them.
type NoticeFilter struct {
	Cursor string // NextCursor of an earlier page; "": the page is empty, and its NextCursor the present end
	Wait   time.Duration
	Limit  int
}

// NoticesPage returns the notices of the test mode after the cursor, with a test key. If there are none, the service waits
// for one as long as Wait, or less. NextCursor is where the next page begins, also after the last one.
func (c *Client) NoticesPage(ctx context.Context, filter NoticeFilter) (*Page[Notice], error) {
	return fetchPage[Notice](ctx, c, "/notices", queryOf(map[string]any{"cursor": filter.Cursor,
		"wait": int64(filter.Wait.Round(time.Second) / time.Second), "limit": int64(filter.Limit)}))
}

// CreateNotice makes a notice with sample data for NoticesPage, with a test key.
func (c *Client) CreateNotice(ctx context.Context, kind string) (*Notice, error) {
	body, err := marshal(map[string]any{"type": kind})
	if err != nil {
		return nil, err
	}
	notice := &Notice{}
	err = c.perform(ctx, call{method: http.MethodPost, target: "/notices", body: body}, func(got *answer) error {
		return got.decode(notice)
	})
	if err != nil {
		return nil, err
	}
	return notice, nil
}

// ---- certifications ----

// Certify asks for a certification of a range. It is issued after the answer: see Wait.
//
// An empty idempotency key is made for the call, and goes with each of its attempts, so that one certification comes of
// them and one fee. To be as safe beyond the call, store a key of your own before it, and give that: for 24 hours it
// answers with that certification. A CertifyError has the key that was sent.
func (c *Client) Certify(ctx context.Context, wanted Range, idempotencyKey string) (*Certification, error) {
	key := idempotencyKey
	if key == "" {
		made, err := token()
		if err != nil {
			return nil, err
		}
		key = made
	}
	if len(key) > 255 || !keyForm.MatchString(key) {
		return nil, errors.New("an idempotency key is 1 to 255 visible ASCII characters")
	}
	body, err := wanted.body()
	if err != nil {
		return nil, err
	}
	certification := &Certification{}
	err = c.perform(ctx, call{method: http.MethodPost, target: "/certifications", body: body,
		header: http.Header{"Idempotency-Key": {key}}}, certification.read)
	if err != nil {
		return nil, &CertifyError{key, err}
	}
	return certification, nil
}

// read takes a certification from an answer.
func (c *Certification) read(got *answer) error {
	*c = Certification{}
	if err := got.decode(c); err != nil {
		return err
	}
	if c.CertificationID == "" {
		return unexpected("%s: the answer is no certification", got.name)
	}
	c.Replayed = isReplayed(got)
	if after := retryAfter(got.header.Get("Retry-After")); after != nil {
		c.RetryAfter = *after
	}
	return nil
}

// Certification returns a certification, with fresh links.
func (c *Client) Certification(ctx context.Context, certificationID string) (*Certification, error) {
	target, err := stepOf("/certifications/", certificationID, "")
	if err != nil {
		return nil, err
	}
	certification := &Certification{}
	return certification, c.perform(ctx, call{method: http.MethodGet, target: target}, certification.read)
}

// CertificationFilter is what a list of certifications lets through. Zero values let all through.
type CertificationFilter struct {
	Status CertificationStatus
	Order  string // "desc" by default, the newest first, or "asc"
	Limit  int    // of a page
	Cursor string // of CertificationsPage
}

// Certifications gives all that the filter lets through, fetched page by page while they are used.
func (c *Client) Certifications(ctx context.Context, filter CertificationFilter) *Iterator[Certification] {
	if filter.Limit == 0 {
		filter.Limit = pageSize
	}
	return newIterator(func() ([]Certification, bool, error) {
		page, err := c.CertificationsPage(ctx, filter)
		if err != nil {
			return nil, false, err
		}
		filter.Cursor = page.NextCursor
		return page.Data, page.NextCursor != "", nil
	})
}

// CertificationsPage returns one page, for programs that keep a cursor.
func (c *Client) CertificationsPage(ctx context.Context, filter CertificationFilter) (*Page[Certification], error) {
	return fetchPage[Certification](ctx, c, "/certifications", queryOf(map[string]any{"status": string(filter.Status),
		"order": filter.Order, "limit": int64(filter.Limit), "cursor": filter.Cursor}))
}

// Wait returns the certification once it is completed. progress, which may be nil, is called with each state that is
// seen; the last one's Progress is 1. Between them it waits as long as Retry-After says, or longer. It ends with the
// context, or after ten minutes where that has no end: a NotIssuedError; or with a CertificationFailedError.
func (c *Client) Wait(ctx context.Context, certificationID string, progress func(*Certification)) (*Certification, error) {
	if _, has := ctx.Deadline(); !has {
		limited, cancel := context.WithTimeout(ctx, waitDefault)
		defer cancel()
		ctx = limited
	}
	var last *Certification
	for next := pollFirst; ; next *= 2 {
		now, err := c.Certification(ctx, certificationID)
		if err != nil {
			if ended := ctx.Err(); ended != nil {
				err = &NotIssuedError{last, ended}
			}
			return nil, err
		}
		if now.Status == CertificationStatusCompleted {
			whole := 1.0
			now.Progress = &whole
		}
		last = now
		if progress != nil {
			progress(now)
		}
		switch now.Status {
		case CertificationStatusCompleted:
			return now, nil
		case CertificationStatusFailed:
			return nil, &CertificationFailedError{now}
		}
		if next > pollLongest {
			next = pollLongest
		}
		delay := next
		if now.RetryAfter > delay {
			delay = now.RetryAfter
		}
		if err := c.transport.sleep(ctx, delay); err != nil {
			return nil, &NotIssuedError{last, err}
		}
	}
}

// CertificationEvidenceRecord returns a record of RFC 4998, in DER; ErrNotFound until it is made, soon after issuing.
func (c *Client) CertificationEvidenceRecord(ctx context.Context, certificationID string) ([]byte, error) {
	return c.record(ctx, "/certifications/", certificationID)
}

// Download fetches an issued file by its link, to a file that comes into its place whole; the key does not go with it.
// It returns its SHA-256, which has to be the given one if that is not empty. With it a later call goes on where one
// that failed ended. progress may be nil.
func (c *Client) Download(ctx context.Context, link, path, sha256 string, progress Progress) (string, error) {
	return c.download(ctx, link, c.open, path, sha256, SHA256, progress, c.downloadMax)
}

func (c *Client) download(ctx context.Context, link string, header http.Header, path, expected string,
	algorithm Algorithm, progress Progress, most int64) (string, error) {
	made, err := newDownload(path, expected, algorithm, progress, most)
	if err != nil {
		return "", err
	}
	return made.run(ctx, c.transport, func(more http.Header) *request {
		all := header.Clone()
		for name := range more {
			all.Set(name, more.Get(name))
		}
		return &request{method: http.MethodGet, url: link, header: all}
	})
}

// Files are those of a certification, by their paths.
type Files struct {
	Archive string   // the evidence
	Reports []string // in Spanish and English
	Parts   []string // of content
}

// Save fetches all files of a completed certification into a folder, each checked against the digest that the service
// has on record for it. Their names have the certification's, so that a folder may have the files of several.
func (c *Client) Save(ctx context.Context, certification *Certification, folder string) (*Files, error) {
	code := certification.VerificationCode
	if certification.Status != CertificationStatusCompleted || code == nil {
		return nil, fmt.Errorf("%s is not completed", certification.CertificationID)
	}
	links, err := linksOf(certification)
	if err != nil {
		return nil, err
	}
	issued, err := c.Verify(ctx, *code)
	if err != nil {
		return nil, err
	}
	documents := map[string]IssuedDocument{}
	for _, document := range issued.Documents {
		documents[document.Name] = document
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	var saved []string
	for _, link := range links {
		path, err := c.saveOne(ctx, certification.CertificationID, link, folder, documents)
		if err != nil {
			return nil, err
		}
		saved = append(saved, path)
	}
	parts := 1 + len(certification.Reports)
	return &Files{Archive: saved[0], Reports: saved[1:parts:parts], Parts: saved[parts:]}, nil
}

// linksOf returns those of a completed certification's files, none of which may be missing.
func linksOf(certification *Certification) ([]string, error) {
	var links []string
	var missing error
	add := func(member, link string) {
		if link == "" && missing == nil {
			missing = unexpected("%s is completed and has no %s: ask for the certification again",
				certification.CertificationID, member)
		}
		links = append(links, link)
	}
	archive := ""
	if certification.EvidenceURL != nil {
		archive = *certification.EvidenceURL
	}
	add("evidence_url", archive)
	for number, report := range certification.Reports {
		add(fmt.Sprintf("reports[%d].url", number), report.URL)
	}
	for number, part := range certification.ContentParts {
		add(fmt.Sprintf("content_parts[%d].url", number), part.URL)
	}
	return links, missing
}

func (c *Client) saveOne(ctx context.Context, own, link, folder string, documents map[string]IssuedDocument) (string, error) {
	parsed, err := url.Parse(link)
	if err != nil {
		return "", unexpected("the link of a file is no address")
	}
	name := path.Base(parsed.Path)
	document := documents[name]
	if document.Sha256 == "" || name == "." || name == ".." || filepath.Base(name) != name {
		return "", unexpected("the service has no digest of %q", name)
	}
	target := filepath.Join(folder, name)
	if !strings.Contains(name, own) {
		target = filepath.Join(folder, filepath.Base(own+"-"+name))
	}
	most := c.downloadMax
	if document.Bytes > 0 && document.Bytes < most {
		most = document.Bytes
	}
	_, err = c.download(ctx, link, c.open, target, document.Sha256, SHA256, nil, most)
	return target, err
}

// ---- what anybody may ask ----

// Signers returns the certificates that sign, or signed, what the service issues.
func (c *Client) Signers(ctx context.Context) ([]Signer, error) {
	list, err := ask[struct {
		Data []Signer `json:"data"`
	}](ctx, c, "/signers", "", "")
	if err != nil {
		return nil, err
	}
	return list.Data, nil
}

// SignerList returns the same as the service signed it (CMS, in DER), for `constancia verify --signers`; ErrNotFound
// while there is none.
func (c *Client) SignerList(ctx context.Context) ([]byte, error) { return c.bytes(ctx, "/signers.p7m") }

// Verify returns what the service issued under this code; ErrNotFound if nothing.
func (c *Client) Verify(ctx context.Context, code string) (*Verification, error) {
	return ask[Verification](ctx, c, c.site+"/verify/", code, "")
}

// VerifyDigest returns the certification with a file of this SHA-256; ErrNotFound if none.
func (c *Client) VerifyDigest(ctx context.Context, sha256 string) (*Verification, error) {
	return ask[Verification](ctx, c, c.site+"/verify?sha256="+url.QueryEscape(sha256), "", "")
}

// VerifyFile has a report or an archive checked in full by the service. VerifyArchive does it here.
func (c *Client) VerifyFile(ctx context.Context, path string) (*FileCheck, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	made, err := newForm(nil, file, path)
	if err != nil {
		return nil, err
	}
	check := &FileCheck{}
	return check, c.perform(ctx, call{method: http.MethodPost, target: c.site + "/verify", form: made},
		func(got *answer) error { return got.decode(check) })
}

// Description returns the interface's description in OpenAPI.
func (c *Client) Description(ctx context.Context) (string, error) {
	text, err := c.bytes(ctx, "/openapi.yaml")
	return string(text), err
}

// WebhookDescription returns that of the notices.
func (c *Client) WebhookDescription(ctx context.Context) (string, error) {
	text, err := c.bytes(ctx, "/webhooks.yaml")
	return string(text), err
}

// ---- requests ----

// call is what perform sends.
type call struct {
	method string
	target string // a path of the interface, with the key; or a public page, without
	header http.Header
	// One of these, or none.
	body        []byte
	contentType string // of body; JSON by default
	form        *form
}

func (c *Client) perform(ctx context.Context, made call, consume func(*answer) error) error {
	header, address := c.open, made.target
	if strings.HasPrefix(address, "/") {
		header, address = c.keyed, c.base+address
	}
	prepare := func() (*request, error) {
		next := &request{method: made.method, url: address, header: header.Clone()}
		for name, values := range made.header {
			next.header[name] = values
		}
		switch {
		case made.form != nil:
			reader, err := made.form.reader()
			if err != nil {
				return nil, err
			}
			next.header.Set("Content-Type", made.form.contentType)
			next.body, next.length = reader, made.form.length()
		case made.body != nil:
			contentType := made.contentType
			if contentType == "" {
				contentType = "application/json"
			}
			next.header.Set("Content-Type", contentType)
			next.body, next.length = bytes.NewReader(made.body), int64(len(made.body))
		}
		return next, nil
	}
	return c.transport.perform(ctx, prepare, consume)
}

// ask returns the JSON of an answer. name is a step of the path between two others, or empty.
func ask[T any](ctx context.Context, c *Client, before, name, after string) (*T, error) {
	target := before
	if strings.HasSuffix(before, "/") {
		made, err := stepOf(before, name, after)
		if err != nil {
			return nil, err
		}
		target = made
	}
	var result *T
	err := c.perform(ctx, call{method: http.MethodGet, target: target}, func(got *answer) error {
		result = new(T)
		return got.decode(result)
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// stepOf returns a path with a name in it.
func stepOf(before, name, after string) (string, error) {
	if name == "" || name == "." || name == ".." {
		return "", fmt.Errorf("%q names nothing", name)
	}
	return before + url.PathEscape(name) + after, nil
}

func fetchPage[T any](ctx context.Context, c *Client, target string, query url.Values) (*Page[T], error) {
	list, err := ask[struct {
		Data       []T     `json:"data"`
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	}](ctx, c, target+"?"+query.Encode(), "", "")
	if err != nil {
		return nil, err
	}
	page := &Page[T]{Data: list.Data, HasMore: list.HasMore}
	if list.NextCursor != nil {
		page.NextCursor = *list.NextCursor
	}
	return page, nil
}

// queryOf returns parameters without those of zero values.
func queryOf(given map[string]any) url.Values {
	query := url.Values{}
	for name, value := range given {
		switch one := value.(type) {
		case time.Time:
			if !one.IsZero() {
				query.Set(name, utc(one))
			}
		case int64:
			if one != 0 {
				query.Set(name, strconv.FormatInt(one, 10))
			}
		case string:
			if one != "" {
				query.Set(name, one)
			}
		}
	}
	return query
}

func (c *Client) bytes(ctx context.Context, target string) ([]byte, error) {
	var data []byte
	err := c.perform(ctx, call{method: http.MethodGet, target: target}, func(got *answer) error {
		var err error
		data, err = got.read(answerMax)
		return err
	})
	return data, err
}

// record returns an evidence record. Its ETag is its SHA-256.
func (c *Client) record(ctx context.Context, before, name string) ([]byte, error) {
	target, err := stepOf(before, name, "/evidence-record")
	if err != nil {
		return nil, err
	}
	var data []byte
	err = c.perform(ctx, call{method: http.MethodGet, target: target}, func(got *answer) error {
		var err error
		if data, err = got.read(answerMax); err != nil {
			return err
		}
		digest := sha256.Sum256(data)
		found, stated := hex.EncodeToString(digest[:]), strings.Trim(got.header.Get("ETag"), `"`)
		if stated != found {
			return &DigestMismatchError{"the evidence record", stated, found}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}
