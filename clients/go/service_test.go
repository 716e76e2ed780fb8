package constancia

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"constancia.example/constancia/internal/evidence"
)

// service returns a client of a real service, for which tests/system/test_client_go.py sets the environment.
func service(t *testing.T, key string, change ...func(*Options)) *Client {
	t.Helper()
	if os.Getenv("CONSTANCIA_URL") == "" {
		t.Skip("CONSTANCIA_URL names no service")
	}
	options := Options{URL: os.Getenv("CONSTANCIA_URL"), Key: os.Getenv(key)}
	for _, one := range change {
		one(&options)
	}
	client, err := New(options)
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

func fresh(t *testing.T) string {
	t.Helper()
	made, err := token()
	must(t, err)
	return made
}

func TestServiceAPayloadIsRegisteredOnceAndReadAgain(t *testing.T) {
	client, reference := service(t, "CONSTANCIA_KEY"), "order/ñ "+fresh(t)
	when := time.Date(2026, 1, 31, 9, 30, 0, 123456789, time.FixedZone("", 3600))
	payload := map[string]any{"text": "ñ \u2028 \" <&>", "total": "49.90", "nested": []any{map[string]any{"a": nil}}}
	first, err := client.Register(background, reference, payload, OccurredAt(when))
	must(t, err)
	again, err := client.Register(background, reference, payload, OccurredAt(when))
	must(t, err)
	expect(t, !first.Replayed && again.Replayed && again.EventID == first.EventID, "%v", again)
	expect(t, first.OccurredAt.Equal(when.Truncate(time.Microsecond)) && first.ClientRef == reference, "%v", first)
	content, err := client.Content(background, first.EventID)
	must(t, err)
	var held map[string]any
	must(t, json.Unmarshal(content.Body, &held))
	expect(t, held["text"] == payload["text"] && hashOf(content.Body) == first.Hash &&
		content.MediaType == "application/json", "%s", content.Body)
	full, err := client.Event(background, first.EventID)
	must(t, err)
	expect(t, full.ChainHash == first.ChainHash && full.Proof.ConfigHash != "", "%v", full)
	_, err = client.Register(background, reference, map[string]any{"other": 1})
	var refused *APIError
	expect(t, errors.Is(err, ErrConflict) && errors.As(err, &refused) && refused.EventID == first.EventID &&
		refused.Code == "client_ref_conflict" && refused.RequestID != "", "%v", err)
}

func TestServiceAFileIsSentInPiecesAndComesBack(t *testing.T) {
	client := service(t, "CONSTANCIA_KEY")
	whole := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 170_000)
	whole = append(whole, fresh(t)...)
	source := writeFile(t, inFolder(t, `a "quoted" ñ.bin`), whole)
	is, err := client.IsOnRecord(background, source)
	must(t, err)
	expect(t, !is, "not yet")
	declared, err := client.RegisterFile(background, fresh(t), source)
	must(t, err)
	digest, err := Digest(source, SHA256)
	must(t, err)
	expect(t, declared.Hash == digest, "%v", declared)
	var last int64
	target := inFolder(t, "back")
	found, err := client.SaveContent(background, declared, target, func(received, _ int64) { last = received })
	must(t, err)
	expect(t, found == digest && bytes.Equal(readFile(t, target), whole) && last == int64(len(whole)), "%d", last)
	expect(t, names(t, filepath.Dir(target)) == "back", names(t, filepath.Dir(target)))
	content, err := client.Content(background, declared.EventID)
	must(t, err)
	expect(t, content.FileName == filepath.Base(source), "%q", content.FileName)
	is, err = client.IsOnRecord(background, source)
	must(t, err)
	events, err := client.FindFile(background, source)
	must(t, err)
	expect(t, is && len(events) == 1 && events[0].EventID == declared.EventID, "%v", events)
	_, err = client.RegisterReader(background, fresh(t), bytes.NewReader(make([]byte, 20_000_000)))
	var refused *APIError
	expect(t, errors.Is(err, ErrTooLarge) && errors.As(err, &refused) && refused.Code == "payload_too_large", "%v", err)
	_, err = client.Balance(background)
	must(t, err)
}

func TestServiceADigestIsRegistered(t *testing.T) {
	client := service(t, "CONSTANCIA_HASH_KEY")
	file := writeFile(t, inFolder(t, "contract"), []byte(fresh(t)))
	for _, algorithm := range []Algorithm{SHA256, SHA512} {
		digest, err := Digest(file, algorithm)
		must(t, err)
		declared, err := client.RegisterDigest(background, fresh(t), strings.ToUpper(digest))
		must(t, err)
		expect(t, declared.HashAlg == algorithm && declared.Modality == ModalityHashOnly, "%v", declared)
		_, err = client.Content(background, declared.EventID)
		expect(t, errors.Is(err, ErrNotFound), "%v", err)
		outcomes, err := client.RegisterMany(background, Declaration{ClientRef: fresh(t), Hash: digest}).All()
		must(t, err)
		expect(t, outcomes[0].Event.Hash == digest, "%v", outcomes)
	}
	channel, err := client.Channel(background)
	must(t, err)
	expect(t, channel.CurrentConfig.Modality == ModalityHashOnly && channel.ConfigVersions[0].Version == 1, "%v", channel)
	_, err = client.ChannelBefore(background, 2)
	must(t, err)
}

func TestServiceSealDocumentsAreSaved(t *testing.T) {
	client := service(t, "CONSTANCIA_KEY")
	declared, err := client.Register(background, fresh(t), map[string]int{})
	must(t, err)
	asked, err := client.Certify(background, Range{SeqFrom: declared.Sequence, SeqTo: declared.Sequence, SealHistory: true}, "")
	must(t, err)
	_, err = client.Wait(background, asked.CertificationID, nil)
	must(t, err)
	for number, wanted := range []Range{{}, {SeqFrom: 1, SeqTo: declared.Sequence}, {From: declared.ReceivedAt.Time}} {
		path := inFolder(t, "seals-"+strconv.Itoa(number))
		found, err := client.ChannelSeals(background, wanted, path, nil)
		must(t, err)
		digest, err := Digest(path, SHA256)
		must(t, err)
		text, err := os.ReadFile(path)
		must(t, err)
		expect(t, found == digest && bytes.HasPrefix(text, []byte(`{"chain":"live",`)), "%v: %s", wanted, text)
	}
	_, err = client.ChannelSeals(background, Range{SeqFrom: 2, SeqTo: 1}, inFolder(t, "wrong"), nil)
	expect(t, errors.Is(err, ErrInvalidRequest), "%v", err)
	_, err = client.ChannelSeals(background, Range{SeqFrom: 2, From: time.Now()}, inFolder(t, "wrong"), nil)
	expect(t, err != nil && strings.Contains(err.Error(), "not both"), "%v", err)
}

func TestServiceABatchIsRegisteredOnce(t *testing.T) {
	client, reference := service(t, "CONSTANCIA_KEY"), fresh(t)
	declared := []Declaration{{ClientRef: reference, Payload: map[string]int{"a": 1}},
		{ClientRef: reference, Payload: map[string]int{"a": 2}}, {ClientRef: strings.Repeat("x", 256), Payload: map[string]int{}},
		{ClientRef: reference, Payload: map[string]int{"a": 1}}}
	for number := 0; number < 100; number++ {
		declared = append(declared, Declaration{ClientRef: fresh(t), Payload: map[string]int{"n": number}})
	}
	found, err := client.RegisterMany(background, declared...).All()
	must(t, err)
	var refused *APIError
	expect(t, errors.As(found[1].Err, &refused) && refused.EventID == found[0].Event.EventID && found[3].Event.Replayed &&
		errors.Is(found[2].Err, ErrInvalidRequest), "%v", found[:4])
	for number, one := range found[4:] {
		expect(t, one.Event.Sequence == found[0].Event.Sequence+int64(number)+1, "%v", one)
	}
	again, err := client.RegisterMany(background, declared...).All()
	must(t, err)
	for number, one := range again {
		expect(t, one.Event == nil || one.Event.Replayed && one.Event.EventID == found[number].Event.EventID, "%v", one)
	}
}

func TestServiceListsGoOnFromPageToPage(t *testing.T) {
	client := service(t, "CONSTANCIA_LIST_KEY")
	var references []string
	for range []int{1, 2, 3, 4, 5, 6, 7} {
		declared, err := client.Register(background, fresh(t), map[string]int{})
		must(t, err)
		references = append(references, declared.ClientRef)
	}
	for wanted, filter := range map[string]EventFilter{
		strings.Join(references, " "):      {Limit: 3},
		strings.Join(references[1:4], " "): {SeqFrom: 2, SeqTo: 4},
		references[3]:                      {ClientRef: references[3]},
		"":                                 {To: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		all, err := client.Events(background, filter).All()
		must(t, err)
		var found []string
		for _, one := range all {
			found = append(found, one.ClientRef)
		}
		expect(t, strings.Join(found, " ") == wanted, "%v: %v", filter, found)
	}
	page, err := client.EventsPage(background, EventFilter{Limit: 5, Order: "desc", Status: EventStatusRegistered})
	must(t, err)
	expect(t, page.HasMore && len(page.Data) == 5 && page.Data[0].ClientRef == references[6], "%v", page)
}

func TestServiceNoticesOfTheTestModeAreFetched(t *testing.T) {
	client := service(t, "CONSTANCIA_TEST_KEY")
	end, err := client.NoticesPage(background, NoticeFilter{})
	must(t, err)
	expect(t, len(end.Data) == 0 && end.NextCursor != "", "%v", end)
	made, err := client.CreateNotice(background, "balance.low")
	must(t, err)
	page, err := client.NoticesPage(background, NoticeFilter{Cursor: end.NextCursor, Wait: time.Second, Limit: 1})
	must(t, err)
	expect(t, len(page.Data) == 1 && page.Data[0].ID == made.ID, "%v", page)
	details, err := page.Data[0].Details()
	must(t, err)
	data, is := details.(*BalanceLowData)
	expect(t, is && data.Balance == 100, "%v", details)
	_, err = client.CreateNotice(background, "balance")
	var refused *APIError
	expect(t, errors.As(err, &refused) && refused.Status == 400, "%v", err)
}

func TestServiceErrorsSayWhatIsToBeSaid(t *testing.T) {
	client := service(t, "CONSTANCIA_KEY")
	_, err := client.Register(background, strings.Repeat("x", 256), map[string]any{})
	expect(t, errors.Is(err, ErrInvalidRequest) && strings.Contains(err.Error(), "client_ref"), "%v", err)
	spanish := service(t, "CONSTANCIA_KEY", func(options *Options) { options.Language = "es" })
	_, other := spanish.Register(background, strings.Repeat("x", 256), map[string]any{})
	expect(t, errors.Is(other, ErrInvalidRequest) && other.(*APIError).Message != err.(*APIError).Message, "%v", other)
	_, err = client.Event(background, "evt_../../channel")
	expect(t, errors.Is(err, ErrNotFound), "%v", err)
	stranger := service(t, "CONSTANCIA_KEY", func(options *Options) { options.Key = "svc_live_unknown" })
	_, err = stranger.Balance(background)
	expect(t, errors.Is(err, ErrUnauthorized), "%v", err)
	for scenario, kind := range map[string]error{"unpaid_limit": ErrPaymentRequired, "limit_blocked": ErrLimitBlocked,
		"client_ref_conflict": ErrConflict} {
		forced := service(t, "CONSTANCIA_TEST_KEY", func(options *Options) { options.Scenario = scenario })
		_, err = forced.Register(background, fresh(t), map[string]any{})
		expect(t, errors.Is(err, kind), "%s: %v", scenario, err)
	}
	limited := service(t, "CONSTANCIA_TEST_KEY", func(options *Options) {
		options.Scenario, options.Retry.Attempts = "rate_limited", 3
	})
	var naps []time.Duration
	limited.transport.sleep = func(_ context.Context, delay time.Duration) error { naps = append(naps, delay); return nil }
	_, err = limited.Balance(background)
	var refused *APIError
	expect(t, errors.As(err, &refused) && errors.Is(err, ErrTooManyRequests) && len(naps) == 2 &&
		naps[0] >= *refused.RetryAfter, "%v %v", err, naps)
}

func TestServiceACertificationFromTheRequestToItsFiles(t *testing.T) {
	kept := &ReceiptFile{Path: inFolder(t, "receipts.ndjson")}
	client := service(t, "CONSTANCIA_CERTIFY_KEY", func(options *Options) { options.Receipts = kept })
	for number := 0; number < 3; number++ {
		_, err := client.Register(background, fresh(t), map[string]int{"n": number})
		must(t, err)
	}
	source := writeFile(t, inFolder(t, "source"), []byte("held content"))
	last, err := client.RegisterFile(background, fresh(t), source)
	must(t, err)
	key := fresh(t)
	asked, err := client.Certify(background, Range{SeqFrom: 1, SeqTo: last.Sequence}, key)
	must(t, err)
	again, err := client.Certify(background, Range{SeqFrom: 1, SeqTo: last.Sequence}, key)
	must(t, err)
	expect(t, !asked.Replayed && again.Replayed && again.CertificationID == asked.CertificationID, "%v", again)
	var steps []*Certification
	done, err := client.Wait(background, asked.CertificationID, func(now *Certification) { steps = append(steps, now) })
	must(t, err)
	expect(t, *done.EventCount == 4 && *steps[len(steps)-1].Progress == 1, "%v", done)
	folder := inFolder(t, "files")
	files, err := client.Save(background, done, folder)
	must(t, err)
	expect(t, len(files.Reports) == 2 && len(files.Parts) == 1 && len(strings.Fields(names(t, folder))) == 4, names(t, folder))

	issued, err := client.Verify(background, *done.VerificationCode)
	must(t, err)
	digest, err := Digest(files.Reports[0], SHA256)
	must(t, err)
	byDigest, err := client.VerifyDigest(background, digest)
	must(t, err)
	expect(t, issued.CertificationID == done.CertificationID && byDigest.CertificationID == done.CertificationID, "%v", issued)
	check, err := client.VerifyFile(background, files.Reports[1])
	must(t, err)
	expect(t, check.Verification.Valid && check.Issued.CertificationID == done.CertificationID, "%v", check)
	_, err = client.Verify(background, "SVC-0000-0000")
	expect(t, errors.Is(err, ErrNotFound), "%v", err)

	options := ArchiveOptions{Receipts: []string{kept.Path}, Parts: files.Parts, Program: os.Getenv("CONSTANCIA_PROGRAM"),
		Trust: []string{os.Getenv("CONSTANCIA_TRUST")}}
	verified, err := VerifyArchive(background, files.Archive, options)
	must(t, err)
	expect(t, verified.Verdict == VerdictValid && verified.Receipts.Compared == 4 && verified.SignaturesBy == "program",
		"%+v", verified)
	expect(t, has(verified.Checked, evidence.Log) && verified.NotChecked[0] == evidence.LogSignatures, "%+v", verified)
	options.Events, options.Receipts = []*Event{last}, nil
	verified, err = VerifyArchive(background, files.Archive, options)
	must(t, err)
	expect(t, verified.Verdict == VerdictValid && verified.Receipts.Compared == 1, "%+v", verified)
	other := *last
	other.Raw, other.ChainHash = nil, strings.Repeat("0", 64)
	options.Events = []*Event{&other}
	verified, err = VerifyArchive(background, files.Archive, options)
	must(t, err)
	expect(t, verified.Code == "could_not_check" && verified.Receipts.Differing == 1, "%+v", verified)

	found, err := client.Certifications(background, CertificationFilter{Status: CertificationStatusCompleted, Limit: 1}).All()
	must(t, err)
	expect(t, len(found) == 1 && found[0].CertificationID == done.CertificationID, "%v", found)
	checkRecords(t, client, last.EventID, done.CertificationID)
}

// checkRecords waits for the evidence records, which are made after the answers.
func checkRecords(t *testing.T, client *Client, eventID, certificationID string) {
	t.Helper()
	for _, fetch := range []func() ([]byte, error){
		func() ([]byte, error) { return client.EventEvidenceRecord(background, eventID) },
		func() ([]byte, error) { return client.CertificationEvidenceRecord(background, certificationID) },
	} {
		data, err := fetch()
		for attempt := 0; errors.Is(err, ErrNotFound) && attempt < 300; attempt++ {
			time.Sleep(100 * time.Millisecond)
			data, err = fetch()
		}
		must(t, err)
		expect(t, data[0] == 0x30, "%x", data[:4])
	}
	full, err := client.Event(background, eventID)
	must(t, err)
	expect(t, full.Proof.Round.Token != "" && full.Proof.Segment.SegmentID != "", "%v", full.Proof)
}

func TestServiceWhatAnybodyMayAsk(t *testing.T) {
	client := service(t, "")
	signers, err := client.Signers(background)
	must(t, err)
	expect(t, len(signers) > 0 && strings.Contains(signers[0].Certificates, "BEGIN CERTIFICATE"), "%v", signers)
	if _, err := client.SignerList(background); !errors.Is(err, ErrNotFound) {
		must(t, err)
	}
	described, err := client.Description(background)
	must(t, err)
	expect(t, strings.HasPrefix(described, "openapi: 3.1"), "%.40s", described)
	described, err = client.WebhookDescription(background)
	must(t, err)
	expect(t, strings.Contains(described, "webhooks:"), "%.40s", described)
	_, err = client.Download(background, os.Getenv("CONSTANCIA_URL")+"/downloads/CERT-2026-0000001/report-en.pdf?expires=9&mac=hidden",
		inFolder(t, "report"), "", nil)
	expect(t, errors.Is(err, ErrNotFound) && !strings.Contains(err.Error(), "hidden"), "%v", err)
}
