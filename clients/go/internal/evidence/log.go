package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The places of segments in the log, checkpoints/ and log/: inclusion and consistency proofs (RFC 9162, section 2.1), and
// the checkpoints to which they lead (C2SP tlog-checkpoint). Nothing here checks who signed these.

const (
	treeSizeMax     = 1 << 53
	proofMax        = 63
	noteMax         = 65536
	signaturesMax   = 64
	signatureText   = 21840
	nameMax         = 255 // bytes of an origin, and of the name of a key
	logWhere        = "log"
	checkpointWhere = "checkpoints"
)

var (
	placeForm      = members{"index": orNull(isCount), "path": hashes(proofMax), "size": orNull(isPositive)}
	checkpointForm = members{"consistency": hashes(proofMax), "note": isText}
	controlPattern = regexp.MustCompile(`[\x00-\x09\x0b-\x1f]`)
	sizePattern    = regexp.MustCompile(`^(0|[1-9][0-9]{0,15})$`)
	// A dash, a name, and base64 of a key's id, 4 bytes, and more. Names have neither white space of Unicode nor control
	// characters nor plus signs.
	signaturePattern = regexp.MustCompile("^\u2014 ([^\\x00-\\x20\\x7f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000+]+) " +
		`([A-Za-z0-9+/]{6}(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|[A-Za-z0-9+/]{4}==))$`)
)

func nodeHash(left, right []byte) []byte {
	digest := sha256.New()
	digest.Write([]byte{1})
	digest.Write(left)
	digest.Write(right)
	return digest.Sum(nil)
}

// climb is the way from a node of a tree to its root: to which side each hash of a proof belongs.
type climb struct{ node, last int64 }

func (c *climb) up() { c.node, c.last = c.node>>1, c.last>>1 }

// isLeft goes up, and returns whether the next hash is on the left.
func (c *climb) isLeft() bool {
	found := c.node&1 == 1 || c.node == c.last
	for found && c.node&1 == 0 && c.node > 0 {
		c.up()
	}
	c.up()
	return found
}

// isIncluded returns whether a leaf has that index in a tree (section 2.1.3.2).
func isIncluded(leaf []byte, index, size int64, path [][]byte, root []byte) bool {
	way := climb{index, size - 1}
	for _, one := range path {
		if way.last == 0 {
			return false
		}
		if way.isLeft() {
			leaf = nodeHash(one, leaf)
		} else {
			leaf = nodeHash(leaf, one)
		}
	}
	return way.last == 0 && bytes.Equal(leaf, root)
}

// isConsistent returns whether a tree begins with a smaller one (section 2.1.4.2).
func isConsistent(before, after *checkpoint) bool {
	path := before.consistency
	if before.size == 0 {
		empty := sha256.Sum256(nil)
		return len(path) == 0 && bytes.Equal(before.root, empty[:])
	}
	if len(path) == 0 {
		return false
	}
	// A tree of a power of two leaves is a node of the larger one; the proof does not repeat it.
	if before.size&(before.size-1) == 0 {
		path = append([][]byte{before.root}, path...)
	}
	way := climb{before.size - 1, after.size - 1}
	for way.node&1 == 1 {
		way.up()
	}
	was, is := path[0], path[0]
	for _, one := range path[1:] {
		if way.last == 0 {
			return false
		}
		if way.isLeft() {
			was, is = nodeHash(one, was), nodeHash(one, is)
		} else {
			is = nodeHash(is, one)
		}
	}
	return way.last == 0 && bytes.Equal(was, before.root) && bytes.Equal(is, after.root)
}

type checkpoint struct {
	origin      string
	size        int64
	root        []byte
	consistency [][]byte // with the next one
}

func pathOf(given object, name string) [][]byte {
	var path [][]byte
	for _, one := range list(given, name) {
		path = append(path, hexBytes(one.(string)))
	}
	return path
}

func readCheckpoint(line []byte) *checkpoint {
	where := checkpointWhere
	given := document(line, checkpointForm, where, lineMax)
	note := text(given, "note")
	require(len(note) <= noteMax && !controlPattern.MatchString(note), where, "a note's text")
	end := strings.LastIndex(note, "\n\n")
	require(end >= 0 && end+2 < len(note) && strings.HasSuffix(note, "\n"), where, "a note without signatures")
	signed := strings.Split(note[end+2:len(note)-1], "\n")
	require(len(signed) <= signaturesMax, where, "too many signatures")
	for _, one := range signed {
		found := signaturePattern.FindStringSubmatch(one)
		require(found != nil && len(found[1]) <= nameMax && len(found[2]) <= signatureText, where, "the line of a signature")
	}
	lines := strings.Split(note[:end], "\n")
	require(len(lines) >= 3 && lines[0] != "" && len(lines[0]) <= nameMax, where, "the lines of a checkpoint")
	for _, one := range lines[3:] {
		require(one != "", where, "an extension line without text")
	}
	require(sizePattern.MatchString(lines[1]), where, "the size of a tree")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	require(err == nil && size <= treeSizeMax, where, "the size of a tree")
	root := decoded(lines[2])
	require(len(root) == sha256.Size, where, "the root of a tree")
	return &checkpoint{lines[0], size, root, pathOf(given, "consistency")}
}

// segmentLog goes along the checkpoints as segments need them, and holds one.
type segmentLog struct {
	places, checkpoints *lines
	tag                 string
	current             *checkpoint // nil: none was read
}

func newSegmentLog(from *archive) *segmentLog {
	tag := sha256Hex([]byte("constancia-tag/1\n" + from.channelID + "\n" + from.mode))
	return &segmentLog{places: from.zip.lines("log", 0), checkpoints: from.zip.lines("checkpoints", 0), tag: tag}
}

// check checks the place of the next segment.
func (l *segmentLog) check(seal object, sealHash string) {
	where := text(seal, "segment_id")
	line := l.places.next()
	require(line != nil, where, "its place in the log is missing")
	place := document(line, placeForm, logWhere, lineMax)
	require((place["index"] == nil) == (place["size"] == nil), logWhere, "an index or a size alone")
	path := pathOf(place, "path")
	if place["size"] == nil {
		require(len(path) == 0, logWhere, "a path of a segment that is not in the log")
		return
	}
	index, size := integer(place, "index"), integer(place, "size")
	require(index < size, logWhere, "an index beyond its tree")
	for l.current == nil || l.current.size < size {
		require(l.advance(), where, "its checkpoint is missing")
	}
	require(l.current.size == size, where, "its checkpoint is missing")
	entry := canonical(object{"chain_hash_last": seal["chain_hash_last"], "first_sequence": seal["first_sequence"],
		"last_sequence": seal["last_sequence"], "seal_hash": sealHash, "tag": l.tag, "v": json.Number("1")})
	leaf := sha256.Sum256(append([]byte{0}, entry...))
	require(isIncluded(leaf[:], index, size, path, l.current.root), where, "it is not in the log at its place")
}

// end checks the checkpoints that no segment needs, and that nothing is left over.
func (l *segmentLog) end() {
	require(l.places.next() == nil, logWhere, "a place of no segment")
	for l.advance() {
	}
	require(l.current != nil && len(l.current.consistency) == 0, checkpointWhere, "the last one is consistent with none")
}

func (l *segmentLog) advance() bool {
	line := l.checkpoints.next()
	if line == nil {
		return false
	}
	before, found := l.current, readCheckpoint(line)
	if before != nil {
		require(found.origin == before.origin, checkpointWhere, "two logs")
		require(found.size > before.size, checkpointWhere, "their order")
		require(isConsistent(before, found), checkpointWhere,
			fmt.Sprintf("those of %d and %d entries are not of one history", before.size, found.size))
	}
	l.current = found
	return true
}
