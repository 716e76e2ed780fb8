// Appends to a Tessera log in a POSIX file system: from clients in this process, or for those that
// POST over HTTP. An append is acknowledged when Tessera's future of it resolves: its bundle of
// entries, the tiles and the tree's state are written with O_SYNC and their directories synced. Nobody
// waits for the checkpoint, which is published each 10 s by default.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"

	"peers/load"
)

var (
	directory = flag.String("directory", "", "of a new log")
	batchSize = flag.Uint("batch-size", tessera.DefaultBatchMaxSize, "entries that are written together at most")
	batchAge  = flag.Duration("batch-age", tessera.DefaultBatchMaxAge, "for which the first of them waits at most")
	clients   = flag.Int("clients", 0, "in this process; 0: serves HTTP until standard input ends, and prints its port")
	duration  = flag.Duration("duration", 3*time.Second, "how long they append")
)

func open(ctx context.Context) *tessera.Appender {
	private, _, err := note.GenerateKey(rand.Reader, "bench")
	if err != nil {
		log.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		log.Fatal(err)
	}
	driver, err := posix.New(ctx, posix.Config{Path: *directory})
	if err != nil {
		log.Fatal(err)
	}
	appender, _, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithBatching(*batchSize, *batchAge))
	if err != nil {
		log.Fatal(err)
	}
	return appender
}

func serve(appender *tessera.Appender) {
	http.HandleFunc("POST /v1/events", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		index, err := appender.Add(r.Context(), tessera.NewEntry(body))()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%d", index.Index)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	go func() { log.Fatal(http.Serve(listener, nil)) }()
	io.Copy(io.Discard, os.Stdin)
}

func main() {
	flag.Parse()
	ctx := context.Background()
	appender := open(ctx)
	if *clients == 0 {
		serve(appender)
		return
	}
	load.Run(*clients, *duration, func(_, payload []byte) error {
		_, err := appender.Add(ctx, tessera.NewEntry(payload))()
		if errors.Is(err, tessera.ErrPushback) {
			return load.ErrBusy
		}
		return err
	})
}
