// Appends to an immudb server: a Set of a key and a value for each declaration, or for each of a batch
// (SetAll), over gRPC. The
// messages, of which few are needed, are written as the protocol has them (immudb.schema.ImmuService),
// without the server's own packages. A Set is acknowledged when its transaction is committed, which
// in synced mode is when the server's logs are synced; it does not wait for the index (noWait).
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"peers/load"
)

var (
	address       = flag.String("address", "127.0.0.1:3322", "of the server")
	clients       = flag.Int("clients", 1, "that append")
	connections   = flag.Int("connections", 4, "that they share")
	duration      = flag.Duration("duration", 3*time.Second, "how long")
	syncFrequency = flag.Duration("sync-frequency", 0, "of the server's database; 0: its default")
	batch         = flag.Int("batch", 1, "declarations of a Set (SetAll); rates are of Sets")
	concurrency   = flag.Uint64("concurrency", 0, "commits under way in the server's database at most; 0: its default")
)

// plain hands over messages as they are.
type plain struct{}

func (plain) Name() string                        { return "proto" }
func (plain) Marshal(message any) ([]byte, error) { return message.([]byte), nil }
func (plain) Unmarshal(data []byte, to any) error {
	*to.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func bytesField(message []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, number, protowire.BytesType), value)
}

func numberField(message []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, number, protowire.VarintType), value)
}

// firstField is the value of the message's first field, of strings only.
func firstField(message []byte) string {
	_, _, size := protowire.ConsumeTag(message)
	if size < 0 {
		log.Fatal("an answer that is none")
	}
	value, size := protowire.ConsumeBytes(message[size:])
	if size < 0 {
		log.Fatal("an answer that is none")
	}
	return string(value)
}

type connection struct {
	*grpc.ClientConn
	session context.Context
}

func (c *connection) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	var answer []byte
	err := c.Invoke(ctx, "/immudb.schema.ImmuService/"+method, message, &answer)
	return answer, err
}

func open(database string) *connection {
	dialled, err := grpc.NewClient(*address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
	if err != nil {
		log.Fatal(err)
	}
	c := &connection{ClientConn: dialled}
	request := bytesField(nil, 1, []byte("immudb")) // the user and the password of a new server
	request = bytesField(request, 2, []byte("immudb"))
	request = bytesField(request, 3, []byte(database))
	answer, err := c.call(context.Background(), "OpenSession", request)
	if err != nil {
		log.Fatal(err)
	}
	c.session = metadata.AppendToOutgoingContext(context.Background(), "sessionid", firstField(answer))
	return c
}

// database is the name of one with the settings that are asked for.
func database() string {
	var settings []byte
	if *concurrency > 0 {
		settings = bytesField(settings, 13, numberField(nil, 1, *concurrency)) // prepared at once
		settings = bytesField(settings, 26, numberField(nil, 1, *concurrency)) // not yet synced
	}
	if *syncFrequency > 0 {
		settings = bytesField(settings, 23, numberField(nil, 1, uint64(syncFrequency.Milliseconds())))
	}
	if settings == nil {
		return "defaultdb"
	}
	name := fmt.Sprintf("bench%dof%d", syncFrequency.Milliseconds(), *concurrency)
	request := bytesField(nil, 1, []byte(name))
	request = numberField(bytesField(request, 2, settings), 3, 1) // unless it exists
	c := open("defaultdb")
	defer c.Close()
	if _, err := c.call(c.session, "CreateDatabaseV2", request); err != nil {
		log.Fatal(err)
	}
	return name
}

func main() {
	flag.Parse()
	name := database()
	shared := make([]*connection, *connections)
	for i := range shared {
		shared[i] = open(name)
	}
	var turn atomic.Uint64
	load.Run(*clients, *duration, func(reference, payload []byte) error {
		c := shared[turn.Add(1)%uint64(len(shared))]
		var request []byte
		for i := 0; i < *batch; i++ {
			key := binary.BigEndian.AppendUint16(append([]byte(nil), reference...), uint16(i))
			request = bytesField(request, 1, bytesField(bytesField(nil, 1, key), 2, payload))
		}
		request = numberField(request, 2, 1) // noWait
		_, err := c.call(c.session, "Set", request)
		if strings.Contains(status.Convert(err).Message(), "limit exceeded") {
			return load.ErrBusy
		}
		return err
	})
}
