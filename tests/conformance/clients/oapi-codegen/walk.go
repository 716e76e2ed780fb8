// Walks through the interface with the client that oapi-codegen made.
// usage: walk BASE_URL CONTENT_KEY DIGEST_KEY LATER_URL
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"

	api "example.com/walk/client"
)

const patience = 300 * time.Second

var (
	when   = time.Date(2026, 1, 31, 8, 30, 0, 123456000, time.UTC)
	always = context.Background()
)

func expect(holds bool, what string, more ...any) {
	if !holds {
		fmt.Fprintln(os.Stderr, append([]any{"not so:", what}, more...)...)
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	expect(err == nil, "answered", err)
	return value
}

func sha(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

func register(client *api.ClientWithResponses, file []byte) {
	var declared api.EventDeclaration
	expect(declared.FromEventPayload(api.EventPayload{ClientRef: "json", OccurredAt: &when,
		Payload: map[string]any{"total": "1210.00", "lines": []any{1, map[string]any{}}}}) == nil, "declared")
	first := must(client.RegisterEventWithResponse(always, nil, declared))
	expect(first.JSON201 != nil && first.JSON201.Sequence == 1, "registered", string(first.Body))
	expect(first.JSON201.OccurredAt.Equal(when), "declared time", first.JSON201.OccurredAt)
	again := must(client.RegisterEventWithResponse(always, nil, declared))
	expect(again.JSON200 != nil && reflect.DeepEqual(again.JSON200, first.JSON201), "the same event")
	expect(again.HTTPResponse.Header.Get("Idempotent-Replayed") == "true", "marked as a replay")

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	expect(form.WriteField("client_ref", "file") == nil, "field")
	part := must(form.CreateFormFile("file", "scan.bin"))
	must(part.Write(file))
	expect(form.Close() == nil, "form")
	held := must(client.RegisterFileWithBodyWithResponse(always, nil, form.FormDataContentType(), &body)).JSON201
	expect(held != nil && held.Hash == sha(file), "digest of the file")
	content := must(client.GetEventContentWithResponse(always, held.EventId, nil))
	expect(bytes.Equal(content.Body, file), "the file as it is held")
	event := must(client.GetEventWithResponse(always, first.JSON201.EventId, nil)).JSON200
	expect(event != nil && len(event.Proof.PreviousChainHash) == 64, "proof")
}

func registerDigest(client *api.ClientWithResponses, file []byte) {
	var declared api.EventDeclaration
	digest := fmt.Sprintf("%x", sha512.Sum512(file))
	expect(declared.FromEventHash(api.EventHash{ClientRef: "digest", Hash: digest,
		HashAlg: api.EventHashHashAlgSha512}) == nil, "declared")
	event := must(client.RegisterEventWithResponse(always, nil, declared)).JSON201
	expect(event != nil && event.Hash == digest && event.Modality == api.HashOnly, "digest")
	kept, err := json.Marshal(event) // as a receipt: with the members that are null
	expect(err == nil && bytes.Contains(kept, []byte(`"occurred_at":null`)) &&
		bytes.Contains(kept, []byte(`"sealed_at":null`)), "members that are null", string(kept))
}

func listAll(client *api.ClientWithResponses) {
	var references []string
	limit := 1
	asked := api.ListEventsParams{Limit: &limit}
	for {
		page := must(client.ListEventsWithResponse(always, &asked)).JSON200
		expect(page != nil && page.HasMore == (page.NextCursor != nil), "page")
		for _, event := range page.Data {
			references = append(references, event.ClientRef)
		}
		if !page.HasMore {
			break
		}
		asked.Cursor = page.NextCursor
	}
	expect(reflect.DeepEqual(references, []string{"json", "file"}), "all events", references)
}

func certify(client *api.ClientWithResponses) *api.Certification {
	from, to := int64(1), int64(2)
	wanted := api.CertificationRequest{SeqFrom: &from, SeqTo: &to}
	now := must(client.RequestCertificationWithResponse(always, nil, wanted)).JSON202
	expect(now != nil, "accepted")
	for deadline := time.Now().Add(patience); now.Status == "processing" && time.Now().Before(deadline); {
		time.Sleep(500 * time.Millisecond)
		now = must(client.GetCertificationWithResponse(always, now.CertificationId, nil)).JSON200
		expect(now != nil, "read")
	}
	expect(now.Status == "completed" && *now.EventCount == 2, "certified", now.Status)
	status := api.ListCertificationsParamsStatus("completed")
	listed := must(client.ListCertificationsWithResponse(always,
		&api.ListCertificationsParams{Status: &status})).JSON200
	expect(len(listed.Data) == 1 && listed.Data[0].CertificationId == now.CertificationId, "listed")
	return now
}

func download(client *api.ClientWithResponses, certification *api.Certification) {
	expect(len(certification.Reports) > 0, "reports")
	for _, report := range certification.Reports {
		link := must(url.Parse(report.Url))
		asked := api.DownloadParams{Mac: link.Query().Get("mac"),
			Expires: must(strconv.ParseInt(link.Query().Get("expires"), 10, 64))}
		content := must(client.DownloadWithResponse(always, certification.CertificationId,
			path.Base(link.Path), &asked))
		expect(sha(content.Body) == report.Sha256, "digest of the report")
	}
	expect(len(must(client.ListSignersWithResponse(always)).JSON200.Data) > 0, "signers")
}

func verify(pages *api.ClientWithResponses, certification *api.Certification) {
	found := must(pages.VerifyCodeWithResponse(always, *certification.VerificationCode)).JSON200
	expect(found != nil && found.CertificationId == certification.CertificationId, "verified")
	digest := certification.Reports[0].Sha256
	found = must(pages.VerifyWithResponse(always, &api.VerifyParams{Sha256: &digest})).JSON200
	expect(found != nil && len(found.Documents) > 0, "verified by digest")
	missing := must(pages.VerifyCodeWithResponse(always, "SVC-2026-AAAA-AAAA")).JSON404
	expect(missing != nil && missing.Code == "not_found", "verified what is not there")
}

func readErrors(content, digests, later *api.ClientWithResponses) {
	missing := must(content.GetEventWithResponse(always, "evt_none", nil)).JSON404
	expect(missing != nil && missing.Code == "not_found" && missing.Message != "", "404")
	missing = must(later.GetEventWithResponse(always, "evt_none", nil)).JSON404
	expect(missing != nil && missing.Code == "code_of_a_later_version", "404 of a later version")
	var other api.EventDeclaration
	expect(other.FromEventHash(api.EventHash{ClientRef: "digest", Hash: strings.Repeat("0", 64),
		HashAlg: api.EventHashHashAlgSha256}) == nil, "declared")
	conflict := must(digests.RegisterEventWithResponse(always, nil, other)).JSON409
	expect(conflict != nil && conflict.Code == "client_ref_conflict", "409")
}

func client(address, key string) *api.ClientWithResponses {
	return must(api.NewClientWithResponses(address, api.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+key)
			request.Header.Set("Accept", "application/json") // or /verify is a page
			return nil
		})))
}

func main() {
	base := os.Args[1]
	content, digests := client(base, os.Args[2]), client(base, os.Args[3])
	file := bytes.Repeat([]byte("a file\x00\xff\r\n"), 2000)
	register(content, file)
	registerDigest(digests, file)
	listAll(content)
	certification := certify(content)
	download(content, certification)
	verify(client(strings.TrimSuffix(base, "/v1"), ""), certification)
	readErrors(content, digests, client(os.Args[4], ""))
	expect(must(content.GetBalanceWithResponse(always, nil)).JSON200.Operational, "operational")
}
