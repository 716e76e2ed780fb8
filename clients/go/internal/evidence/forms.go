// Package evidence checks what an evidence archive says of itself (docs/verify/evidence-format.md): its shape, its
// digests, the chain of events, and what its signatures and timestamps are over. Whose signatures these are is not
// judged here.
package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	integerMax = 1<<53 - 1
	lineMax    = 262144
	tolerance  = 300 * time.Second
	latestTime = "9999-12-31T23:59:59.999999Z"
	timeForm   = "2006-01-02T15:04:05.000000Z"
)

// Invalid is something that the format rules out. Inside this package it is a panic.
type Invalid struct{ Where, What string }

func (i *Invalid) Error() string { return i.Where + ": " + i.What }

// unreadable is a panic about the file, not about what is in it.
type unreadable struct{ err error }

// require panics with Invalid unless the condition holds.
func require(condition bool, where, what string) {
	if !condition {
		panic(&Invalid{where, what})
	}
}

// catch turns panics of this package into an error. Hostile bytes can also lead the code past the end of a slice.
func catch(err *error) {
	switch reason := recover().(type) {
	case nil:
	case *Invalid:
		*err = reason
	case *NotArchive:
		*err = reason
	case unreadable:
		*err = reason.err
	case runtime.Error:
		*err = &Invalid{"damaged", reason.Error()}
	default:
		panic(reason)
	}
}

func sha256Hex(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// ---- times: they compare as texts ----

func timeOf(text string) time.Time {
	when, err := time.Parse(timeForm, text)
	require(err == nil, text, "a time")
	return when
}

// later returns the latest time that is not after one, give or take 300 s.
func later(text string) string {
	when := timeOf(text).Add(tolerance)
	if when.Year() > 9999 {
		return latestTime
	}
	return when.Format(timeForm)
}

// ---- documents: canonical JSON with exactly the members of section 4, each of its form ----

type object = map[string]any

type form func(any) bool

type members map[string]form

func text(of object, name string) string { return of[name].(string) }

func integer(of object, name string) int64 {
	number, err := of[name].(json.Number).Int64()
	require(err == nil, name, "a number")
	return number
}

func list(of object, name string) []any { return of[name].([]any) }

func inside(of object, name string) object { return of[name].(object) }

// parsed returns the value of canonical JSON (RFC 8785) of whole numbers and names of ASCII.
func parsed(data []byte, where string, most int) any {
	require(0 < len(data) && len(data) <= most, where, "its size")
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var value any
	require(decoder.Decode(&value) == nil, where, "no JSON")
	require(bytes.Equal(canonical(value), data), where, "not canonical")
	return value
}

// document returns the members of a document.
func document(data []byte, forms members, where string, most int) object {
	return checked(parsed(data, where, most), forms, where)
}

// checked returns an object that has exactly these members, each of its form.
func checked(value any, forms members, where string) object {
	found, isObject := value.(object)
	require(isObject && len(found) == len(forms), where, "other members")
	for name, form := range forms {
		member, has := found[name]
		require(has, where, "other members")
		require(form(member), where, "'"+name+"' is not of its form")
	}
	return found
}

func canonical(value any) []byte {
	var buffer bytes.Buffer
	write(&buffer, value)
	return buffer.Bytes()
}

func write(into *bytes.Buffer, value any) {
	switch one := value.(type) {
	case nil:
		into.WriteString("null")
	case bool:
		fmt.Fprint(into, one)
	case json.Number:
		into.WriteString(string(one))
	case string:
		writeText(into, one)
	case []any:
		into.WriteByte('[')
		for number, item := range one {
			if number > 0 {
				into.WriteByte(',')
			}
			write(into, item)
		}
		into.WriteByte(']')
	case object:
		names := make([]string, 0, len(one))
		for name := range one {
			names = append(names, name)
		}
		sort.Strings(names)
		into.WriteByte('{')
		for number, name := range names {
			if number > 0 {
				into.WriteByte(',')
			}
			writeText(into, name)
			into.WriteByte(':')
			write(into, one[name])
		}
		into.WriteByte('}')
	}
}

func writeText(into *bytes.Buffer, text string) {
	into.WriteByte('"')
	for _, letter := range text {
		switch letter {
		case '"', '\\':
			into.WriteByte('\\')
			into.WriteRune(letter)
		case '\b':
			into.WriteString(`\b`)
		case '\t':
			into.WriteString(`\t`)
		case '\n':
			into.WriteString(`\n`)
		case '\f':
			into.WriteString(`\f`)
		case '\r':
			into.WriteString(`\r`)
		default:
			if letter < ' ' {
				fmt.Fprintf(into, `\u%04x`, letter)
			} else {
				into.WriteRune(letter)
			}
		}
	}
	into.WriteByte('"')
}

var (
	timePattern    = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$`)
	integerPattern = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,15})$`)
)

func isText(value any) bool {
	given, is := value.(string)
	return is && !strings.Contains(given, "\x00") && utf8.ValidString(given)
}

func isTime(value any) bool {
	given, is := value.(string)
	if !is || !timePattern.MatchString(given) || strings.HasPrefix(given, "0000") {
		return false
	}
	_, err := time.Parse(timeForm, given)
	return err == nil
}

func isHex(value string, size int) bool {
	if len(value) != size {
		return false
	}
	for _, letter := range []byte(value) {
		if (letter < '0' || letter > '9') && (letter < 'a' || letter > 'f') {
			return false
		}
	}
	return true
}

func isHash(value any) bool {
	given, is := value.(string)
	return is && isHex(given, 64)
}

func isObject(value any) bool { _, is := value.(object); return is }

func isList(value any) bool { _, is := value.([]any); return is }

func isBool(value any) bool { _, is := value.(bool); return is }

func within(first, last int64) form {
	return func(value any) bool {
		given, is := value.(json.Number)
		if !is || !integerPattern.MatchString(string(given)) {
			return false
		}
		number, err := given.Int64()
		return err == nil && first <= number && number <= last
	}
}

var (
	isPositive = within(1, integerMax)
	isCount    = within(0, integerMax)
	isOne      = within(1, 1)
	isChain    = oneOf("live", "test")
)

func oneOf(words ...string) form {
	return func(value any) bool {
		given, is := value.(string)
		if !is {
			return false
		}
		for _, word := range words {
			if word == given {
				return true
			}
		}
		return false
	}
}

func short(most int) form {
	return func(value any) bool {
		given, is := value.(string)
		return is && isText(value) && 1 <= len(given) && len(given) <= most
	}
}

func orNull(other form) form {
	return func(value any) bool { return value == nil || other(value) }
}

func hashes(most int) form {
	return func(value any) bool {
		given, is := value.([]any)
		if !is || len(given) > most {
			return false
		}
		for _, one := range given {
			if !isHash(one) {
				return false
			}
		}
		return true
	}
}

func ascending(most int) form {
	return func(value any) bool {
		if !hashes(most)(value) {
			return false
		}
		given := value.([]any)
		for number := 1; number < len(given); number++ {
			if given[number-1].(string) >= given[number].(string) {
				return false
			}
		}
		return true
	}
}

func base64Of(most int) form {
	return func(value any) bool {
		given, is := value.(string)
		if !is {
			return false
		}
		data := decoded(given)
		return 0 < len(data) && len(data) <= most
	}
}

// decoded returns the bytes of base64 as section 1 has it.
func decoded(given string) []byte {
	require(!strings.ContainsAny(given, "\r\n"), "base64", "a line's end")
	data, err := base64.StdEncoding.Strict().DecodeString(given)
	require(err == nil, "base64", "other bytes than its own")
	return data
}

// ---- the tree of section 5 ----

func join(one, other []byte) []byte {
	if bytes.Compare(one, other) > 0 {
		one, other = other, one
	}
	digest := sha256.New()
	digest.Write(one)
	digest.Write(other)
	return digest.Sum(nil)
}

func hexBytes(text string) []byte {
	data, err := hex.DecodeString(text)
	require(err == nil, "a digest", "not hexadecimal")
	return data
}

func along(leaf string, path []any) string {
	at := hexBytes(leaf)
	for _, sibling := range path {
		at = join(at, hexBytes(sibling.(string)))
	}
	return hex.EncodeToString(at)
}

// tree computes a root while its leaves come. Of a tree of n leaves it holds the roots of the complete trees on its left,
// one for each bit of n that is set.
type tree struct {
	count uint64
	left  [][]byte
}

func (t *tree) add(leaf string) {
	node := hexBytes(leaf)
	for bits := t.count; bits&1 == 1; bits >>= 1 {
		last := len(t.left) - 1
		node, t.left = join(t.left[last], node), t.left[:last]
	}
	t.left = append(t.left, node)
	t.count++
}

// root returns the root over the leaves so far, of which there is one at least.
func (t *tree) root() string {
	last := len(t.left) - 1
	node := t.left[last]
	for last--; last >= 0; last-- {
		node = join(t.left[last], node)
	}
	return hex.EncodeToString(node)
}

// mustRead panics with an error of the file; an end that comes too early is Invalid.
func mustRead(err error, where string) {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		panic(&Invalid{where, "cut off"})
	}
	if err != nil {
		panic(unreadable{err})
	}
}
