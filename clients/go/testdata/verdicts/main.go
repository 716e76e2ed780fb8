// Verifies the archives that it is asked about, a question in JSON on each line, for tests/system/test_client_go_verify.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"constancia.example/constancia"
)

type question struct {
	Archive  string
	Receipts []string
	Trust    []string
	Parts    []string
	Signer   []string
	At       time.Time
	Program  string
}

func answer(line []byte) any {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return map[string]string{"error": err.Error()}
	}
	check, err := constancia.VerifyArchive(context.Background(), asked.Archive, constancia.ArchiveOptions{
		Receipts: asked.Receipts, Trust: asked.Trust, Parts: asked.Parts, Signer: asked.Signer, At: asked.At,
		Program: asked.Program})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	return check
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		said, err := json.Marshal(answer(lines.Bytes()))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(said))
	}
}
