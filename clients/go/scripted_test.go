package constancia

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// seen is a request that came.
type seen struct {
	*http.Request
	body []byte
}

// reply answers a request, or ends the connection by returning false.
type reply func(connection net.Conn, request *seen) bool

// script is a server whose answers a test writes. Each request has the next one.
type script struct {
	url      string
	listener net.Listener
	ended    chan bool
	mutex    sync.Mutex
	early    []reply // are sent before the body is read, which it then is not
	answers  []reply
	seen     []*seen
}

func newScript(t *testing.T, answers ...reply) *script {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &script{url: "http://" + listener.Addr().String(), listener: listener, answers: answers,
		ended: make(chan bool)}
	t.Cleanup(func() { listener.Close(); close(made.ended) })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go made.serve(connection)
		}
	}()
	return made
}

func (s *script) serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if early := s.takeEarly(); early != nil {
			early(connection, &seen{Request: request})
			<-s.ended
			return
		}
		if request.Header.Get("Expect") != "" {
			_, _ = io.WriteString(connection, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		s.mutex.Lock()
		s.seen = append(s.seen, &seen{request, body})
		one := s.seen[len(s.seen)-1]
		answer := reply(func(net.Conn, *seen) bool { return false })
		if len(s.answers) > 0 {
			answer, s.answers = s.answers[0], s.answers[1:]
		}
		s.mutex.Unlock()
		if !answer(connection, one) {
			return
		}
	}
}

// all returns the requests that came.
func (s *script) all() []*seen {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]*seen{}, s.seen...)
}

// left returns the number of answers that were not asked for.
func (s *script) left() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.answers)
}

func (s *script) takeEarly() reply {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.early) == 0 {
		return nil
	}
	first := s.early[0]
	s.early = s.early[1:]
	return first
}

func (s *script) add(answers ...reply) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers = append(s.answers, answers...)
}

// say answers with headers given as names and values.
func say(status int, body string, headers ...string) reply {
	return cut(status, body, len(body), headers...)
}

// cut says a length, and ends before.
func cut(status int, body string, length int, headers ...string) reply {
	return func(connection net.Conn, _ *seen) bool {
		var head strings.Builder
		fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), length)
		for at := 0; at < len(headers); at += 2 {
			fmt.Fprintf(&head, "%s: %s\r\n", headers[at], headers[at+1])
		}
		_, err := io.WriteString(connection, head.String()+"\r\n"+body)
		return err == nil && length == len(body)
	}
}

// endless answers without a length, with more than any test takes.
func endless(connection net.Conn, _ *seen) bool {
	_, err := io.WriteString(connection, "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
	for sent := 0; err == nil && sent < 64<<20; sent += 1 << 16 {
		_, err = io.WriteString(connection, chunk)
	}
	if err == nil {
		_, err = io.WriteString(connection, "0\r\n\r\n")
	}
	return err == nil
}

// chunked answers without a length.
func chunked(body string) reply {
	return func(connection net.Conn, _ *seen) bool {
		_, err := fmt.Fprintf(connection, "HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		return err == nil
	}
}

func hangUp(net.Conn, *seen) bool { return false }

// newClient returns a client of the script that does not sleep, and what it would have slept.
func (s *script) newClient(t *testing.T, more ...func(*Options)) (*Client, *[]time.Duration) {
	t.Helper()
	options := Options{URL: s.url, Key: "svc_test_secret"}
	for _, change := range more {
		change(&options)
	}
	client, err := New(options)
	must(t, err)
	naps := &[]time.Duration{}
	client.transport.sleep = func(ctx context.Context, delay time.Duration) error {
		*naps = append(*naps, delay)
		return ctx.Err()
	}
	t.Cleanup(client.Close)
	return client, naps
}

var background = context.Background()

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, condition bool, what string, words ...any) {
	t.Helper()
	if !condition {
		t.Fatalf(what, words...)
	}
}

func writeFile(t *testing.T, path string, content []byte) string {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

// names returns those in a folder.
func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	var all []string
	for _, one := range entries {
		all = append(all, one.Name())
	}
	return strings.Join(all, " ")
}

func hashOf(content []byte) string {
	digest, err := digestOf(bytes.NewReader(content), SHA256)
	if err != nil {
		panic(err)
	}
	return digest
}

// eventOf returns an answer to a registration.
func eventOf(reference, hash string) string {
	return fmt.Sprintf(`{"event_id":"evt_%s","channel_id":"chn_1","client_ref":"%s","sequence":1,`+
		`"received_at":"2026-01-02T03:04:05.600000Z","occurred_at":null,"hash":"%s","hash_alg":"sha-256",`+
		`"modality":"content","chain_hash":"%s","status":"registered","timestamp":{"type":"pending","reference":null,`+
		`"sealed_at":null},"config_version":1,"mode":"live","later":{"a": [1]}}`,
		reference, reference, hash, strings.Repeat("0", 64))
}

func inFolder(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }
