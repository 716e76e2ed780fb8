package evidence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// What was checked, or was not.
const (
	Structure  = "structure: ZIP, entries, canonical documents, digests of all files"
	Chain      = "chain: every event, its order, its configuration and its place in the chain"
	Segments   = "segments: every event leads to the root of a round, whose tokens are over it"
	Log        = "log: the place of every segment, and that all checkpoints are of one history"
	Content    = "content parts that were given"
	Receipts   = "receipts"
	Signatures = "signatures: by the keys of the certificates inside"
	Origin     = "origin: certificate paths to trusted roots, revocation, validity in time, signer lists, and the " +
		"rules of signatures"
	// What is never checked here, or was not given. The clients for other languages use the same words.
	LogSignatures    = "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks"
	ReceiptsNotGiven = "receipts: not given"
	ContentNotGiven  = "content parts: not all given"
	ReportsNotGiven  = "reports: not given"
)

const findingsMax = 100

// Finding keeps an archive from being valid. Code is of docs/verify/findings.md, or begins with `client.`; Verdict is
// the code of the verdict that it leads to.
type Finding struct{ Verdict, Code, What string }

// Input is what is checked.
type Input struct {
	Path    string
	Parts   []string
	Signers []string // SHA-256 of the certificates that alone may have signed; none: any
	// Receipts calls a function with each receipt, as JSON, and what to call it; nil: there are none to compare.
	Receipts func(add func(where string, line []byte) error) error
}

// Result is what was found.
type Result struct {
	Findings    []Finding
	Checked     []string
	IsSound     bool   // all checks went through
	SHA256      string // of the archive, if it is sound
	Mode        string
	HasLog      bool // it says where its segments are in the log
	Manifest    []byte
	Signer      string // SHA-256 of the certificate that is named as the signer's
	StampedAt   string // of the signature's timestamp; empty: there is none
	HasReceipts bool
	LacksParts  bool // content parts that the archive lists were not given
	Compared    int
	Outside     int
	Differing   int
}

type run struct {
	ctx       context.Context
	input     Input
	result    *Result
	unchecked string // why the value of a signature could not be judged
}

// Check checks all that can be checked without certificates. It ends with the first thing that is not valid. An error is
// about reading, not about what was read.
func Check(ctx context.Context, input Input) (*Result, error) {
	r := &run{ctx: ctx, input: input, result: &Result{}}
	err := r.all()
	var invalid *Invalid
	var other *NotArchive
	switch {
	case errors.As(err, &other):
		r.find("could_not_check", "client.part_alone", other.What)
	case errors.As(err, &invalid):
		r.find("not_valid", "client.not_valid", invalid.Error())
	case err != nil:
		return nil, err
	}
	return r.result, nil
}

// find keeps the first findings, and the one that ends a check whatever number came before.
func (r *run) find(verdict, code, what string) {
	if len(r.result.Findings) < findingsMax || verdict == "not_valid" {
		r.result.Findings = append(r.result.Findings, Finding{verdict, code, what})
	}
}

func (r *run) done(what string) { r.result.Checked = append(r.result.Checked, what) }

func (r *run) all() (err error) {
	defer catch(&err)
	file, size := open(r.input.Path)
	defer file.Close()
	is, err := IsZip(file, size)
	if err != nil {
		return err
	}
	where := filepath.Base(r.input.Path)
	if !is {
		r.find("could_not_check", "file.kind_unknown", where+" is no evidence archive")
		return nil
	}
	archive := openArchive(file, size, where)
	r.result.Mode, r.result.Manifest = archive.mode, canonical(archive.manifest)
	r.result.HasLog = archive.hasLog
	r.done(Structure)
	signatures := archive.checkSignature()
	r.result.Signer, r.result.StampedAt = archive.signed.fingerprint(), archive.stampedAt
	for _, one := range signatures {
		r.judge(one)
	}
	r.checkSigner(archive)
	if err := r.checkEvents(archive); err != nil {
		return err
	}
	r.checkContent(archive)
	r.result.SHA256 = digestOf(file, size)
	r.result.IsSound = true
	return nil
}

// judge checks the value of a signature, as far as the standard library can.
func (r *run) judge(one *signed) {
	if r.unchecked == "" {
		r.unchecked = one.checkValue()
	}
}

func (r *run) checkSigner(archive *archive) {
	if len(r.input.Signers) == 0 {
		return
	}
	for _, one := range r.input.Signers {
		if one == archive.signed.fingerprint() {
			return
		}
	}
	panic(&Invalid{signedName, "the signer " + archive.signed.fingerprint() + " is not one of those that may have signed"})
}

func (r *run) checkEvents(archive *archive) error {
	compare := &differences{archive: archive}
	isUsable := false
	if r.input.Receipts != nil {
		r.result.HasReceipts = true
		err := r.input.Receipts(compare.add)
		if err == nil {
			err = compare.end()
		}
		var not *NotUsable
		if errors.As(err, &not) {
			r.find("could_not_check", "receipt.not_usable", not.What)
		} else if err != nil {
			return err
		}
		isUsable = err == nil
		for _, one := range compare.unusable {
			if isUsable {
				r.find("could_not_check", "receipt.malformed", one.What)
			}
		}
	}
	if !isUsable {
		compare = &differences{archive: archive}
	}
	compare.begin()
	read := func(one link) {
		if err := r.ctx.Err(); err != nil {
			panic(unreadable{err})
		}
		compare.with(one)
	}
	settle := func() {
		r.result.Differing += compare.differing
		for _, what := range compare.found {
			r.find("could_not_check", "receipt.event_differs", what)
		}
		compare.differing, compare.found = 0, nil
	}
	hasOpenStart := walk(archive, r.judge, visitor{read, settle})
	r.done(Chain)
	if archive.mode == "live" {
		r.done(Segments)
	}
	if archive.hasLog {
		r.done(Log)
	}
	if r.unchecked == "" {
		r.done(Signatures)
	}
	if hasOpenStart {
		r.find("could_not_check", "client.open_start", "the first segment names no token before, and nothing here shows "+
			"that it is of the first round of all")
	}
	if isUsable {
		r.conclude(compare)
	}
	return nil
}

func (r *run) conclude(compare *differences) {
	r.result.Compared, r.result.Outside = compare.compared, compare.outside
	r.done(Receipts)
	if len(compare.leftOut) > 0 {
		var numbers []string
		for _, one := range compare.leftOut {
			numbers = append(numbers, strconv.FormatInt(one, 10))
		}
		r.find("could_not_check", "client.left_out", "events of the time that was asked for were acknowledged, and are not "+
			"in the archive: "+strings.Join(numbers, ", "))
	}
	if compare.compared == 0 {
		r.find("could_not_check", "receipt.event_not_given", "no receipt is of an event of this archive")
	}
}

func (r *run) checkContent(archive *archive) {
	given := map[string]bool{}
	for _, path := range r.input.Parts {
		if name := archive.checkPart(path); name != "" {
			given[name] = true
		} else {
			r.find("could_not_check", "client.part_of_another", filepath.Base(path)+": of another certification")
		}
	}
	if len(r.input.Parts) > 0 {
		r.done(Content)
	}
	r.result.LacksParts = len(given) < len(list(archive.manifest, "content_parts"))
}

func digestOf(file io.ReaderAt, size int64) string {
	running := sha256.New()
	count, err := io.Copy(running, io.NewSectionReader(file, 0, size))
	if err == nil && count != size {
		err = io.ErrUnexpectedEOF
	}
	mustRead(err, "the file")
	return hex.EncodeToString(running.Sum(nil))
}
