package constancia

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Progress is called with the bytes so far, and those in all, -1 where that is not known.
type Progress func(received, total int64)

// download is a file that comes into its place whole and checked, or not at all. Its part is under a name that no other
// download has. What came before a lost connection is then put beside the place, under a name made of the digest, where
// a later call claims it by renaming it, which only one can do.
type download struct {
	path, expected string
	algorithm      Algorithm
	progress       Progress
	most           int64  // bytes
	part, rest     string // rest is empty where no later call can go on
	etag           string // of what came in this call
}

func newDownload(path, expected string, algorithm Algorithm, progress Progress, most int64) (*download, error) {
	if expected != "" {
		if found, err := algorithmOf(expected); err != nil || found != algorithm {
			return nil, fmt.Errorf("%q is no %s in hexadecimal", expected, algorithm)
		}
	}
	name, err := token()
	if err != nil {
		return nil, err
	}
	made := &download{path: path, expected: strings.ToLower(expected), algorithm: algorithm, progress: progress,
		most: most}
	made.part = made.beside(name + ".part")
	if expected != "" {
		made.rest = made.beside(made.expected[:32] + ".rest")
	}
	return made, nil
}

func (d *download) beside(end string) string {
	return filepath.Join(filepath.Dir(d.path), "."+filepath.Base(d.path)+"."+end)
}

// run returns the digest. with returns a request with more headers.
func (d *download) run(ctx context.Context, through *transport, with func(http.Header) *request) (string, error) {
	var part *os.File
	if d.rest != "" {
		part = claim(d.rest, d.part)
	}
	if part == nil {
		var err error
		if part, err = os.OpenFile(d.part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666); err != nil {
			return "", err
		}
	}
	found, err := d.complete(ctx, through, with, part)
	if err == nil {
		err = part.Sync()
	}
	size, _ := part.Seek(0, io.SeekEnd)
	if closed := part.Close(); err == nil { // before it is renamed: nothing writes what another call may claim
		err = closed
	}
	if err == nil {
		err = os.Rename(d.part, d.path)
	}
	if err == nil {
		return found, nil
	}
	if d.rest == "" || size == 0 || os.Rename(d.part, d.rest) != nil {
		os.Remove(d.part)
	}
	return "", err
}

func (d *download) complete(ctx context.Context, through *transport, with func(http.Header) *request,
	part *os.File) (string, error) {
	size, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	if size > 0 {
		if found, err := d.digest(part); err != nil || found == d.expected {
			return found, err
		}
	}
	found, err := d.fetch(ctx, through, with, part)
	var refused *APIError
	var differs *DigestMismatchError
	isRefused := errors.As(err, &refused)
	if !isRefused && !errors.As(err, &differs) {
		return found, err
	}
	if failed := part.Truncate(0); failed != nil {
		return "", failed
	}
	// What an earlier call left may be spoilt: once more, from the beginning.
	if size == 0 || isRefused && refused.Status != http.StatusRequestedRangeNotSatisfiable {
		return "", err
	}
	return d.fetch(ctx, through, with, part)
}

func (d *download) fetch(ctx context.Context, through *transport, with func(http.Header) *request,
	part *os.File) (string, error) {
	prepare := func() (*request, error) {
		size, err := part.Seek(0, io.SeekEnd)
		header := http.Header{}
		// Without a digest only the tag tells that the rest is of the same file.
		if size > 0 && (d.etag != "" || d.expected != "") {
			header.Set("Range", fmt.Sprintf("bytes=%d-", size))
			if d.etag != "" {
				header.Set("If-Range", d.etag)
			}
		}
		return with(header), err
	}
	if err := through.perform(ctx, prepare, func(got *answer) error { return d.receive(got, part) }); err != nil {
		return "", err
	}
	found, err := d.digest(part)
	if err == nil && d.expected != "" && found != d.expected {
		err = &DigestMismatchError{filepath.Base(d.path), d.expected, found}
	}
	return found, err
}

func (d *download) receive(got *answer, part *os.File) error {
	tag := got.header.Get("ETag")
	if !strings.HasPrefix(tag, `"`) {
		tag = "" // a weak one is for no range
	}
	at, total, err := contentRange(got)
	if err != nil {
		return err
	}
	if total > d.most {
		return d.tooLong(fmt.Sprintf("it has %d bytes", total))
	}
	size, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if at > size {
		return unexpected("%s: another range came than was asked for", got.name)
	}
	if at > 0 && d.expected == "" && (tag == "" || tag != d.etag) {
		return unexpected("%s: a range of another file came than was asked for", got.name)
	}
	d.etag = tag
	if err := part.Truncate(at); err != nil {
		return err
	}
	if _, err := part.Seek(at, io.SeekStart); err != nil {
		return err
	}
	end := total
	if total < 0 {
		end = d.most
	}
	if at, err = d.store(io.LimitReader(got.body, end-at+1), part, at, total); err != nil {
		return err
	}
	if total < 0 && at > end {
		if err := part.Truncate(0); err != nil {
			return err
		}
		return d.tooLong("more came, without a length")
	}
	if total >= 0 && at > total {
		return unexpected("%s: the answer is longer than the file", got.name)
	}
	if total >= 0 && at < total {
		return &ConnectionError{Sent: true, what: fmt.Sprintf("%s: the answer ended before the file did", got.name)}
	}
	return nil
}

func (d *download) tooLong(what string) error {
	return unexpected("%s: %s, and %d bytes are the most that it may have (as the service has on record for it, or "+
		"DownloadMax)", filepath.Base(d.path), what, d.most)
}

func (d *download) store(body io.Reader, part *os.File, at, total int64) (int64, error) {
	piece := make([]byte, 1<<16)
	for {
		count, err := body.Read(piece)
		if _, failed := part.Write(piece[:count]); failed != nil {
			return at, failed
		}
		at += int64(count)
		if count > 0 && d.progress != nil {
			d.progress(at, total)
		}
		if err == io.EOF {
			return at, nil
		}
		if err != nil {
			return at, err
		}
	}
}

func (d *download) digest(part *os.File) (string, error) {
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	running, err := newHash(d.algorithm)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(running, part); err != nil {
		return "", err
	}
	return hex.EncodeToString(running.Sum(nil)), nil
}

var rangeForm = regexp.MustCompile(`^bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18})$`)

// contentRange returns where what comes begins in the file, and how long the file is; -1 where that is not known.
func contentRange(got *answer) (start, total int64, err error) {
	if got.status != http.StatusPartialContent {
		return 0, got.length, nil
	}
	found := rangeForm.FindStringSubmatch(got.header.Get("Content-Range"))
	if found == nil {
		return 0, 0, unexpected("%s: a range came that does not say which, and of how much", got.name)
	}
	start, _ = strconv.ParseInt(found[1], 10, 64)
	total, _ = strconv.ParseInt(found[2], 10, 64)
	return start, total, nil
}
