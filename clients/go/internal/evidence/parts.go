package evidence

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	partEntriesMax = 60000
	partLineMax    = 512
)

var (
	headForm = members{"certification_id": isText, "channel_id": isText, "number": within(1, 10000), "v": isOne}
	itemForm = members{"entry": isText, "event_id": isText, "hash": isHash, "sequence": isPositive}
)

// checkPart checks a content part of the archive. It returns its name, or nothing where the manifest does not
// list it.
func (a *archive) checkPart(path string) string {
	file, size := open(path)
	defer file.Close()
	digest := digestOf(file, size)
	for number, one := range list(a.manifest, "content_parts") {
		if part := one.(object); text(part, "sha256") == digest {
			a.checkListedPart(file, size, number+1, part)
			return text(part, "name")
		}
	}
	a.checkOtherPart(file, size, filepath.Base(path))
	return ""
}

func (a *archive) checkListedPart(file io.ReaderAt, size int64, number int, part object) {
	where := text(part, "name")
	content := openZip(file, size, where, partEntriesMax)
	require(size == integer(part, "bytes"), where, "its size")
	head := document(content.read("part.json", partLineMax), headForm, where, partLineMax)
	require(text(head, "certification_id") == text(a.manifest, "certification_id") &&
		text(head, "channel_id") == a.channelID && integer(head, "number") == int64(number), where, "part.json")
	names := content.names
	require(len(names) > 2 && names[0] == "part.json" && names[len(names)-1] == "index.ndjson", where, "its entries")
	content.digest("index.ndjson") // its CRC
	index := newLineReader(content.reader("index.ndjson"), "index.ndjson", partLineMax)
	events := a.eventsOfContent(part)
	for _, name := range names[1 : len(names)-1] {
		line := index.next()
		require(line != nil, where, "a line of its index is missing")
		item := document(line, itemForm, name, partLineMax)
		event := events()
		require(event != nil, name, "content of no event")
		sequence := integer(item, "sequence")
		base := fmt.Sprintf("content/%012d", sequence)
		require((name == base+".json" || name == base+".bin") && text(item, "entry") == name, name, "its name")
		require(sequence == integer(event, "sequence") && text(item, "event_id") == text(event, "event_id") &&
			text(item, "hash") == text(event, "hash"), name, "another event's")
		require(content.digest(name) == text(item, "hash"), name, "its digest")
	}
	require(index.next() == nil, where, "a line of its index too many")
	require(events() == nil, where, "content of an event is missing")
}

// checkOtherPart checks that a part which the manifest does not list is one of another certification.
func (a *archive) checkOtherPart(file io.ReaderAt, size int64, where string) {
	content := openZip(file, size, where, partEntriesMax)
	for _, name := range content.names {
		content.digest(name)
	}
	head := document(content.read("part.json", partLineMax), headForm, where, partLineMax)
	require(text(head, "certification_id") != text(a.manifest, "certification_id"), where, "the archive does not list it")
}

// eventsOfContent returns the events of modality content in the range of a part, one by one. They were checked before.
func (a *archive) eventsOfContent(part object) func() object {
	source := a.zip.lines("events", integer(part, "first_sequence")-a.first)
	last := integer(part, "last_sequence")
	return func() object {
		for line := source.next(); line != nil; line = source.next() {
			event := parsed(line, "events", lineMax).(object)
			if integer(event, "sequence") > last {
				return nil
			}
			if text(event, "modality") == "content" {
				return event
			}
		}
		return nil
	}
}

// open opens a regular file.
func open(path string) (*os.File, int64) {
	file, err := os.Open(path)
	mustRead(err, path)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		file.Close()
	}
	mustRead(err, path)
	return file, info.Size()
}
