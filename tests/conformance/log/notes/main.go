// Verifies a signed note with the verifiers of golang.org/x/mod/sumdb/note and, for cosignatures, filippo.io/torchwood:
// usage: notes VKEY... < NOTE. Every key must have signed. Prints the text of the note and a line for each cosignature.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
)

func verifier(vkey string) (note.Verifier, error) {
	if v, err := torchwood.NewCosignatureVerifier(vkey); err == nil {
		return v, nil
	}
	return note.NewVerifier(vkey)
}

func run() error {
	var verifiers []note.Verifier
	for _, vkey := range os.Args[1:] {
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
