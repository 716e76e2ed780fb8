package constancia

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const balance = `{"balance":1,"operational":true,"unpaid_events":0}`

func TestRetriesWaitAtLeastAsLongAsTheServiceSays(t *testing.T) {
	server := newScript(t, say(503, "", "Retry-After", "1"), say(429, "", "Retry-After", "2"), say(502, ""), say(200, balance))
	client, naps := server.newClient(t, func(options *Options) { options.UserAgent = "shop/1" })
	found, err := client.Balance(background)
	must(t, err)
	expect(t, found.Balance == 1 && found.Operational, "%v", found)
	expect(t, len(*naps) == 3 && (*naps)[0] >= time.Second && (*naps)[1] >= 2*time.Second && (*naps)[2] >= time.Second,
		"%v", *naps)
	request := server.all()[0]
	expect(t, request.URL.Path == "/v1/account/balance" && request.Header.Get("Authorization") == "Bearer svc_test_secret" &&
		request.Header.Get("Accept-Encoding") == "identity" &&
		strings.HasPrefix(request.Header.Get("User-Agent"), "shop/1 constancia-go/"), "%v", request.Header)
}

func TestWhatIsTooLongToWaitForIsReturnedAtOnce(t *testing.T) {
	server := newScript(t, say(429, "", "Retry-After", "40000"),
		say(500, `{"code":"internal","message":"m","incident_id":"inc_1"}`, "X-Request-Id", "req_1"),
		say(302, "", "Location", "http://127.0.0.1:1/"), say(200, "<html>"), say(200, `{"balance":"x"}`))
	client, naps := server.newClient(t)
	_, err := client.Balance(background)
	var refused *APIError
	expect(t, errors.As(err, &refused) && *refused.RetryAfter == 40000*time.Second && errors.Is(err, ErrTooManyRequests), "%v", err)
	_, err = client.Balance(background)
	expect(t, errors.Is(err, ErrServer) && !errors.Is(err, ErrUnavailable) && strings.Contains(err.Error(), "inc_1") &&
		strings.Contains(err.Error(), "req_1"), "%v", err)
	_, err = client.Balance(background)
	expect(t, errors.As(err, &refused) && refused.Status == 302, "%v", err)
	for range []int{1, 2} {
		var other *UnexpectedAnswerError
		_, err = client.Balance(background)
		expect(t, errors.As(err, &other), "%v", err)
	}
	expect(t, len(server.all()) == 5 && len(*naps) == 0, "%d", len(server.all()))
}

func TestRetriesEndWithThePatience(t *testing.T) {
	busy := make([]reply, 200)
	for number := range busy {
		busy[number] = say(503, "")
	}
	server := newScript(t, busy...)
	client, naps := server.newClient(t, func(options *Options) {
		options.Retry = Retry{Attempts: 200, Patience: 10 * time.Second}
	})
	_, err := client.Balance(background)
	var refused *APIError
	var waited time.Duration
	for _, one := range *naps {
		waited += one
	}
	expect(t, errors.As(err, &refused) && len(server.all()) == len(*naps)+1 && len(*naps) < 12, "%v %v", err, *naps)
	expect(t, waited == 10*time.Second, "%v", waited)
	for attempt := 1; attempt < 200; attempt++ {
		delay, again := Retry{Attempts: 1000, Patience: time.Hour}.delay(attempt, nil, 0)
		expect(t, again && delay > 0 && delay <= time.Hour, "%d: %v", attempt, delay)
	}
}

func TestALostConnectionRepeatsWhatMayBeRepeated(t *testing.T) {
	server := newScript(t, hangUp, cut(200, balance[:9], len(balance)), say(200, balance), hangUp, hangUp)
	client, naps := server.newClient(t, func(options *Options) { options.Retry.Attempts = 3 })
	_, err := client.Balance(background)
	must(t, err)
	expect(t, len(*naps) == 2, "%v", *naps)
	server.add(hangUp)
	_, err = client.Balance(background)
	var lost *ConnectionError
	expect(t, errors.As(err, &lost) && lost.Sent, "%v", err)
}

const accepted = `{"certification_id":"CERT-1","status":"processing"}`

func TestACertificationIsAskedForUnderOneKeyInAllAttempts(t *testing.T) {
	server := newScript(t, hangUp, say(503, "", "Retry-After", "0"), say(502, ""), say(202, accepted),
		say(202, accepted, "Idempotent-Replayed", "true"), say(202, accepted))
	client, _ := server.newClient(t)
	asked, err := client.Certify(background, Range{SeqFrom: 1, SeqTo: 2}, "")
	must(t, err)
	key := server.all()[0].Header.Get("Idempotency-Key")
	expect(t, !asked.Replayed && len(key) >= 22 && string(server.all()[0].body) == `{"seq_from":1,"seq_to":2}`, "%v", asked)
	for _, one := range server.all() {
		expect(t, one.Header.Get("Idempotency-Key") == key, "%v", one.Header)
	}
	asked, err = client.Certify(background, Range{SeqFrom: 1, SeqTo: 2}, "")
	must(t, err)
	expect(t, asked.Replayed && server.all()[4].Header.Get("Idempotency-Key") != key, "%v", asked)
	_, err = client.Certify(background, Range{From: time.Unix(1767323045, 123456789), To: time.Unix(1767323046, 0)}, "own")
	must(t, err)
	expect(t, server.all()[5].Header.Get("Idempotency-Key") == "own" &&
		string(server.all()[5].body) == `{"from":"2026-01-02T03:04:05.123456Z","to":"2026-01-02T03:04:06.000000Z"}`,
		"%s", server.all()[5].body)
	for _, bad := range []string{"a b", "a\n", "ñ", strings.Repeat("k", 256)} {
		_, err = client.Certify(background, Range{SeqFrom: 1, SeqTo: 1}, bad)
		expect(t, err != nil && len(server.all()) == 6, "%q", bad)
	}
}

func TestACertificationThatFailedHasTheKeyForItsRepetition(t *testing.T) {
	server := newScript(t, hangUp, hangUp, hangUp, hangUp, hangUp, say(500, ""), say(202, "<html>"), say(202, "{}"))
	client, _ := server.newClient(t)
	for range []int{1, 2, 3, 4} {
		_, err := client.Certify(background, Range{SeqFrom: 1, SeqTo: 1}, "")
		var failed *CertifyError
		expect(t, errors.As(err, &failed) &&
			failed.IdempotencyKey == server.all()[len(server.all())-1].Header.Get("Idempotency-Key"), "%v", err)
	}
}

func TestRefusalsAreOfTheirKinds(t *testing.T) {
	kinds := []error{ErrInvalidRequest, ErrUnauthorized, ErrPaymentRequired, ErrForbidden, ErrSuspended, ErrAccountDisabled,
		ErrNotFound, ErrConflict, ErrTooLarge, ErrLimitBlocked, ErrTooManyRequests, ErrServer, ErrUnavailable}
	for _, one := range []struct {
		status int
		code   string
		kinds  []error
	}{
		{400, "unheard_of", []error{ErrInvalidRequest}}, {401, "invalid_key", []error{ErrUnauthorized}},
		{402, "", []error{ErrPaymentRequired}}, {403, "suspended", []error{ErrForbidden, ErrSuspended}},
		{403, "account_disabled", []error{ErrForbidden, ErrAccountDisabled}}, {403, "else", []error{ErrForbidden}},
		{404, "", []error{ErrNotFound}}, {409, "suspended", []error{ErrConflict}}, {413, "", []error{ErrTooLarge}},
		{422, "limit_blocked", []error{ErrLimitBlocked}}, {422, "else", nil}, {507, "", []error{ErrServer}},
		{503, "", []error{ErrServer, ErrUnavailable}}, {429, "", []error{ErrTooManyRequests}},
	} {
		server := newScript(t, say(one.status, fmt.Sprintf(`{"code":"%s","message":"m","event_id":"evt_1","new":{"a":[]}}`,
			one.code), "Retry-After", "7200"))
		client, _ := server.newClient(t)
		_, err := client.Balance(background)
		var refused *APIError
		expect(t, errors.As(err, &refused) && refused.Code == one.code && refused.EventID == "evt_1" &&
			*refused.RetryAfter == 2*time.Hour, "%v", err)
		for _, kind := range kinds {
			expect(t, errors.Is(err, kind) == contains(one.kinds, kind), "%v: %v", err, kind)
		}
	}
}

func contains(kinds []error, kind error) bool {
	for _, one := range kinds {
		if one == kind {
			return true
		}
	}
	return false
}

func TestNothingThatListensIsAFailedConnection(t *testing.T) {
	server := newScript(t)
	client, naps := server.newClient(t, func(options *Options) { options.Retry.Attempts = 2 })
	server.listener.Close()
	_, err := client.Balance(background)
	var lost *ConnectionError
	expect(t, errors.As(err, &lost) && !lost.Sent && len(*naps) == 1, "%v", err)
}

func TestSilenceEnds(t *testing.T) {
	silent := make(chan bool)
	defer close(silent)
	server := newScript(t, func(net.Conn, *seen) bool { <-silent; return false })
	client, _ := server.newClient(t, func(options *Options) {
		options.Timeout, options.Retry.Attempts = 200*time.Millisecond, 1
	})
	_, err := client.Balance(background)
	expect(t, err != nil && strings.Contains(err.Error(), "no sign of the service"), "%v", err)
}

func TestACancelledCallSendsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	server := newScript(t, func(net.Conn, *seen) bool { cancel(); return false })
	client, naps := server.newClient(t)
	_, err := client.Balance(ctx)
	expect(t, errors.Is(err, context.Canceled) && len(*naps) == 0, "%v", err)
	_, err = client.Balance(ctx)
	expect(t, errors.Is(err, context.Canceled) && len(server.all()) == 1, "%v", err)
	many := client.RegisterMany(ctx, Declaration{ClientRef: "a", Payload: map[string]any{}})
	expect(t, !many.Next() && errors.Is(many.Err(), context.Canceled), "%v", many.Err())
}

func TestWhatCannotBeSentIsTheCallersMistake(t *testing.T) {
	for _, bad := range []Options{
		{URL: "ftp://127.0.0.1"}, {URL: "http://user:hidden@127.0.0.1/v1"}, {URL: ""}, {URL: "http://127.0.0.1/?a=1"},
		{URL: "http://127.0.0.1", Key: "hidden\n"}, {URL: "http://127.0.0.1", Key: "ñ"},
		{URL: "http://127.0.0.1", UserAgent: "x\ny"}, {URL: "http://127.0.0.1", Language: "e\rn"},
		{URL: "http://127.0.0.1", Scenario: "a\x00"}, {URL: "http://127.0.0.1", Scenario: "a", HeaderPrefix: "S V"},
	} {
		_, err := New(bad)
		expect(t, err != nil && !strings.Contains(err.Error(), "hidden"), "%+v", bad)
	}
	server := newScript(t)
	client, _ := server.newClient(t)
	for _, id := range []string{"", ".", ".."} {
		_, err := client.Event(background, id)
		expect(t, err != nil, "%q", id)
	}
	expect(t, len(server.all()) == 0, "nothing is sent")
}

func TestAFileIsSentAgainFromItsBeginningAndWhatWasRecordedIsCompared(t *testing.T) {
	path := writeFile(t, inFolder(t, `n".txt`), []byte("456"))
	server := newScript(t, hangUp, say(201, eventOf("r", hashOf([]byte("456")))), say(201, eventOf("r", strings.Repeat("0", 64))),
		say(201, eventOf("s", hashOf([]byte("456")))))
	client, _ := server.newClient(t)
	event, err := client.RegisterFile(background, "r", path)
	must(t, err)
	expect(t, event.EventID == "evt_r" && bytes.Equal(server.all()[0].body, server.all()[1].body), "%s", server.all()[1].body)
	body := string(server.all()[1].body)
	expect(t, strings.Contains(body, `filename="n%22.txt"`) && strings.Contains(body, "\r\n\r\n456\r\n--"), "%s", body)
	_, err = client.RegisterFile(background, "r", path)
	var differs *DigestMismatchError
	expect(t, errors.As(err, &differs), "%v", err)
	_, err = client.RegisterFile(background, "r", path)
	var other *UnexpectedAnswerError
	expect(t, errors.As(err, &other), "the receipt of another declaration: %v", err)
	_, err = client.RegisterReader(background, "r", strings.NewReader(""), FileName("a\nb"))
	expect(t, err != nil && len(server.all()) == 4, "%v", err)
}

// slow is a file that takes its time.
type slow struct{ *bytes.Reader }

func (s slow) Read(into []byte) (int, error) {
	time.Sleep(2 * time.Millisecond)
	if len(into) > 8192 {
		into = into[:8192]
	}
	return s.Reader.Read(into)
}

func TestABodyThatWasAnsweredOnItsWayIsSentAgainWhole(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456789"), 50_000)
	server := newScript(t, say(201, eventOf("r", hashOf(whole))))
	busy := say(503, "", "Retry-After", "0", "Connection", "close")
	server.early = []reply{busy, busy}
	client, naps := server.newClient(t)
	_, err := client.RegisterReader(background, "r", slow{bytes.NewReader(whole)})
	must(t, err)
	expect(t, len(*naps) == 2 && bytes.Contains(server.all()[0].body, whole), "%v", *naps)
}

func TestALargeBodyWaitsForItsHeadToBeAccepted(t *testing.T) {
	server := newScript(t)
	server.early = []reply{say(413, `{"code":"payload_too_large"}`)}
	client, naps := server.newClient(t)
	source := strings.NewReader(strings.Repeat("x", 20<<20))
	_, err := client.RegisterReader(background, "r", source)
	expect(t, errors.Is(err, ErrTooLarge) && len(*naps) == 0, "%v", err)
}

// spoilt is a file that cannot be read.
type spoilt struct{ *strings.Reader }

var errDisk = errors.New("the disk says no")

func (spoilt) Read([]byte) (int, error) { return 0, errDisk }

func TestAFileThatCannotBeReadIsAnErrorOfItsOwn(t *testing.T) {
	server := newScript(t)
	client, naps := server.newClient(t)
	_, err := client.RegisterReader(background, "r", spoilt{strings.NewReader("xxxx")})
	expect(t, errors.Is(err, errDisk) && len(*naps) == 0, "%v", err)
	_, err = client.RegisterFile(background, "r", inFolder(t, "missing"))
	expect(t, errors.Is(err, os.ErrNotExist), "%v", err)
}

// ---- downloads ----

func TestADownloadGoesOnWhereItWasCut(t *testing.T) {
	whole := strings.Repeat("0123456789", 30_000)
	server := newScript(t, cut(200, whole[:100_000], len(whole)),
		cut(206, whole[100_000:150_000], 200_000, "Content-Range", "bytes 100000-299999/300000"),
		say(206, whole[150_000:], "Content-Range", "bytes 150000-299999/300000"))
	client, _ := server.newClient(t)
	target := inFolder(t, "evidence.zip")
	var last [2]int64
	found, err := client.Download(background, server.url+"/x?mac=1", target, hashOf([]byte(whole)),
		func(received, total int64) { last = [2]int64{received, total} })
	must(t, err)
	expect(t, found == hashOf([]byte(whole)) && last == [2]int64{300_000, 300_000}, "%v", last)
	for number, wanted := range []string{"", "bytes=100000-", "bytes=150000-"} {
		request := server.all()[number]
		expect(t, request.Header.Get("Range") == wanted && request.Header.Get("If-Range") == "" &&
			request.Header.Get("Authorization") == "", "%v", request.Header)
	}
	expect(t, names(t, filepath.Dir(target)) == "evidence.zip" && string(readFile(t, target)) == whole, "whole")
}

func TestWhatChangedBetweenItsPiecesIsFetchedFromTheBeginning(t *testing.T) {
	server := newScript(t, cut(200, strings.Repeat("old ", 10), 80, "ETag", `"1"`),
		cut(200, strings.Repeat("new ", 5), 80, "ETag", `W/"2"`), cut(200, strings.Repeat("new ", 10), 80, "ETag", `"2"`),
		say(206, strings.Repeat("new ", 10), "Content-Range", "bytes 40-79/80", "ETag", `"2"`))
	client, _ := server.newClient(t)
	target := inFolder(t, "file")
	_, err := client.Download(background, server.url+"/x", target, "", nil)
	must(t, err)
	var asked []string
	for _, one := range server.all() {
		asked = append(asked, one.Header.Get("Range")+one.Header.Get("If-Range"))
	}
	expect(t, strings.Join(asked, " ") == ` bytes=40-"1"  bytes=40-"2"`, "%q", asked)
	expect(t, string(readFile(t, target)) == strings.Repeat("new ", 20), "whole")
}

func TestARestOfAnotherFileIsRefusedWhereNoDigestTells(t *testing.T) {
	told := []string{"Content-Range", "bytes 40-79/80"}
	for _, one := range []struct {
		tag  string
		rest []string
	}{{`"1"`, append([]string{"ETag", `"2"`}, told...)}, {`"1"`, told},
		{`"1"`, []string{"ETag", `"1"`, "Content-Range", "bytes 40-79/*"}},
		{`"1"`, []string{"ETag", `"1"`, "Content-Range", "bytes 50-79/80"}}} {
		server := newScript(t, cut(200, strings.Repeat("old ", 10), 80, "ETag", one.tag),
			say(206, strings.Repeat("new ", 10), one.rest...))
		client, _ := server.newClient(t)
		target := inFolder(t, "file")
		_, err := client.Download(background, server.url+"/x", target, "", nil)
		var other *UnexpectedAnswerError
		expect(t, errors.As(err, &other) && names(t, filepath.Dir(target)) == "", "%v", err)
	}
}

func TestMoreThanTheFileIsRefused(t *testing.T) {
	server := newScript(t, cut(200, "01234", 10, "ETag", `"1"`),
		say(206, strings.Repeat("5", 1<<20), "ETag", `"1"`, "Content-Range", "bytes 5-9/10"))
	client, _ := server.newClient(t)
	target := inFolder(t, "file")
	var other *UnexpectedAnswerError
	_, err := client.Download(background, server.url+"/x", target, "", nil)
	expect(t, errors.As(err, &other) && names(t, filepath.Dir(target)) == "", "%v", err)
}

func TestADownloadWithoutALengthHasABound(t *testing.T) {
	whole := strings.Repeat("w", 1000)
	server := newScript(t, chunked(whole), endless, chunked(whole+"w"), say(200, whole+"w"))
	client, _ := server.newClient(t, func(options *Options) { options.DownloadMax = 1000 })
	target := inFolder(t, "file")
	_, err := client.Download(background, server.url+"/x", target, hashOf([]byte(whole)), nil)
	must(t, err)
	must(t, os.Remove(target))
	for range [3]int{} {
		var other *UnexpectedAnswerError
		_, err := client.Download(background, server.url+"/x", target, hashOf([]byte(whole)), nil)
		expect(t, errors.As(err, &other) && strings.Contains(err.Error(), "1000 bytes") &&
			names(t, filepath.Dir(target)) == "", "%v", err)
	}
}

// completed returns a certification whose archive has a link.
func completed(server *script) *Certification {
	code, link := "SVC-2026-AAAA-AAAA", server.url+"/files/CERT-1.zip"
	return &Certification{CertificationID: "CERT-1", Status: CertificationStatusCompleted, VerificationCode: &code,
		EvidenceURL: &link}
}

func TestSaveTakesNoMoreThanIsOnRecord(t *testing.T) {
	issued := say(200, fmt.Sprintf(`{"documents":[{"name":"CERT-1.zip","bytes":7,"sha256":%q}]}`,
		hashOf([]byte("content"))))
	server := newScript(t, issued, chunked("content"), issued, endless)
	client, _ := server.newClient(t)
	folder := t.TempDir()
	_, err := client.Save(background, completed(server), folder)
	must(t, err)
	must(t, os.Remove(filepath.Join(folder, "CERT-1.zip")))
	var other *UnexpectedAnswerError
	_, err = client.Save(background, completed(server), folder)
	expect(t, errors.As(err, &other) && strings.Contains(err.Error(), "7 bytes") && names(t, folder) == "", "%v", err)
}

func TestSaveNamesTheFileThatIsMissing(t *testing.T) {
	server := newScript(t)
	client, _ := server.newClient(t)
	folder := filepath.Join(t.TempDir(), "certification")
	check := func(member string, change func(*Certification)) {
		done := completed(server)
		change(done)
		_, err := client.Save(background, done, folder)
		var other *UnexpectedAnswerError
		expect(t, errors.As(err, &other) && strings.Contains(err.Error(), "CERT-1 is completed and has no "+member),
			"%v", err)
	}
	check("evidence_url", func(done *Certification) { done.EvidenceURL = nil })
	check("reports[0].url", func(done *Certification) { done.Reports = []CertificationReport{{}} })
	check("content_parts[0].url", func(done *Certification) { done.ContentParts = []ContentPart{{}} })
	expect(t, names(t, filepath.Dir(folder)) == "", "nothing is made")
}

func TestNamesOfDocumentsStayInTheFolder(t *testing.T) {
	code, folder := "SVC-2026-AAAA-AAAA", filepath.Join(t.TempDir(), "certification")
	for _, one := range []struct{ id, name string }{{"CERT-1", ".."}, {"CERT-1", "."}, {"../..", "part.zip"}} {
		server := newScript(t, say(200, fmt.Sprintf(`{"documents":[{"name":%q,"sha256":%q}]}`, one.name,
			hashOf([]byte("content")))), say(200, "content"))
		client, _ := server.newClient(t)
		link := server.url + "/files/" + one.name
		_, err := client.Save(background, &Certification{CertificationID: one.id, Status: CertificationStatusCompleted,
			VerificationCode: &code, EvidenceURL: &link}, folder)
		expect(t, names(t, filepath.Dir(folder)) == "certification", "%v: %v", one, err)
	}
}

func TestADownloadThatFailedIsResumedByTheNextCall(t *testing.T) {
	whole := strings.Repeat("w", 200_000)
	server := newScript(t, cut(200, whole[:90_000], len(whole)), hangUp, hangUp, hangUp, hangUp,
		say(206, whole[90_000:], "Content-Range", "bytes 90000-199999/200000"))
	client, _ := server.newClient(t)
	target := writeFile(t, inFolder(t, "part.zip"), []byte("what was there"))
	var lost *ConnectionError
	_, err := client.Download(background, server.url+"/x?mac=hidden", target, hashOf([]byte(whole)), nil)
	expect(t, errors.As(err, &lost) && string(readFile(t, target)) == "what was there" &&
		!strings.Contains(err.Error(), "hidden"), "%v", err)
	_, err = client.Download(background, server.url+"/x", target, hashOf([]byte(whole)), nil)
	must(t, err)
	expect(t, string(readFile(t, target)) == whole && names(t, filepath.Dir(target)) == "part.zip", "whole")
}

func TestWhatAnEarlierCallLeftIsClaimedByOneAlone(t *testing.T) {
	whole := strings.Repeat("w", 1000)
	answer := func(connection net.Conn, request *seen) bool {
		if request.Header.Get("Range") == "" {
			return say(200, whole)(connection, request)
		}
		return say(206, whole[500:], "Content-Range", "bytes 500-999/1000")(connection, request)
	}
	server := newScript(t, answer, answer)
	client, _ := server.newClient(t)
	target := inFolder(t, "file")
	writeFile(t, restOf(target, hashOf([]byte(whole))), []byte(whole[:500]))
	failed := make(chan error)
	for range []int{1, 2} {
		go func() {
			_, err := client.Download(background, server.url+"/x", target, hashOf([]byte(whole)), nil)
			failed <- err
		}()
	}
	must(t, <-failed)
	must(t, <-failed)
	ranges := []string{server.all()[0].Header.Get("Range"), server.all()[1].Header.Get("Range")}
	expect(t, strings.Join(ranges, "") == "bytes=500-", "%q", ranges)
	expect(t, string(readFile(t, target)) == whole && names(t, filepath.Dir(target)) == "file", "whole")
}

func restOf(target, digest string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+digest[:32]+".rest")
}

func TestASpoiltRestIsFetchedAgainAndAWrongFileDoesNotAppear(t *testing.T) {
	whole := strings.Repeat("w", 1000)
	digest := hashOf([]byte(whole))
	server := newScript(t, say(206, whole[500:], "Content-Range", "bytes 500-999/1000"), say(200, whole),
		say(416, "", "Content-Range", "bytes */1000"), say(200, whole))
	client, _ := server.newClient(t)
	target := inFolder(t, "file")
	for _, left := range []string{strings.Repeat("x", 500), strings.Repeat("x", 2000), whole} {
		writeFile(t, restOf(target, digest), []byte(left))
		_, err := client.Download(background, server.url+"/x", target, strings.ToUpper(digest), nil)
		must(t, err)
		expect(t, string(readFile(t, target)) == whole, "whole")
		must(t, os.Remove(target))
	}
	server.add(say(200, "other"))
	var differs *DigestMismatchError
	_, err := client.Download(background, server.url+"/x", target, digest, nil)
	expect(t, errors.As(err, &differs) && names(t, filepath.Dir(target)) == "", "%v", err)
	_, err = client.Download(background, server.url+"/x", target, "0", nil)
	expect(t, err != nil && len(server.all()) == 5, "what is no digest is not asked for: %v", err)
}

func TestWhatIsNoRestOfOurOwnIsNotWrittenTo(t *testing.T) {
	whole := strings.Repeat("w", 1000)
	for what, plant := range map[string]func(victim, rest string) error{"symbolic link": os.Symlink, "hard link": os.Link,
		"pipe": func(_, rest string) error { return syscall.Mkfifo(rest, 0o600) }} {
		server := newScript(t, say(200, whole))
		client, _ := server.newClient(t)
		target := inFolder(t, "file")
		victim := writeFile(t, filepath.Join(filepath.Dir(target), "victim"), []byte("precious"))
		must(t, plant(victim, restOf(target, hashOf([]byte(whole)))))
		_, err := client.Download(background, server.url+"/x", target, hashOf([]byte(whole)), nil)
		must(t, err)
		expect(t, string(readFile(t, victim)) == "precious" && string(readFile(t, target)) == whole, what)
	}
}

// ---- waiting ----

func TestTheProgressOfWaitingEndsAtOne(t *testing.T) {
	server := newScript(t, say(200, `{"certification_id":"CERT-1","status":"processing","progress":0.5}`, "Retry-After", "3"),
		say(200, accepted), say(200, `{"certification_id":"CERT-1","status":"completed","progress":null}`))
	client, naps := server.newClient(t)
	var steps []float64
	done, err := client.Wait(background, "CERT-1", func(now *Certification) {
		if now.Progress != nil {
			steps = append(steps, *now.Progress)
		}
	})
	must(t, err)
	expect(t, len(steps) == 2 && steps[0] == 0.5 && steps[1] == 1 && *done.Progress == 1, "%v", steps)
	expect(t, (*naps)[0] == 3*time.Second && (*naps)[1] < 3*time.Second, "%v", *naps)
}

func TestWaitingEndsWithTheContextAndOnFailure(t *testing.T) {
	server := newScript(t, say(200, accepted), say(200, `{"certification_id":"CERT-1","status":"failed"}`))
	client, _ := server.newClient(t)
	client.transport.sleep = pause
	ctx, cancel := context.WithCancel(background)
	_, err := client.Wait(ctx, "CERT-1", func(*Certification) { cancel() })
	var open *NotIssuedError
	expect(t, errors.As(err, &open) && open.Certification.Status == "processing" && errors.Is(err, context.Canceled), "%v", err)
	late, end := context.WithDeadline(background, time.Unix(0, 0))
	defer end()
	_, err = client.Wait(late, "CERT-1", nil)
	expect(t, errors.As(err, &open) && open.Certification == nil && errors.Is(err, context.DeadlineExceeded), "%v", err)
	_, err = client.Wait(background, "CERT-1", nil)
	var failed *CertificationFailedError
	expect(t, errors.As(err, &failed) && failed.Certification.CertificationID == "CERT-1", "%v", err)
}

// ---- hooks ----

func TestHooksAreCalledAndSeeNoKey(t *testing.T) {
	var told []string
	note := func(what any) { told = append(told, fmt.Sprintf("%T %+v", what, what)) }
	server := newScript(t, hangUp, say(503, "", "Retry-After", "1"), say(200, balance, "X-Request-Id", "req_1"), say(200, "file"))
	client, _ := server.newClient(t, func(options *Options) {
		options.Hooks = Hooks{func(one RequestSent) { note(one) }, func(one ResponseReceived) { note(one) },
			func(one RetryPlanned) { note(one) }}
	})
	_, err := client.Balance(background)
	must(t, err)
	_, err = client.Download(background, server.url+"/x?mac=hidden", inFolder(t, "file"), "", nil)
	must(t, err)
	var kinds []string
	for _, one := range told {
		kinds = append(kinds, strings.Fields(one)[0][len("constancia."):])
	}
	expect(t, strings.Join(kinds, " ") == "RequestSent RetryPlanned RequestSent ResponseReceived RetryPlanned RequestSent "+
		"ResponseReceived RequestSent ResponseReceived", "%v", kinds)
	all := strings.Join(told, "\n")
	expect(t, strings.Contains(told[6], "req_1") && strings.Contains(told[0], "/v1/account/balance Attempt:1"), all)
	expect(t, !strings.Contains(all, "secret") && !strings.Contains(all, "hidden"), all)
}

func TestAHookThatFailsChangesNothing(t *testing.T) {
	server := newScript(t, say(503, "", "Retry-After", "0"), say(200, balance))
	client, _ := server.newClient(t, func(options *Options) {
		options.Hooks = Hooks{func(RequestSent) { panic("full") }, func(ResponseReceived) { panic("full") },
			func(RetryPlanned) { panic("full") }}
	})
	_, err := client.Balance(background)
	must(t, err)
}

func TestNeitherKeysNorLinksArePrinted(t *testing.T) {
	server := newScript(t)
	client, _ := server.newClient(t)
	link := "http://127.0.0.1/v1/downloads/x?mac=hidden"
	certification := Certification{CertificationID: "CERT-1", EvidenceURL: &link, ReportURL: &link,
		Reports: []CertificationReport{{URL: link}}, ContentParts: []ContentPart{{URL: link}}}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, one := range []any{client, certification, &certification, certification.Reports, certification.ContentParts} {
			shown := fmt.Sprintf(form, one)
			expect(t, !strings.Contains(shown, "hidden") && !strings.Contains(shown, "secret"), "%s", shown)
		}
	}
}

// TestAnHTTPClientOfOnesOwn is used, but follows no redirection with the key.
func TestAnHTTPClientOfOnesOwn(t *testing.T) {
	server := newScript(t, say(302, "", "Location", "/else"))
	own := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	client, _ := server.newClient(t, func(options *Options) { options.HTTPClient = own })
	_, err := client.Balance(background)
	expect(t, err != nil && len(server.all()) == 1 && own.CheckRedirect == nil, "%v", err)
}
