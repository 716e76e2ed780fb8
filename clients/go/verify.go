package constancia

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"constancia.example/constancia/internal/evidence"
)

const (
	receiptLineMax  = 1 << 20
	receiptWholeMax = 64 << 20
	warningsMax     = 100
	programMax      = 64 << 20
)

// NoProgram is the Program of checks that run none.
const NoProgram = "-"

// Verdict is what a check amounts to.
type Verdict string

// The verdicts.
const (
	// VerdictValid is that all is right, also by the program and the roots of Trust.
	VerdictValid Verdict = "valid"
	// VerdictOriginNotEstablished is that nothing is wrong, but something is open, such as who signed.
	VerdictOriginNotEstablished Verdict = "origin_not_established"
	// VerdictInvalid is of what is forged, damaged, or not as the format has it.
	VerdictInvalid Verdict = "invalid"
)

// ArchiveOptions are those of VerifyArchive.
type ArchiveOptions struct {
	// Receipts are paths of files, with those that they were rotated to.
	Receipts []string
	// Events are more receipts.
	Events []*Event
	// Trust are PEM files with the roots to trust. Obtain them from the authorities, not from the service.
	Trust []string
	// Parts are the paths of content parts.
	Parts []string
	// Signers are paths of signed lists of signers (Client.SignerList).
	Signers []string
	// Signer are the SHA-256 of the certificates that alone may have signed.
	Signer []string
	// At is a time to check as of, instead of now.
	At time.Time
	// Program is the path of `constancia`. Empty: it is run where it is installed; NoProgram: it is not.
	Program string
}

// Finding keeps an archive from being valid, or is a warning. Code is of the program (docs/verify/findings.md), or
// begins with `client.`; By is "client" or "program".
type Finding struct{ Code, What, By string }

// ReceiptCheck has the numbers of receipts.
type ReceiptCheck struct {
	Compared  int // of events that the archive holds
	Outside   int // of other events, channels or modes: nothing is said of these
	Differing int
}

// ArchiveCheck is what was found.
type ArchiveCheck struct {
	Verdict Verdict
	// Code is that of the program: valid, not_valid, could_not_check, signer_not_established and so on; the worse one of
	// this process and of the program.
	Code               string
	Findings, Warnings []Finding
	Checked            []string
	// NotChecked also names what was not given, which does not change the verdict.
	NotChecked []string
	// SignaturesBy is "program": with their origin; "client": only that the keys of the certificates inside made the
	// signatures and timestamps; or empty: they were not checked.
	SignaturesBy string
	Manifest     json.RawMessage
	SignerSHA256 string // of the certificate that is named as the signer's
	StampedAt    *Time  // of the signature's timestamp
	Receipts     *ReceiptCheck
	Program      json.RawMessage // what the program says
}

// codes are from the best to the worst.
var codes = []string{"valid", "existence_only", "authority_not_established", "signer_not_established",
	"could_not_check", "not_valid"}

func rank(code string) int {
	for number, one := range codes {
		if one == code {
			return number
		}
	}
	return -1
}

// VerifyArchive checks an evidence archive of any size here, without the service: its shape, all digests, the chain of
// events, the segments and rounds, content parts and receipts.
//
// Whose signatures and timestamps these are is for `constancia verify` to say, which is run where it is installed:
// without it no archive is VerdictValid, but VerdictOriginNotEstablished at best. A receipt that differs makes the code
// could_not_check: nothing shows which one of the two is genuine. Receipts of other events are counted, as long as one
// at least is of this archive. The error is about reading the files.
func VerifyArchive(ctx context.Context, path string, options ArchiveOptions) (*ArchiveCheck, error) {
	check := &checkRun{options: options, path: path, result: &ArchiveCheck{Code: "signer_not_established"}}
	for _, one := range options.Signer {
		check.signers = append(check.signers, strings.ToLower(strings.ReplaceAll(one, ":", "")))
	}
	program, err := findProgram(options.Program)
	if err != nil {
		return nil, err
	}
	if err := check.here(ctx); err != nil {
		return nil, err
	}
	if program != "" {
		if err := check.ask(ctx, program); err != nil {
			return nil, err
		}
	}
	return check.conclude(), nil
}

// findProgram returns nothing where none is to be run.
func findProgram(given string) (string, error) {
	switch given {
	case NoProgram:
		return "", nil
	case "":
		found, err := exec.LookPath("constancia")
		if err != nil {
			return "", nil
		}
		return found, nil
	}
	return exec.LookPath(given)
}

// checkRun is one check: what was found so far.
type checkRun struct {
	options ArchiveOptions
	path    string
	signers []string
	found   *evidence.Result
	result  *ArchiveCheck
}

func (r *checkRun) find(verdict, code, what, by string) {
	r.worsen(verdict)
	if len(r.result.Findings) < warningsMax {
		r.result.Findings = append(r.result.Findings, Finding{code, printable(what), by})
	}
}

func (r *checkRun) warn(code, what, by string) {
	if len(r.result.Warnings) < warningsMax {
		r.result.Warnings = append(r.result.Warnings, Finding{code, printable(what), by})
	}
}

func (r *checkRun) worsen(verdict string) {
	if rank(verdict) > rank(r.result.Code) {
		r.result.Code = verdict
	}
}

func (r *checkRun) conclude() *ArchiveCheck {
	result, found := r.result, r.found
	every := []string{evidence.Structure, evidence.Chain, evidence.Signatures, evidence.Origin}
	if found.Mode != "test" {
		every = append(every, evidence.Segments)
	}
	if found.HasLog {
		every = append(every, evidence.Log)
	}
	if len(r.options.Parts) > 0 {
		every = append(every, evidence.Content)
	}
	if r.hasReceipts() {
		every = append(every, evidence.Receipts)
	}
	if found.HasReceipts {
		result.Receipts = &ReceiptCheck{found.Compared, found.Outside, found.Differing}
	}
	for _, one := range every {
		if !has(result.Checked, one) {
			result.NotChecked = append(result.NotChecked, one)
		}
	}
	result.NotChecked = append(result.NotChecked, r.notGiven()...)
	if result.Program != nil {
		result.SignaturesBy = "program"
	} else if has(result.Checked, evidence.Signatures) {
		result.SignaturesBy = "client"
	}
	switch result.Code {
	case "valid":
		result.Verdict = VerdictValid
	case "not_valid":
		result.Verdict = VerdictInvalid
	default:
		result.Verdict = VerdictOriginNotEstablished
	}
	return result
}

func (r *checkRun) hasReceipts() bool { return r.options.Receipts != nil || r.options.Events != nil }

// notGiven names what is never checked here, and the parts of the evidence that were not given.
func (r *checkRun) notGiven() []string {
	var names []string
	if r.found.HasLog {
		names = append(names, evidence.LogSignatures)
	}
	if !r.hasReceipts() {
		names = append(names, evidence.ReceiptsNotGiven)
	}
	if r.found.LacksParts {
		names = append(names, evidence.ContentNotGiven)
	}
	return append(names, evidence.ReportsNotGiven) // none can be: the program checks them
}

func has(words []string, word string) bool {
	for _, one := range words {
		if one == word {
			return true
		}
	}
	return false
}

// ---- in this process ----

func (r *checkRun) here(ctx context.Context) error {
	input := evidence.Input{Path: r.path, Parts: r.options.Parts, Signers: r.signers}
	if r.hasReceipts() {
		input.Receipts = r.eachReceipt
	}
	found, err := evidence.Check(ctx, input)
	if err != nil {
		return err
	}
	r.found = found
	for _, one := range found.Findings {
		r.find(one.Verdict, one.Code, one.What, "client")
	}
	r.result.Checked, r.result.Manifest, r.result.SignerSHA256 = found.Checked, found.Manifest, found.Signer
	if found.StampedAt != "" {
		stamped := &Time{}
		if stamped.UnmarshalJSON([]byte(`"`+found.StampedAt+`"`)) == nil {
			r.result.StampedAt = stamped
		}
	}
	if found.IsSound && found.Mode == "test" {
		r.warn("client.test", "a test archive has no probative value", "client")
	}
	return nil
}

// eachReceipt gives receipts, each with what to call it.
func (r *checkRun) eachReceipt(add func(string, []byte) error) error {
	for _, path := range r.options.Receipts {
		files, err := receiptFiles(path)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s: there are no receipts: %w", path, os.ErrNotExist)
		}
		for _, file := range files {
			if err := readReceipts(file, add); err != nil {
				return err
			}
		}
	}
	for number, event := range r.options.Events {
		line, err := event.MarshalJSON()
		if err != nil {
			return err
		}
		if err := add("receipt "+strconv.Itoa(number+1), line); err != nil {
			return err
		}
	}
	return nil
}

// readReceipts gives the receipts of a file: one in each line, one alone, or a JSON array of them.
func readReceipts(path string, add func(string, []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, receiptLineMax)
	first, err := reader.ReadSlice('\n')
	if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
		return err
	}
	trimmed := bytes.TrimSpace(first)
	isLines := bytes.HasPrefix(trimmed, []byte("{")) && json.Valid(trimmed)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if !isLines {
		return readWhole(path, file, add)
	}
	reader.Reset(file)
	for number := 1; ; number++ {
		line, err := reader.ReadSlice('\n')
		where := fmt.Sprintf("%s: line %d", path, number)
		if err == bufio.ErrBufferFull {
			return &evidence.NotUsable{What: where + ": it is too long"}
		}
		if err != nil && err != io.EOF {
			return err
		}
		if line := bytes.TrimSpace(line); len(line) > 0 {
			if err := add(where, line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

func readWhole(path string, file io.Reader, add func(string, []byte) error) error {
	data, err := io.ReadAll(io.LimitReader(file, receiptWholeMax+1))
	if err != nil {
		return err
	}
	if len(data) > receiptWholeMax {
		return &evidence.NotUsable{What: fmt.Sprintf("%s: it has more than %d bytes, and not one receipt a line", path,
			receiptWholeMax)}
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	receipts := []json.RawMessage{data}
	if data[0] == '[' {
		err = json.Unmarshal(data, &receipts)
	} else if !json.Valid(data) {
		err = errors.New("that is no JSON")
	}
	if err != nil {
		return &evidence.NotUsable{What: fmt.Sprintf("%s: %v", path, err)}
	}
	for number, one := range receipts {
		if err := add(fmt.Sprintf("%s: receipt %d", path, number+1), one); err != nil {
			return err
		}
	}
	return nil
}

// ---- by the program ----

// said is what `constancia verify --json` prints.
type said struct {
	Valid   bool `json:"valid"`
	Verdict struct {
		Code string `json:"code"`
	} `json:"verdict"`
	Findings, Warnings []struct{ Code, What string }
	Files              []struct {
		SHA256 string `json:"sha256"`
	} `json:"files"`
}

// ask has the program judge the same files; the worse of both verdicts counts.
func (r *checkRun) ask(ctx context.Context, program string) error {
	words, done, err := r.words()
	defer done()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, words...)
	var output, complaint limited
	command.Stdout, command.Stderr = &output, &complaint
	failed := command.Run()
	if err := ctx.Err(); err != nil {
		return err
	}
	status := command.ProcessState
	if status == nil {
		return fmt.Errorf("the program could not be run: %w", failed)
	}
	var report said
	if json.Unmarshal(output.data, &report) != nil || rank(report.Verdict.Code) < 0 || report.Findings == nil ||
		report.Warnings == nil {
		why := strings.TrimSpace(string(complaint.data))
		if why == "" {
			why = status.String()
		}
		if len(why) > 500 {
			why = why[:500]
		}
		r.find("could_not_check", "client.program_failed", program+": "+why, "client")
		return nil
	}
	isValid := report.Verdict.Code == "valid"
	if isValid && r.found.SHA256 != "" && !report.names(r.found.SHA256) {
		r.find("could_not_check", "client.program_failed", program+": it read another file", "client")
		return nil
	}
	if isValid != (status.ExitCode() == 0) {
		r.find("could_not_check", "client.program_failed", program+": "+status.String(), "client")
		return nil
	}
	r.take(report, output.data)
	return nil
}

func (s said) names(digest string) bool {
	for _, one := range s.Files {
		if one.SHA256 == digest {
			return true
		}
	}
	return false
}

func (r *checkRun) take(report said, output []byte) {
	r.result.Program = output
	for _, one := range report.Warnings {
		r.warn(one.Code, one.What, "program")
	}
	if r.found.IsSound && r.result.Code == "signer_not_established" {
		r.result.Code = report.Verdict.Code // that was all that this process could not know
	}
	for _, one := range report.Findings {
		r.find(report.Verdict.Code, one.Code, one.What, "program")
	}
	r.worsen(report.Verdict.Code)
	for _, one := range []string{evidence.Signatures, evidence.Origin} {
		if !has(r.result.Checked, one) {
			r.result.Checked = append(r.result.Checked, one)
		}
	}
}

// words returns the program's arguments, and what to do when it is done.
func (r *checkRun) words() ([]string, func(), error) {
	done := func() {}
	words := []string{"verify"}
	for _, path := range append([]string{r.path}, r.options.Parts...) {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, done, err
		}
		words = append(words, absolute)
	}
	words = append(words, "--json", "--config", "")
	if len(r.options.Trust) == 1 {
		words = append(words, "--trust", r.options.Trust[0])
	} else if len(r.options.Trust) > 1 {
		path, err := joinedFiles(r.options.Trust)
		if path != "" {
			done = func() { os.Remove(path) }
		}
		if err != nil {
			return nil, done, err
		}
		words = append(words, "--trust", path)
	}
	for _, one := range r.options.Signers {
		words = append(words, "--signers", one)
	}
	for _, one := range r.signers {
		words = append(words, "--signer", one)
	}
	if !r.options.At.IsZero() {
		words = append(words, "--at", utc(r.options.At))
	}
	return words, done, nil
}

// joinedFiles returns one PEM file that holds several.
func joinedFiles(paths []string) (string, error) {
	file, err := os.CreateTemp("", "constancia-*.pem")
	if err != nil {
		return "", err
	}
	defer file.Close()
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil {
			_, err = file.Write(append(data, '\n'))
		}
		if err != nil {
			return file.Name(), err
		}
	}
	return file.Name(), nil
}

// limited keeps what a program writes, up to a limit.
type limited struct{ data []byte }

func (l *limited) Write(data []byte) (int, error) {
	if len(l.data)+len(data) > programMax {
		return 0, errors.New("the program prints too much")
	}
	l.data = append(l.data, data...)
	return len(data), nil
}

// printable escapes control characters: parts of a text are of the archive's maker.
func printable(text string) string {
	var shown strings.Builder
	for _, letter := range text {
		if unicode.IsPrint(letter) {
			shown.WriteRune(letter)
		} else {
			fmt.Fprintf(&shown, `\u{%x}`, letter)
		}
	}
	return shown.String()
}
