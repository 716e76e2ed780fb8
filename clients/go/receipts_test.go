package constancia

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func event(number int) *Event {
	made := &Event{}
	if err := json.Unmarshal([]byte(eventOf(fmt.Sprintf("r%d", number), strings.Repeat("a", 64))), made); err != nil {
		panic(err)
	}
	return made
}

func references(t *testing.T, path string) string {
	t.Helper()
	var found []string
	for _, line := range strings.Split(strings.TrimSuffix(string(readFile(t, path)), "\n"), "\n") {
		var one struct {
			ClientRef string `json:"client_ref"`
		}
		must(t, json.Unmarshal([]byte(line), &one))
		found = append(found, one.ClientRef)
	}
	return strings.Join(found, " ")
}

func TestAReceiptIsKeptAsItCameBeforeTheCallReturns(t *testing.T) {
	server := newScript(t, say(201, eventOf("a", strings.Repeat("1", 64))),
		say(200, eventOf("a", strings.Repeat("1", 64)), "Idempotent-Replayed", "true"))
	path := inFolder(t, "receipts.ndjson")
	client, _ := server.newClient(t, func(options *Options) { options.Receipts = &ReceiptFile{Path: path} })
	for _, replayed := range []bool{false, true} {
		found, err := client.Register(background, "a", map[string]any{"a": 1})
		must(t, err)
		expect(t, found.Replayed == replayed, "%v", found)
	}
	lines := strings.Split(string(readFile(t, path)), "\n")
	expect(t, len(lines) == 3 && lines[0] == lines[1] && strings.Contains(lines[0], `"later":{"a":[1]}`) &&
		strings.Contains(lines[0], `"occurred_at":null`), "%q", lines)
	info, err := os.Stat(path)
	must(t, err)
	expect(t, info.Mode().Perm() == 0o600, "%v", info.Mode())
}

func TestAnEventThatIsMadeHereHasTheFormOfTheService(t *testing.T) {
	made := event(1)
	made.Raw = nil
	said, err := json.Marshal(made)
	must(t, err)
	expect(t, strings.Contains(string(said), `"received_at":"2026-01-02T03:04:05.600000Z"`) &&
		strings.Contains(string(said), `"occurred_at":null`) && !strings.Contains(string(said), "eplayed"), "%s", said)
	var again Event
	must(t, json.Unmarshal(said, &again))
	expect(t, again.ReceivedAt.Equal(made.ReceivedAt.Time) && again.EventID == made.EventID, "%v", again)
}

func TestAReceiptThatCannotBeKeptIsInTheError(t *testing.T) {
	full := errors.New("the disk is full")
	server := newScript(t, say(201, eventOf("a", "0")), say(201, eventOf("a", "0")))
	client, _ := server.newClient(t, func(options *Options) {
		options.Receipts = SinkFunc(func(*Event) error { return full })
	})
	_, err := client.Register(background, "a", map[string]any{})
	var not *ReceiptNotKeptError
	expect(t, errors.As(err, &not) && errors.Is(err, full) && not.Events[0].EventID == "evt_a" &&
		strings.Contains(err.Error(), "evt_a: registered"), "%v", err)
	other, _ := server.newClient(t, func(options *Options) {
		options.Receipts = &ReceiptFile{Path: filepath.Join(t.TempDir(), "no", "file")}
	})
	found, err := other.Register(background, "a", map[string]any{})
	expect(t, errors.As(err, &not) && found.EventID == "evt_a", "%v", err)
}

func TestAFileIsRotatedAndNoneIsOverwritten(t *testing.T) {
	path := inFolder(t, "receipts.ndjson")
	line, err := event(1).line()
	must(t, err)
	file := &ReceiptFile{Path: path, RotateBytes: int64(2*len(line) + 2)}
	for number := 1; number <= 7; number++ {
		if number == 5 {
			writeFile(t, path+".3", []byte("of another program"))
		}
		must(t, file.Keep([]*Event{event(number)}))
	}
	found, err := file.Files()
	must(t, err)
	wanted := []string{path + ".1", path + ".3", path + ".4", path + ".5", path}
	expect(t, strings.Join(found, " ") == strings.Join(wanted, " "), "%v", found)
	expect(t, string(readFile(t, path+".3")) == "of another program", "overwritten")
	var all []string
	for _, one := range found {
		if one != path+".3" {
			all = append(all, references(t, one))
		}
	}
	expect(t, strings.Join(all, " ") == "r1 r2 r3 r4 r5 r6 r7", "%v", all)
	never := &ReceiptFile{Path: inFolder(t, "all"), RotateBytes: -1}
	must(t, never.Keep([]*Event{event(1), event(2), event(3)}))
	must(t, never.Keep([]*Event{event(4)}))
	expect(t, references(t, never.Path) == "r1 r2 r3 r4", "one file")
	must(t, never.Keep(nil))
}

func TestALineThatACrashToreOffIsRepaired(t *testing.T) {
	path := inFolder(t, "receipts.ndjson")
	file := &ReceiptFile{Path: path}
	whole, err := event(1).line()
	must(t, err)
	writeFile(t, path, append(append([]byte{}, whole...), whole[:50]...))
	must(t, file.Keep([]*Event{event(2)}))
	expect(t, references(t, path) == "r1 r2" && string(readFile(t, path+".torn")) == string(whole[:50])+"\n", "repaired")
	writeFile(t, path, whole[:len(whole)-1])
	must(t, file.Keep([]*Event{event(3)}))
	expect(t, references(t, path) == "r1 r3", "the end alone was missing")
	writeFile(t, path, []byte(strings.Repeat("x", tornMax+1)))
	expect(t, file.Keep([]*Event{event(4)}) != nil, "that is no file of receipts")
}

func TestARotationThatACrashInterruptedIsEnded(t *testing.T) {
	path := inFolder(t, "receipts.ndjson")
	file := &ReceiptFile{Path: path}
	must(t, file.Keep([]*Event{event(1)}))
	must(t, os.Link(path, path+".1"))
	must(t, file.Keep([]*Event{event(2)}))
	expect(t, references(t, path) == "r2" && references(t, path+".1") == "r1", "ended")
	must(t, os.Link(path, path+"-of-another"))
	must(t, file.Keep([]*Event{event(3)}))
	expect(t, references(t, path) == "r2 r3", "another name is no rotation")
}

func TestManyWriteOneFile(t *testing.T) {
	path := inFolder(t, "receipts.ndjson")
	var group sync.WaitGroup
	for writer := 0; writer < 6; writer++ {
		group.Add(1)
		go func(writer int) {
			defer group.Done()
			own := &ReceiptFile{Path: path, RotateBytes: 4000}
			for number := 0; number < 10; number++ {
				if err := own.Keep([]*Event{event(100*writer + number)}); err != nil {
					t.Error(err)
				}
			}
		}(writer)
	}
	group.Wait()
	found, err := (&ReceiptFile{Path: path}).Files()
	must(t, err)
	seen := map[string]bool{}
	for _, one := range found {
		for _, reference := range strings.Fields(references(t, one)) {
			seen[reference] = true
		}
	}
	expect(t, len(seen) == 60 && len(found) > 3, "%d of 60 in %d files", len(seen), len(found))
}
