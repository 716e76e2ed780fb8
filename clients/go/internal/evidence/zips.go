package evidence

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strings"
)

const linesMax = 100000

// entry is a file in a ZIP file.
type entry struct {
	name     string
	at, size int64
	crc      uint32
}

// zipFile is one of section 2's shape: every byte has its place. The directory is read at once, contents are read when
// they are asked for.
type zipFile struct {
	source  io.ReaderAt
	where   string
	size    int64
	names   []string
	entries map[string]entry
	digests map[string]string
}

// IsZip returns whether a file is meant to be a ZIP file: it begins or ends as one.
func IsZip(source io.ReaderAt, size int64) (bool, error) {
	head := make([]byte, 4)
	if size < 4 {
		return false, nil
	}
	if _, err := source.ReadAt(head, 0); err != nil && err != io.EOF {
		return false, err
	}
	if string(head) == "PK\x03\x04" {
		return true, nil
	}
	if size < 22 {
		return false, nil
	}
	if _, err := source.ReadAt(head, size-22); err != nil && err != io.EOF {
		return false, err
	}
	return string(head) == "PK\x05\x06", nil
}

// fields packs numbers of 2 and 4 bytes, each given with its size before it.
func fields(sized ...uint32) []byte {
	var packed []byte
	for at := 0; at < len(sized); at += 2 {
		if sized[at] == 2 {
			packed = binary.LittleEndian.AppendUint16(packed, uint16(sized[at+1]))
		} else {
			packed = binary.LittleEndian.AppendUint32(packed, sized[at+1])
		}
	}
	return packed
}

func openZip(source io.ReaderAt, size int64, where string, entriesMax int) *zipFile {
	file := &zipFile{source: source, where: where, size: size, entries: map[string]entry{}, digests: map[string]string{}}
	require(22 <= size && size <= 1<<32-1, where, "its size")
	end := file.bytes(size-22, 22)
	count := uint32(binary.LittleEndian.Uint16(end[10:]))
	directory := binary.LittleEndian.Uint32(end[12:])
	offset := binary.LittleEndian.Uint32(end[16:])
	wanted := append([]byte("PK\x05\x06"), fields(2, 0, 2, 0, 2, count, 2, count, 4, directory, 4, offset, 2, 0)...)
	require(bytes.Equal(end, wanted), where, "the end record")
	require(int64(offset)+int64(directory)+22 == size, where, "the place of the directory")
	require(1 <= count && int(count) <= entriesMax && directory <= count*146, where, "the number of entries")
	file.readDirectory(file.bytes(int64(offset), int64(directory)), int(count), int64(offset))
	return file
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,100}$`)

func isName(name string) bool {
	if !namePattern.MatchString(name) {
		return false
	}
	for _, step := range strings.Split(name, "/") {
		if step == "" || step == "." || step == ".." {
			return false
		}
	}
	return true
}

func (z *zipFile) readDirectory(directory []byte, count int, offset int64) {
	at, place := int64(0), 0
	for ; count > 0; count-- {
		require(place+46 <= len(directory), z.where, "the directory is cut off")
		central := directory[place : place+46]
		crc, size := binary.LittleEndian.Uint32(central[16:]), binary.LittleEndian.Uint32(central[20:])
		length := int(binary.LittleEndian.Uint16(central[28:]))
		require(place+46+length <= len(directory), z.where, "a name")
		name := string(directory[place+46 : place+46+length])
		_, isKnown := z.entries[name]
		require(isName(name) && !isKnown, z.where, "a name")
		common := fields(2, 10, 2, 0, 2, 0, 2, 0, 2, 0x21, 4, crc, 4, size, 4, size, 2, uint32(length), 2, 0)
		wanted := append([]byte("PK\x01\x02"), fields(2, 0x030a)...)
		wanted = append(append(wanted, common...), fields(2, 0, 2, 0, 2, 0, 4, 0x81a40000, 4, uint32(at))...)
		require(bytes.Equal(central, wanted), z.where, "the directory's record of "+name)
		begin := at + 30 + int64(length)
		require(begin+int64(size) <= offset, z.where, name+" is cut off")
		local := append(append([]byte("PK\x03\x04"), common...), name...)
		require(bytes.Equal(z.bytes(at, int64(len(local))), local), z.where, "the local header of "+name)
		z.names = append(z.names, name)
		z.entries[name] = entry{name, begin, int64(size), crc}
		at, place = begin+int64(size), place+46+length
	}
	require(at == offset && place == len(directory), z.where, "bytes of no entry")
}

func (z *zipFile) bytes(at, size int64) []byte {
	require(at >= 0 && at+size <= z.size, z.where, "cut off")
	data := make([]byte, size)
	count, err := z.source.ReadAt(data, at)
	if int64(count) < size {
		mustRead(err, z.where)
	}
	return data
}

// reader returns the content of an entry.
func (z *zipFile) reader(name string) *io.SectionReader {
	found := z.entries[name]
	return io.NewSectionReader(z.source, found.at, found.size)
}

// has returns whether there is an entry.
func (z *zipFile) has(name string) bool {
	_, has := z.entries[name]
	return has
}

// read returns the content of an entry, which is refused above the maximum size.
func (z *zipFile) read(name string, most int64) []byte {
	require(z.has(name), name, "missing")
	found := z.entries[name]
	require(found.size <= most, name, "its size")
	data := z.bytes(found.at, found.size)
	require(crc32.ChecksumIEEE(data) == found.crc, name, "the CRC")
	return data
}

// digest returns the SHA-256 of an entry, whose CRC has to be right.
func (z *zipFile) digest(name string) string {
	if _, known := z.digests[name]; !known {
		running, crc := sha256.New(), crc32.NewIEEE()
		_, err := io.Copy(io.MultiWriter(running, crc), z.reader(name))
		mustRead(err, name)
		require(crc.Sum32() == z.entries[name].crc, name, "the CRC")
		z.digests[name] = hex.EncodeToString(running.Sum(nil))
	}
	return z.digests[name]
}

// streams returns the files of a stream, in order.
func (z *zipFile) streams(stream string) []string {
	var names []string
	for {
		name := fmt.Sprintf("%s/%s-%06d.ndjson.gz", stream, stream, len(names)+1)
		if !z.has(name) {
			return names
		}
		names = append(names, name)
	}
}

// lines are those of a stream, without their ends, read with bounded memory.
type lines struct {
	zip    *zipFile
	names  []string
	number int // of the file
	count  int // of its lines
	skip   int64
	packed *bufio.Reader
	file   *lineReader
}

// lines returns those of a stream, without its first `skip` ones.
func (z *zipFile) lines(stream string, skip int64) *lines {
	names := z.streams(stream)
	first := skip / linesMax
	if first > int64(len(names)) {
		first = int64(len(names))
	}
	return &lines{zip: z, names: names[first:], skip: skip - first*linesMax}
}

// next returns a line, which the following call overwrites; nil at the end.
func (l *lines) next() []byte {
	for {
		if l.file == nil {
			if l.number == len(l.names) {
				return nil
			}
			l.open(l.names[l.number])
		}
		line := l.file.next()
		if line == nil {
			l.close(l.names[l.number])
			continue
		}
		l.count++
		require(l.count <= linesMax, l.names[l.number], "too many lines")
		if l.skip > 0 {
			l.skip--
			continue
		}
		return line
	}
}

// open begins a gzip file of one member.
func (l *lines) open(name string) {
	l.packed = bufio.NewReaderSize(l.zip.reader(name), 1<<16)
	head, _ := l.packed.Peek(4)
	require(len(head) == 4 && head[3]&0xe0 == 0, name, "its gzip header")
	unpacked, err := gzip.NewReader(l.packed)
	require(err == nil, name, "its gzip header")
	unpacked.Multistream(false)
	l.file, l.count = newLineReader(unpacked, name, lineMax), 0
}

func (l *lines) close(name string) {
	_, err := l.packed.Peek(1)
	require(err == io.EOF, name, "bytes after the gzip member")
	l.number++
	require(l.count == linesMax || l.count > 0 && l.number == len(l.names), name, "its number of lines")
	l.file = nil
}

// lineReader returns lines without their ends, each of which has one.
type lineReader struct {
	source *bufio.Reader
	where  string
}

func newLineReader(source io.Reader, where string, most int) *lineReader {
	return &lineReader{bufio.NewReaderSize(source, most+1), where}
}

// next returns nil at the end.
func (r *lineReader) next() []byte {
	line, err := r.source.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1]
	}
	require(err != bufio.ErrBufferFull, r.where, "a line that is too long")
	require(err == io.EOF, r.where, "damaged")
	require(len(line) == 0, r.where, "the last line has no end")
	return nil
}
