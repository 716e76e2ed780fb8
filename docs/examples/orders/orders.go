// Declares orders and a contract, has them certified, and verifies the evidence with the receipts.
//
// usage: orders ORDERS.ndjson CONTRACT FOLDER ROOTS.pem
// CONSTANCIA_URL and CONSTANCIA_KEY: the interface and a live key. Run it again after any failure: nothing is done
// twice.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"constancia.example/constancia"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	ctx, orders, contract, folder, roots := context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	receipts := folder + "/receipts.ndjson"
	client := must(constancia.New(constancia.Options{URL: os.Getenv("CONSTANCIA_URL"), Key: os.Getenv("CONSTANCIA_KEY"),
		Receipts: &constancia.ReceiptFile{Path: receipts}}))
	first := must(client.RegisterFile(ctx, "contract "+must(constancia.Digest(contract, constancia.SHA256)), contract)).Sequence
	last := first
	lines := constancia.Lines(must(os.Open(orders)), func(order map[string]any) string {
		return fmt.Sprint("order ", order["number"])
	})
	for _, outcome := range must(client.RegisterFrom(ctx, lines).All()) {
		last = must(outcome.Event, outcome.Err).Sequence
	}
	asked := must(client.Certify(ctx, constancia.Range{SeqFrom: first, SeqTo: last}, fmt.Sprint("orders-", first, "-", last)))
	files := must(client.Save(ctx, must(client.Wait(ctx, asked.CertificationID, nil)), folder))
	check := must(constancia.VerifyArchive(ctx, files.Archive, constancia.ArchiveOptions{Parts: files.Parts,
		Receipts: []string{receipts}, Trust: []string{roots}}))
	fmt.Println(check.Verdict, check.Receipts.Compared, "receipts", check.Findings)
	if check.Verdict != constancia.VerdictValid {
		os.Exit(1)
	}
}
