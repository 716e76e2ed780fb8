package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

const (
	leftOutMax  = 10 // that are named
	unusableMax = 10 // that are named
)

var (
	compared     = []string{"event_id", "client_ref", "received_at", "occurred_at", "hash", "hash_alg", "modality", "config_version"}
	receiptForms = members{"event_id": isText, "client_ref": isText, "channel_id": isText, "mode": isChain,
		"sequence": isPositive, "received_at": isTime, "hash": isText, "modality": isText, "chain_hash": isHash,
		"config_version": isPositive}
)

// NotUsable is of something that is no receipt.
type NotUsable struct{ What string }

func (n *NotUsable) Error() string { return n.What }

// receipt is what is compared, as short digests: there may be many of them.
type receipt struct {
	sequence  int64
	chainHash [16]byte
	facts     [8][16]byte
}

func short16(value any) [16]byte {
	digest := sha256.Sum256(canonical(value))
	return *(*[16]byte)(digest[:16])
}

// differences compares receipts with events that come in order.
type differences struct {
	archive  *archive
	waiting  []receipt
	compared int
	outside  int     // of events that the archive does not hold
	leftOut  []int64 // of events that it would have to hold
	usable   int
	unusable []*NotUsable // why some were not compared; the first ones
	// Since they were last taken: how many receipts differ from their events, and what is said of the first ones.
	differing int
	found     []string
}

// add takes a receipt. One that cannot be used spoils no other one.
func (d *differences) add(where string, line []byte) error {
	not := d.take(where, line)
	if not == nil {
		d.usable++
	} else if len(d.unusable) < unusableMax {
		d.unusable = append(d.unusable, not)
	}
	return nil
}

// end is called after the last receipt.
func (d *differences) end() error {
	if d.usable == 0 && len(d.unusable) > 0 {
		return d.unusable[0]
	}
	return nil
}

func (d *differences) take(where string, line []byte) *NotUsable {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var value object
	if decoder.Decode(&value) != nil || value == nil || decoder.More() {
		return &NotUsable{where + ": it is not the answer to a registration"}
	}
	for name, form := range receiptForms {
		if !form(value[name]) {
			return &NotUsable{fmt.Sprintf("%s: '%s' is missing or not of its form", where, name)}
		}
	}
	sequence := integer(value, "sequence")
	isOfChain := text(value, "channel_id") == d.archive.channelID && text(value, "mode") == d.archive.mode
	if !isOfChain || sequence < d.archive.first || sequence > d.archive.last {
		d.outside++
	}
	if !isOfChain {
		return nil
	}
	// One that was received in the time that was asked for, before the range, was left out: later ones may be of after
	// the request.
	if d.archive.from != "" && sequence < d.archive.first && text(value, "received_at") >= d.archive.from &&
		len(d.leftOut) < leftOutMax {
		d.leftOut = append(d.leftOut, sequence)
	}
	if value["hash_alg"] == nil {
		value["hash_alg"] = "sha-256"
	}
	made := receipt{sequence: sequence, chainHash: short16(value["chain_hash"])}
	for number, name := range compared {
		made.facts[number] = short16(value[name])
	}
	d.waiting = append(d.waiting, made)
	return nil
}

// begin is called once all receipts are there, and before the first event.
func (d *differences) begin() {
	sort.SliceStable(d.waiting, func(one, other int) bool { return d.waiting[one].sequence < d.waiting[other].sequence })
}

// with compares the receipts of an event.
func (d *differences) with(one link) {
	for len(d.waiting) > 0 && d.waiting[0].sequence <= one.sequence {
		given := d.waiting[0]
		d.waiting = d.waiting[1:]
		if given.sequence == one.sequence {
			d.compare(given, one)
		}
	}
}

func (d *differences) compare(given receipt, one link) {
	var names []string
	if given.chainHash != short16(one.chainHash) {
		names = append(names, "chain_hash")
	}
	if one.event != nil {
		d.compared++
		for number, name := range compared {
			if given.facts[number] != short16(one.event[name]) {
				names = append(names, name)
			}
		}
	}
	if names == nil {
		return
	}
	d.differing++
	if len(d.found) < findingsMax {
		d.found = append(d.found, fmt.Sprintf("event %d differs from the acknowledged event: %s", one.sequence,
			strings.Join(names, ", ")))
	}
}
