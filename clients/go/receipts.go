package constancia

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"sync"
)

const (
	// A file of this size is one that `constancia verify --receipt` takes: 10,000 receipts, 16 MiB.
	rotateBytes = 4 << 20
	// Bytes of a last line that are searched for its beginning.
	tornMax = 1 << 20
)

// Sink keeps receipts. It is given those of a batch at once, and may be called by several goroutines.
type Sink interface {
	Keep(events []*Event) error
}

// SinkFunc is a function that keeps one receipt.
type SinkFunc func(*Event) error

// Keep calls the function for each receipt.
func (f SinkFunc) Keep(events []*Event) error {
	for _, event := range events {
		if err := f(event); err != nil {
			return err
		}
	}
	return nil
}

// ReceiptFile has one receipt a line, each on the disk before the call that registered the event returns.
//
// Goroutines and processes may share the file: each write is under a lock (except on Windows, where the lock is between
// goroutines alone, and the file is not rotated). A line that a crash tore off is moved to `….torn` by the next write.
// Before the file exceeds RotateBytes it is renamed to `….1`, then `….2` and so on; the highest number is the newest,
// and no file is ever overwritten or removed.
type ReceiptFile struct {
	Path string
	// RotateBytes is 4 MiB if it is 0; less than 0: the file is not rotated.
	RotateBytes int64

	mutex sync.Mutex
}

// Keep appends receipts with one write, into one file.
func (f *ReceiptFile) Keep(events []*Event) error {
	var lines bytes.Buffer
	for _, event := range events {
		line, err := event.line()
		if err != nil {
			return err
		}
		lines.Write(line)
	}
	if lines.Len() == 0 {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	file, err := f.open()
	if err != nil {
		return err
	}
	defer func() { file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	limit := f.RotateBytes
	if limit == 0 {
		limit = rotateBytes
	}
	if canLock && limit > 0 && info.Size() > 0 && info.Size()+int64(lines.Len()) > limit {
		if err := f.rotate(); err != nil {
			return err
		}
		file.Close()
		if file, err = f.open(); err != nil {
			return err
		}
	}
	return f.append(file, lines.Bytes())
}

// Files returns the files that there are, the oldest first.
func (f *ReceiptFile) Files() ([]string, error) { return receiptFiles(f.Path) }

func (f *ReceiptFile) append(file *os.File, lines []byte) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if _, err = file.Write(lines); err == nil {
		err = file.Sync()
	}
	if err != nil {
		_ = file.Truncate(info.Size())
	}
	return err
}

// open returns the file under its lock, repaired.
func (f *ReceiptFile) open() (*os.File, error) {
	for {
		_, missing := os.Lstat(f.Path)
		file, err := os.OpenFile(f.Path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		isCurrent := false
		if err = lock(file); err == nil {
			isCurrent, err = f.isCurrent(file)
		}
		if err == nil && isCurrent {
			if missing != nil {
				err = f.syncFolder()
			}
			if err == nil {
				err = f.repair(file)
			}
			if err == nil {
				return file, nil
			}
		}
		file.Close() // another process rotated it meanwhile, or it failed
		if err != nil {
			return nil, err
		}
	}
}

// isCurrent returns whether the path still names the open file; it ends a rotation that a crash interrupted.
func (f *ReceiptFile) isCurrent(file *os.File) (bool, error) {
	opened, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(f.Path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil || !os.SameFile(opened, named) {
		return false, err
	}
	if !hasOtherName(opened) {
		return true, nil
	}
	older, err := rotated(f.Path)
	if err != nil || len(older) == 0 {
		return err == nil, err
	}
	last, err := os.Stat(older[len(older)-1])
	if err != nil || !os.SameFile(opened, last) {
		return err == nil, err
	}
	if err := os.Remove(f.Path); err != nil {
		return false, err
	}
	return false, f.syncFolder()
}

func (f *ReceiptFile) rotate() error {
	older, err := rotated(f.Path)
	if err != nil {
		return err
	}
	number := 1
	if len(older) > 0 {
		number = numberOf(older[len(older)-1]) + 1
	}
	for ; ; number++ {
		name := fmt.Sprintf("%s.%d", f.Path, number)
		err := os.Link(f.Path, name) // unlike a rename it replaces nothing
		if os.IsExist(err) {
			continue
		}
		if err == nil {
			if err := f.syncFolder(); err != nil {
				return err
			}
			err = os.Remove(f.Path)
		} else { // a file system without links
			if _, missing := os.Lstat(name); missing == nil {
				continue
			}
			err = os.Rename(f.Path, name)
		}
		if err != nil {
			return err
		}
		return f.syncFolder()
	}
}

// repair completes or removes a last line without its end, which a crash left.
func (f *ReceiptFile) repair(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	begin := info.Size() - tornMax
	if begin < 0 {
		begin = 0
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	tail := make([]byte, info.Size()-begin)
	if _, err := file.ReadAt(tail, begin); err != nil {
		return err
	}
	torn := tail[bytes.LastIndexByte(tail, '\n')+1:]
	if len(torn) == tornMax {
		return fmt.Errorf("%s is not a file of receipts", f.Path)
	}
	if isReceipt(torn) {
		_, err = file.Write([]byte("\n"))
	} else if err = f.putAside(torn); err == nil {
		err = file.Truncate(info.Size() - int64(len(torn)))
	}
	if err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return f.syncFolder()
}

func (f *ReceiptFile) putAside(torn []byte) error {
	file, err := os.OpenFile(f.Path+".torn", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(append([]byte{}, torn...), '\n'))
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func (f *ReceiptFile) syncFolder() error {
	if !canLock {
		return nil // Windows syncs no folder
	}
	folder, err := os.Open(filepath.Dir(f.Path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// isReceipt returns whether a line is whole: the end alone is missing.
func isReceipt(line []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return false
	}
	_, has := members["event_id"]
	return has
}

var rotatedForm = regexp.MustCompile(`\.([1-9][0-9]{0,17})$`)

// numberOf returns the number of a rotated file.
func numberOf(path string) int {
	found := rotatedForm.FindStringSubmatch(path)
	number, _ := strconv.Atoi(found[1])
	return number
}

// rotated returns the files that a file of receipts was rotated to, the oldest first.
func rotated(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	base := filepath.Base(path)
	var older []string
	for _, entry := range entries {
		name := entry.Name()
		place := rotatedForm.FindStringIndex(name)
		if place != nil && name[:place[0]] == base {
			older = append(older, path+name[place[0]:])
		}
	}
	sort.Slice(older, func(one, other int) bool { return numberOf(older[one]) < numberOf(older[other]) })
	return older, nil
}

// receiptFiles returns a file of receipts and those that it was rotated to, the oldest first.
func receiptFiles(path string) ([]string, error) {
	files, err := rotated(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	}
	return files, nil
}
