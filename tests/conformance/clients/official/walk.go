// Walks through the interface with our own client, as it was installed from its package.
// usage: walk BASE_URL CONTENT_KEY DIGEST_KEY FOLDER
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"constancia.example/constancia"
)

func expect(truth bool, what string) error {
	if !truth {
		return errors.New(what)
	}
	return nil
}

func content(ctx context.Context, client *constancia.Client, receipts, folder string) (first, file *constancia.Event, err error) {
	if first, err = client.Register(ctx, "json", map[string]string{"total": "49.90"}); err != nil {
		return nil, nil, err
	}
	again, err := client.Register(ctx, "json", map[string]string{"total": "49.90"})
	if err != nil {
		return nil, nil, err
	}
	if err = expect(again.Replayed && again.EventID == first.EventID, "replayed"); err != nil {
		return nil, nil, err
	}
	if file, err = client.RegisterFile(ctx, "file", os.Args[0]); err != nil {
		return nil, nil, err
	}
	var references []string
	list := client.Events(ctx, constancia.EventFilter{Limit: 1})
	for list.Next() {
		references = append(references, list.Value().ClientRef)
	}
	if err = errors.Join(list.Err(), expect(strings.Join(references, " ") == "json file", "list")); err != nil {
		return nil, nil, err
	}
	return first, file, certify(ctx, client, receipts, folder)
}

func certify(ctx context.Context, client *constancia.Client, receipts, folder string) error {
	asked, err := client.Certify(ctx, constancia.Range{SeqFrom: 1, SeqTo: 2}, "")
	if err != nil {
		return err
	}
	done, err := client.Wait(ctx, asked.CertificationID, nil)
	if err != nil {
		return err
	}
	files, err := client.Save(ctx, done, folder)
	if err != nil {
		return err
	}
	report, err := client.VerifyFile(ctx, files.Reports[0])
	if err != nil {
		return err
	}
	check, err := constancia.VerifyArchive(ctx, files.Archive, constancia.ArchiveOptions{
		Receipts: []string{receipts}, Program: constancia.NoProgram})
	if err != nil {
		return err
	}
	return errors.Join(expect(report.Verification.Valid, "the report is valid"),
		expect(check.Verdict == constancia.VerdictOriginNotEstablished && check.Receipts.Compared == 3,
			fmt.Sprintf("%+v", check)))
}

func digests(ctx context.Context, client *constancia.Client, first, file *constancia.Event) error {
	if _, err := client.RegisterDigest(ctx, "digest", file.Hash); err != nil {
		return err
	}
	_, err := client.RegisterDigest(ctx, "digest", first.Hash)
	var refused *constancia.APIError
	return expect(errors.Is(err, constancia.ErrConflict) && errors.As(err, &refused) &&
		refused.Code == "client_ref_conflict", fmt.Sprint("a conflict is refused: ", err))
}

func walk(url, contentKey, digestKey, folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	receipts := filepath.Join(folder, "receipts.ndjson")
	client, err := constancia.New(constancia.Options{URL: url, Key: contentKey, Receipts: &constancia.ReceiptFile{Path: receipts}})
	if err != nil {
		return err
	}
	first, file, err := content(context.Background(), client, receipts, folder)
	if err != nil {
		return err
	}
	other, err := constancia.New(constancia.Options{URL: url, Key: digestKey})
	if err != nil {
		return err
	}
	return digests(context.Background(), other, first, file)
}

func main() {
	if err := walk(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatal(err)
	}
}
