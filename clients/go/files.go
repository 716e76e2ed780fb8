package constancia

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
)

func newHash(algorithm Algorithm) (hash.Hash, error) {
	switch algorithm {
	case SHA256:
		return sha256.New(), nil
	case SHA512:
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("the algorithm is %s or %s, not %q", SHA256, SHA512, algorithm)
}

// Digest returns the digest of a file in hexadecimal, for RegisterDigest. The file is read piece by piece.
func Digest(path string, algorithm Algorithm) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return digestOf(file, algorithm)
}

func digestOf(source io.Reader, algorithm Algorithm) (string, error) {
	running, err := newHash(algorithm)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(running, source); err != nil {
		return "", err
	}
	return hex.EncodeToString(running.Sum(nil)), nil
}

// token returns a text that nothing else has.
func token() (string, error) {
	var bytes [18]byte
	_, err := rand.Read(bytes[:])
	return hex.EncodeToString(bytes[:]), err
}

// form is multipart/form-data of some texts and a file, from where the file is when it begins. The file's SHA-256 is
// taken while it is sent.
type form struct {
	head, tail  string
	contentType string
	source      io.ReadSeeker
	start, size int64
	running     hash.Hash
}

func newForm(fields [][2]string, source io.ReadSeeker, name string) (*form, error) {
	start, err := source.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, fmt.Errorf("a file to be sent must be seekable, as a further attempt reads it again: %w", err)
	}
	end, err := source.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if name = filepath.Base(name); name == "." || name == string(filepath.Separator) {
		name = "file"
	}
	if strings.IndexFunc(name, func(letter rune) bool { return letter < 32 || letter == 127 }) >= 0 {
		return nil, errors.New("a file's name has no control characters")
	}
	boundary, err := token()
	if err != nil {
		return nil, err
	}
	var head strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&head, "--%s\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n", boundary, field[0], field[1])
	}
	fmt.Fprintf(&head, "--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s\"\r\n"+
		"Content-Type: application/octet-stream\r\n\r\n", boundary, strings.ReplaceAll(name, `"`, "%22"))
	return &form{head: head.String(), tail: "\r\n--" + boundary + "--\r\n", source: source, start: start, size: end - start,
		contentType: "multipart/form-data; boundary=" + boundary}, nil
}

func (f *form) length() int64 { return int64(len(f.head)) + f.size + int64(len(f.tail)) }

// reader returns the form from its beginning.
func (f *form) reader() (io.Reader, error) {
	if _, err := f.source.Seek(f.start, io.SeekStart); err != nil {
		return nil, err
	}
	f.running = sha256.New()
	content := &whole{io.TeeReader(io.LimitReader(f.source, f.size), f.running), f.size}
	return io.MultiReader(strings.NewReader(f.head), content, strings.NewReader(f.tail)), nil
}

// sha256 returns the file's digest once it was sent.
func (f *form) sha256() string { return hex.EncodeToString(f.running.Sum(nil)) }

// whole refuses a file that ends too early.
type whole struct {
	io.Reader
	left int64
}

func (w *whole) Read(into []byte) (int, error) {
	count, err := w.Reader.Read(into)
	w.left -= int64(count)
	if err == io.EOF && w.left > 0 {
		err = errors.New("the file became shorter while it was sent")
	}
	return count, err
}
