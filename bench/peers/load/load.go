// Package load has so many clients append, each its next declaration once the last one is
// acknowledged, and prints what bench-load --json prints of it.
package load

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	PayloadBytes = 200
	uniqueBytes  = 16 // at the beginning of a payload, as hexadecimal digits
	pause        = time.Millisecond
)

// ErrBusy is what append gives for a declaration that was refused because too many are under way; its
// client tries again after a pause.
var ErrBusy = errors.New("busy")

// A Result has microseconds, from handing over a declaration to its acknowledgement.
type Result struct {
	Rate     float64 `json:"rate"`
	Finished int     `json:"finished"`
	Refused  int     `json:"refused"`
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Max      float64 `json:"max_us"`
}

type client struct {
	random  *rand.ChaCha8
	payload []byte
	took    []time.Duration
	refused int
}

func newClient() *client {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	payload := make([]byte, PayloadBytes)
	for i := range payload {
		payload[i] = 'x'
	}
	return &client{random: rand.NewChaCha8(seed), payload: payload}
}

// next is a payload that no other has, and its own part of it.
func (c *client) next() (reference, payload []byte) {
	var unique [uniqueBytes]byte
	c.random.Read(unique[:])
	hex.Encode(c.payload, unique[:])
	payload = slices.Clone(c.payload) // an append may keep it
	return payload[:2*uniqueBytes], payload
}

func (c *client) run(until time.Time, add func(reference, payload []byte) error) {
	for {
		start := time.Now()
		if start.After(until) {
			return
		}
		switch err := add(c.next()); {
		case err == nil:
			c.took = append(c.took, time.Since(start))
		case errors.Is(err, ErrBusy):
			c.refused++
			time.Sleep(pause)
		default:
			log.Fatal(err)
		}
	}
}

// Run loads add, which returns once a declaration is acknowledged, and prints the Result.
func Run(count int, duration time.Duration, add func(reference, payload []byte) error) {
	clients := make([]*client, count)
	var group sync.WaitGroup
	start := time.Now()
	for i := range clients {
		clients[i] = newClient()
		group.Go(func() { clients[i].run(start.Add(duration), add) })
	}
	group.Wait()
	spent := time.Since(start)
	var took []time.Duration
	var result Result
	for _, c := range clients {
		took = append(took, c.took...)
		result.Refused += c.refused
	}
	if len(took) == 0 {
		log.Fatal("nothing was acknowledged")
	}
	slices.Sort(took)
	at := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))].Nanoseconds()) / 1000
	}
	result.Rate = float64(len(took)) / spent.Seconds()
	result.Finished, result.P50, result.P99, result.Max = len(took), at(0.5), at(0.99), at(1)
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}
