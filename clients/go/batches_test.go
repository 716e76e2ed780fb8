package constancia

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"
)

func referencesOf(request *seen) []string {
	var found []string
	for _, line := range strings.Split(strings.TrimSuffix(string(request.body), "\n"), "\n") {
		var one struct {
			ClientRef string `json:"client_ref"`
		}
		if json.Unmarshal([]byte(line), &one) == nil {
			found = append(found, one.ClientRef)
		}
	}
	return found
}

// echo registers what came.
func echo(connection net.Conn, request *seen) bool {
	var lines strings.Builder
	for _, reference := range referencesOf(request) {
		lines.WriteString(registered(reference, 201))
	}
	return say(200, lines.String())(connection, request)
}

func registered(reference string, status int) string {
	return strings.Replace(eventOf(reference, strings.Repeat("0", 64)), "{", fmt.Sprintf(`{"http_status":%d,`, status), 1) + "\n"
}

func refusedLine(status int, more string) string {
	return fmt.Sprintf(`{"http_status":%d,"code":"c","message":"m"%s}`+"\n", status, more)
}

func declarations(references ...string) []Declaration {
	var all []Declaration
	for _, one := range references {
		all = append(all, Declaration{ClientRef: one, Payload: map[string]any{}})
	}
	return all
}

func TestBatchesAreFilledAndReadNoFurtherThanNeeded(t *testing.T) {
	server := newScript(t, echo, echo, echo)
	path := inFolder(t, "receipts.ndjson")
	client, _ := server.newClient(t, func(options *Options) { options.Receipts = &ReceiptFile{Path: path} })
	read := 0
	outcomes := client.RegisterFrom(background, func() (Declaration, error) {
		if read == 2500 {
			return Declaration{}, io.EOF
		}
		read++
		return Declaration{ClientRef: fmt.Sprintf("r%d", read), Payload: map[string]int{"n": read}}, nil
	})
	for number := 1; outcomes.Next(); number++ {
		one := outcomes.Value()
		expect(t, one.Err == nil && one.Event.ClientRef == fmt.Sprintf("r%d", number) && !one.Event.Replayed, "%v", one)
		if number == 1 {
			expect(t, read <= 1001, "%d were read", read)
		}
	}
	must(t, outcomes.Err())
	expect(t, len(server.all()) == 3 && len(referencesOf(server.all()[0])) == 1000 && len(referencesOf(server.all()[2])) == 500,
		"%d", len(server.all()))
	lines := string(readFile(t, path))
	expect(t, strings.Count(lines, "\n") == 2500 && !strings.Contains(lines, "http_status"), "the receipts are kept")
}

func TestABatchHasNoMoreThanItsBytes(t *testing.T) {
	server := newScript(t, echo, say(413, `{"code":"payload_too_large","message":"m"}`), echo)
	client, _ := server.newClient(t)
	large := map[string]any{"x": strings.Repeat("y", bytesMax)}
	all, err := client.RegisterMany(background, Declaration{ClientRef: "a", Payload: map[string]any{}},
		Declaration{ClientRef: "b", Payload: large}, Declaration{ClientRef: "c", Payload: map[string]any{}}).All()
	must(t, err)
	expect(t, len(all) == 3 && errors.Is(all[1].Err, ErrTooLarge) && all[2].Event.ClientRef == "c", "%v", all)
	expect(t, server.all()[1].URL.Path == "/v1/events", "one that fits into no batch is sent alone")
}

func TestASmallerLimitOfAnInstallationIsKeptTo(t *testing.T) {
	small := func(connection net.Conn, request *seen) bool {
		if len(referencesOf(request)) > 2 {
			return say(413, `{"code":"payload_too_large","message":"m"}`)(connection, request)
		}
		return echo(connection, request)
	}
	server := newScript(t, small, small, small, small, small)
	client, _ := server.newClient(t)
	all, err := client.RegisterMany(background, declarations("a", "b", "c", "d", "e")...).All()
	must(t, err)
	var found []string
	for _, one := range all {
		found = append(found, one.Event.ClientRef)
	}
	expect(t, strings.Join(found, "") == "abcde", "%v", found)
}

func TestABatchWhoseAnswerIsLostIsRepeated(t *testing.T) {
	whole := registered("a", 201) + registered("b", 201)
	server := newScript(t, hangUp, cut(200, whole[:len(whole)-30], len(whole)), say(503, "", "Retry-After", "1"),
		say(200, registered("a", 200)+registered("b", 200)))
	client, naps := server.newClient(t)
	all, err := client.RegisterMany(background, declarations("a", "b")...).All()
	must(t, err)
	expect(t, all[0].Event.Replayed && all[1].Event.Replayed && len(*naps) == 3, "%v", all)
	for _, one := range server.all() {
		expect(t, string(one.body) == string(server.all()[0].body), "%s", one.body)
	}
}

func TestItemsThatWereRefusedForAWhileAreRepeatedAlone(t *testing.T) {
	server := newScript(t, say(200, registered("a", 201)+refusedLine(429, "")+refusedLine(400, "")+refusedLine(503, `,"retry_after":2`)),
		say(200, registered("b", 201)+refusedLine(429, "")), say(200, registered("d", 201)))
	client, naps := server.newClient(t)
	all, err := client.RegisterMany(background, declarations("a", "b", "c", "d")...).All()
	must(t, err)
	expect(t, all[0].Event != nil && all[1].Event != nil && errors.Is(all[2].Err, ErrInvalidRequest) && all[3].Event != nil,
		"%v", all)
	expect(t, strings.Join(referencesOf(server.all()[1]), "") == "bd" && strings.Join(referencesOf(server.all()[2]), "") == "d" &&
		(*naps)[0] >= 2*time.Second, "%v", *naps)
	for range []int{1, 2, 3, 4, 5} {
		server.add(say(200, refusedLine(429, "")))
	}
	all, err = client.RegisterMany(background, declarations("e")...).All()
	must(t, err)
	expect(t, errors.Is(all[0].Err, ErrTooManyRequests) && server.left() == 0, "%v", all)
}

func TestAnAnswerThatIsNoneOfABatchIsRefused(t *testing.T) {
	for _, answer := range []string{"", registered("a", 201) + registered("a", 201), registered("b", 201), "[]\n", "{}\n",
		`{"http_status":201}` + "\n", registered("a", 0), "null\n", "<html>\n",
		strings.Replace(registered("a", 201), "201", `"201"`, 1)} {
		server := newScript(t, say(200, answer))
		client, _ := server.newClient(t)
		_, err := client.RegisterMany(background, declarations("a")...).All()
		var other *UnexpectedAnswerError
		expect(t, errors.As(err, &other), "%q: %v", answer, err)
	}
}

func TestADeclarationThatIsNoneIsTheCallersMistake(t *testing.T) {
	server := newScript(t, echo)
	client, _ := server.newClient(t)
	for _, bad := range []Declaration{{}, {ClientRef: "a"}, {ClientRef: "a", Payload: []int{1}}, {ClientRef: "a", Payload: "x"},
		{ClientRef: "a", Payload: map[string]any{"x": math.NaN()}}, {ClientRef: "a", Payload: map[string]any(nil)},
		{ClientRef: "a", Payload: map[string]any{"x": "\xff"}}, {ClientRef: "\xff", Payload: map[string]any{}},
		{ClientRef: "a", Payload: map[string]any{}, Hash: strings.Repeat("0", 64)}, {ClientRef: "a", Hash: "0"}} {
		_, err := client.RegisterMany(background, bad).All()
		expect(t, err != nil && len(server.all()) == 0, "%v", bad)
	}
	_, err := client.Register(background, "a", nil)
	expect(t, err != nil, "there is no payload")
	_, err = client.RegisterDigest(background, "a", "abc")
	expect(t, err != nil && len(server.all()) == 0, "that is no digest")
	all, err := client.RegisterMany(background, append(declarations("a"), Declaration{})...).All()
	expect(t, err != nil && len(all) == 1 && all[0].Event.ClientRef == "a", "what was read before is registered: %v", err)
}

func TestADeclarationIsSentAsItWasGiven(t *testing.T) {
	server := newScript(t, say(201, eventOf("r", "0")), say(201, eventOf("r", "0")))
	client, _ := server.newClient(t)
	when := time.Date(2026, 1, 31, 22, 30, 0, 5678, time.FixedZone("", -5*3600))
	_, err := client.Register(background, "r", map[string]any{"a": "<ñ\u2028\ufffd\\ufffd>"}, OccurredAt(when))
	must(t, err)
	wanted := `{"client_ref":"r","occurred_at":"2026-02-01T03:30:00.000005Z","payload":{"a":"<ñ\u2028` + "\ufffd" + `\\ufffd>"}}`
	expect(t, string(server.all()[0].body) == wanted, "%s", server.all()[0].body)
	_, err = client.Register(background, "r", json.RawMessage(`{"b": 1}`))
	must(t, err)
	expect(t, strings.Contains(string(server.all()[1].body), `"payload":{"b":1}`), "%s", server.all()[1].body)
}

func TestAnotherDigestThanWasDeclaredIsRefused(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	server := newScript(t, say(201, eventOf("r", hash)), say(201, eventOf("r", hash)), say(200, registered("r", 201)))
	client, _ := server.newClient(t)
	_, err := client.RegisterDigest(background, "r", strings.ToUpper(hash))
	must(t, err)
	var differs *DigestMismatchError
	_, err = client.RegisterDigest(background, "r", strings.Repeat("0", 64))
	expect(t, errors.As(err, &differs), "%v", err)
	_, err = client.RegisterMany(background, Declaration{ClientRef: "r", Hash: hash}).All()
	expect(t, errors.As(err, &differs), "%v", err)
}

// ---- look-up by content ----

func TestAFileIsHashedHereAndAskedForByItsDigests(t *testing.T) {
	path := writeFile(t, inFolder(t, "contract"), []byte("I declare."))
	none, one := `{"data":[],"has_more":false,"next_cursor":null}`, `{"data":[`+eventOf("r", "0")+`],"has_more":false,"next_cursor":null}`
	server := newScript(t, say(200, none), say(200, one), say(200, none), say(200, none), say(200, one), say(200, none))
	client, _ := server.newClient(t)
	is, err := client.IsOnRecord(background, path)
	must(t, err)
	expect(t, is, "it is found by its SHA-512")
	for number, algorithm := range []Algorithm{SHA256, SHA512} {
		digest, err := Digest(path, algorithm)
		must(t, err)
		query := server.all()[number].URL.Query()
		expect(t, query.Get("hash") == digest && query.Get("hash_alg") == string(algorithm) && len(server.all()[number].body) == 0,
			"%v", query)
	}
	is, err = client.IsOnRecord(background, path)
	must(t, err)
	expect(t, !is, "it is not found")
	found, err := client.FindFile(background, path)
	must(t, err)
	expect(t, len(found) == 1 && found[0].EventID == "evt_r", "%v", found)
	_, err = client.FindDigest(background, "x").All()
	expect(t, err != nil && len(server.all()) == 6, "%v", err)
	_, err = Digest(path, "md5")
	expect(t, err != nil, "there is no such algorithm")
}

func TestListsGoOnFromPageToPage(t *testing.T) {
	server := newScript(t, say(200, `{"data":[`+eventOf("a", "0")+`],"has_more":true,"next_cursor":"c1"}`),
		say(200, `{"data":[],"has_more":true,"next_cursor":"c2"}`),
		say(200, `{"data":[`+eventOf("b", "0")+`],"has_more":false,"next_cursor":null}`), say(500, ""))
	client, _ := server.newClient(t)
	all, err := client.Events(background, EventFilter{SeqFrom: 2, From: time.Unix(1767323045, 0), Order: "asc", Status: "test"}).All()
	must(t, err)
	expect(t, len(all) == 2 && all[1].ClientRef == "b", "%v", all)
	first := server.all()[0].URL.RawQuery
	expect(t, first == "from=2026-01-02T03%3A04%3A05.000000Z&limit=500&order=asc&seq_from=2&status=test", "%s", first)
	expect(t, server.all()[2].URL.RawQuery == "cursor=c2&"+first, "%s",
		server.all()[2].URL.RawQuery)
	list := client.Events(background, EventFilter{})
	for range []int{1, 2} {
		expect(t, !list.Next() && errors.Is(list.Err(), ErrServer), "%v", list.Err())
	}
}
