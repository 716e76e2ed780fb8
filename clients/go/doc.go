// Package constancia is a client of Constancia, the service that puts declarations on record: registering,
// certifying, downloading with checks, verifying, and notices. It needs the standard library alone.
//
//	client, err := constancia.New(constancia.Options{URL: url, Key: key,
//		Receipts: &constancia.ReceiptFile{Path: "receipts.ndjson"}})
//	event, err := client.Register(ctx, "order-1001", map[string]any{"total": "49.90"})
//
// Every call takes a context. One that was cancelled sends nothing more; what was sent may have been done, as after
// any lost connection. To repeat a registration with the same reference is always safe.
package constancia

// Version is that of this client.
const Version = "0.1.0"
