// Verifies a signed note with the verifiers of golang.org/x/mod/sumdb/note and, for cosignatures, filippo.io/torchwood:
// usage: notes VKEY... < NOTE. Every key must have signed. Prints the text of the note and a line for each cosignature.
// notes --entry FILE VKEY... < PROOF verifies with torchwood that the entry in the file has that tlog-proof, instead. The
// first key is the log's.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func verifier(vkey string) (note.Verifier, error) {
	if v, err := torchwood.NewCosignatureVerifier(vkey); err == nil {
		return v, nil
	}
	return note.NewVerifier(vkey)
}

func checkEntry(file string, verifiers []note.Verifier, proof []byte) error {
	entry, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all := []torchwood.Policy{torchwood.OriginPolicy(verifiers[0].Name())}
	for _, v := range verifiers {
		all = append(all, torchwood.SingleVerifierPolicy(v))
	}
	policy := torchwood.ThresholdPolicy(len(all), all...)
	return torchwood.VerifyProof(policy, tlog.RecordHash(entry), proof)
}

func run() error {
	var verifiers []note.Verifier
	entry, vkeys := "", os.Args[1:]
	if len(vkeys) >= 2 && vkeys[0] == "--entry" {
		entry, vkeys = vkeys[1], vkeys[2:]
	}
	for _, vkey := range vkeys {
		v, err := verifier(vkey)
		if err != nil {
			return fmt.Errorf("%s: %w", vkey, err)
		}
		verifiers = append(verifiers, v)
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	if entry != "" {
		return checkEntry(entry, verifiers, text)
	}
	opened, err := note.Open(text, note.VerifierList(verifiers...))
	if err != nil {
		return err
	}
	if len(opened.Sigs) != len(verifiers) {
		return fmt.Errorf("%d of %d keys have signed", len(opened.Sigs), len(verifiers))
	}
	fmt.Print(opened.Text)
	for _, signature := range opened.Sigs {
		if at, err := torchwood.CosignatureTimestamp(signature); err == nil {
			fmt.Printf("%s %s\n", signature.Name, time.Unix(at, 0).UTC().Format(time.RFC3339))
		}
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
