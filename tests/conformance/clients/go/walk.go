// Walks through the interface with the client that openapi-generator made for Go.
// usage: walk BASE_URL CONTENT_KEY DIGEST_KEY LATER_URL
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	api "example.com/walk/client"
)

const patience = 300 * time.Second

var when = time.Date(2026, 1, 31, 8, 30, 0, 123456000, time.UTC)

func expect(holds bool, what string, more ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, append([]any{"not so:", what}, more...)...)
		os.Exit(1)
	}
}

func must[T any](value T, _ *http.Response, err error) T {
	expect(err == nil, "answered", err)
	return value
}

func read(file *os.File) []byte {
	defer file.Close()
	content, err := io.ReadAll(file)
	expect(err == nil, "read", err)
	return content
}

func sha(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func register(events *api.EventsAPIService, key context.Context, file []byte) {
	payload := api.NewEventPayload("json", map[string]any{"total": "1210.00", "lines": []any{1, map[string]any{}}})
	payload.SetOccurredAt(when)
	asked := events.RegisterEvent(key).EventDeclaration(api.EventPayloadAsEventDeclaration(payload))
	event, answer, err := asked.Execute()
	expect(err == nil && answer.StatusCode == 201 && event.Sequence == 1, "registered", err)
	expect(event.GetOccurredAt().Equal(when), "declared time", event.GetOccurredAt())
	again, answer, err := asked.Execute()
	expect(err == nil && answer.StatusCode == 200, "replayed", err)
	expect(answer.Header.Get("Idempotent-Replayed") == "true" && reflect.DeepEqual(again, event), "the same event")

	name := filepath.Join(os.TempDir(), fmt.Sprintf("walk-%d.bin", os.Getpid()))
	expect(os.WriteFile(name, file, 0o600) == nil, "file written")
	defer os.Remove(name)
	open, err := os.Open(name)
	expect(err == nil, "file opened", err)
	held := must(events.RegisterFile(key).ClientRef("file").File(open).OccurredAt(when).Execute())
	expect(held.Hash == sha(file), "digest of the file", held.Hash)
	content := read(must(events.GetEventContent(key, held.EventId).Execute()))
	expect(bytes.Equal(content, file), "the file as it is held")
	proof := must(events.GetEvent(key, event.EventId).Execute()).Proof
	expect(len(proof.PreviousChainHash) == 64, "proof")
}

func registerDigest(events *api.EventsAPIService, key context.Context, file []byte) {
	digest := fmt.Sprintf("%x", sha512.Sum512(file))
	declared := api.EventHashAsEventDeclaration(api.NewEventHash("digest", digest, "sha-512"))
	event := must(events.RegisterEvent(key).EventDeclaration(declared).Execute())
	expect(event.Hash == digest && event.GetHashAlg() == "sha-512", "digest", event.Hash)
	kept, err := json.Marshal(event) // as a receipt: with the members that are null
	expect(err == nil && bytes.Contains(kept, []byte(`"occurred_at":null`)) &&
		bytes.Contains(kept, []byte(`"sealed_at":null`)), "members that are null", string(kept))
}

func listAll(events *api.EventsAPIService, key context.Context) {
	var references []string
	asked := events.ListEvents(key).Limit(1)
	for {
		page := must(asked.Execute())
		for _, event := range page.Data {
			references = append(references, event.ClientRef)
		}
		expect(page.HasMore == (page.NextCursor.Get() != nil), "cursor with more")
		if !page.HasMore {
			break
		}
		asked = asked.Cursor(*page.NextCursor.Get())
	}
	expect(reflect.DeepEqual(references, []string{"json", "file"}), "all events", references)
}

func certify(certifications *api.CertificationsAPIService, key context.Context) *api.Certification {
	wanted := api.NewCertificationRequest()
	wanted.SetSeqFrom(1)
	wanted.SetSeqTo(2)
	now := must(certifications.RequestCertification(key).CertificationRequest(*wanted).Execute())
	for deadline := time.Now().Add(patience); now.Status == "processing" && time.Now().Before(deadline); {
		time.Sleep(500 * time.Millisecond)
		now = must(certifications.GetCertification(key, now.CertificationId).Execute())
	}
	expect(now.Status == "completed" && now.GetEventCount() == 2, "certified", now.Status)
	listed := must(certifications.ListCertifications(key).Status("completed").Execute()).Data
	expect(len(listed) == 1 && listed[0].CertificationId == now.CertificationId, "listed")
	return now
}

func download(public *api.PublicAPIService, certification *api.Certification) {
	anyone := context.Background()
	expect(len(certification.Reports) > 0, "reports")
	for _, report := range certification.Reports {
		link, err := url.Parse(report.Url)
		expect(err == nil, "link", err)
		expires, err := strconv.ParseInt(link.Query().Get("expires"), 10, 64)
		expect(err == nil, "expiry", err)
		asked := public.Download(anyone, certification.CertificationId, path.Base(link.Path)).Expires(expires)
		content := read(must(asked.Mac(link.Query().Get("mac")).Execute()))
		expect(sha(content) == report.Sha256, "digest of the report")
	}
	expect(len(must(public.ListSigners(anyone).Execute()).Data) > 0, "signers")
}

func refused(answer *http.Response, err error, status int, code string) {
	var failure *api.GenericOpenAPIError
	expect(errors.As(err, &failure) && answer.StatusCode == status, "refused", err)
	told, is := failure.Model().(api.Error)
	expect(is && told.Code == code && told.Message != "", "Error record", failure)
}

func verify(pages *api.PublicAPIService, certification *api.Certification) {
	anyone := context.Background()
	found := must(pages.VerifyCode(anyone, certification.GetVerificationCode()).Execute())
	expect(found.CertificationId == certification.CertificationId && len(found.Documents) > 0, "verified")
	found = must(pages.Verify(anyone).Sha256(certification.Reports[0].Sha256).Execute())
	expect(found.CertificationId == certification.CertificationId, "verified by digest")
	_, answer, err := pages.VerifyCode(anyone, "SVC-2026-AAAA-AAAA").Execute()
	refused(answer, err, 404, "not_found")
}

func readErrors(events, later *api.EventsAPIService, content, digests context.Context) {
	_, answer, err := events.GetEvent(content, "evt_none").Execute()
	refused(answer, err, 404, "not_found")
	_, answer, err = later.GetEvent(content, "evt_none").Execute()
	refused(answer, err, 404, "code_of_a_later_version")
	other := api.EventHashAsEventDeclaration(api.NewEventHash("digest", strings.Repeat("0", 64), "sha-256"))
	_, answer, err = events.RegisterEvent(digests).EventDeclaration(other).Execute()
	refused(answer, err, 409, "client_ref_conflict")
}

// Those that the description gives to single operations are of an installation like this one.
func clientOf(address string) *api.APIClient {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: address}}
	configuration.OperationServers = nil
	return api.NewAPIClient(configuration)
}

func main() {
	client := clientOf(os.Args[1])
	content := context.WithValue(context.Background(), api.ContextAccessToken, os.Args[2])
	digests := context.WithValue(context.Background(), api.ContextAccessToken, os.Args[3])
	file := bytes.Repeat([]byte("a file\x00\xff\r\n"), 2000)

	register(client.EventsAPI, content, file)
	registerDigest(client.EventsAPI, digests, file)
	listAll(client.EventsAPI, content)
	certification := certify(client.CertificationsAPI, content)
	download(client.PublicAPI, certification)
	verify(clientOf(strings.TrimSuffix(os.Args[1], "/v1")).PublicAPI, certification)
	readErrors(client.EventsAPI, clientOf(os.Args[4]).EventsAPI, content, digests)
	expect(must(client.AccountAPI.GetBalance(content).Execute()).Operational, "operational")
}
