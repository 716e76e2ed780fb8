package evidence

import (
	"crypto"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	entriesMax   = 20000
	manifestMax  = 16777215
	documentMax  = 32768
	signatureMax = 8519679
	tokenMax     = 131072
	sealMax      = 2048
	asicName     = "META-INF/ASiCManifest001.xml"
	signedName   = "META-INF/signature001.p7s"
)

var (
	streams = []string{"events", "leaves", "seals", "rounds", "validation", "renewals", "checkpoints", "log", "history"}
	// How many of these an archive of each version has.
	streamsOfVersion = []int{0, 4, 6, 9}
	genesisForm      = members{"chain": isChain, "channel_id": isText, "created_at": isTime, "v": isOne}
	configForm       = members{"channel_id": isText, "declarant": isText, "description": orNull(isText),
		"modality": oneOf("content", "hash_only"), "name": isText, "sealed_at": isTime,
		"supplementary_info": orNull(isText), "v": isOne, "version": isPositive}
	manifestForm = members{"certification_id": isText, "channel_id": isText, "config_versions": isList,
		"content_parts": isList, "event_count": isPositive, "files": isList, "first_chain_hash": isHash,
		"frozen_range": isObject, "issued_at": isTime, "last_chain_hash": isHash, "mode": isChain,
		"previous_chain_hash": isHash, "requested_range": isObject, "service": isObject, "v": within(1, 3),
		"verification_code": isText}
	serviceForm   = members{"name": isText, "prefix": isText, "verification_url": isText}
	rangeForm     = members{"first_sequence": isPositive, "last_sequence": isPositive}
	requestedForm = members{"from": orNull(isTime), "seq_from": orNull(isPositive), "seq_to": orNull(isPositive),
		"to": orNull(isTime)}
	fileForm    = members{"path": isText, "sha256": isHash, "size": isCount}
	versionForm = members{"hash": isHash, "version": isPositive}
	partForm    = members{"bytes": within(1, 1e9), "first_sequence": isPositive, "last_sequence": isPositive,
		"name": isText, "sha256": isHash}
)

// NotArchive is another kind of file, which may be right.
type NotArchive struct{ What string }

func (n *NotArchive) Error() string { return n.What }

// config is what events name of a configuration.
type config struct{ hash, modality string }

// archive is one whose entries are as its manifest says, and its manifest as the ASiCManifest does. The signature over
// this is judged by checkSignature, the events by chain.
type archive struct {
	zip         *zipFile
	manifest    object
	version     int64
	mode        string
	channelID   string
	first, last int64
	issuedAt    string
	from, to    string // the times that were asked for; empty: a range by sequence
	stampedAt   string // of the signature's timestamp; empty: there is none
	genesisHash string
	hasLog      bool // it says where its segments are in the log
	configs     map[int64]config
	asic        []byte
	signed      *signed
}

func openArchive(source io.ReaderAt, size int64, where string) *archive {
	made := &archive{zip: openZip(source, size, where, entriesMax)}
	if made.zip.names[0] == "part.json" {
		panic(&NotArchive{where + " is a content part: pass it as one, with its archive"})
	}
	made.readManifest()
	made.checkEntries()
	made.checkFiles()
	made.checkRanges()
	made.checkParts()
	made.checkGenesis()
	made.readConfigs()
	return made
}

func (a *archive) readManifest() {
	where := "manifest.json"
	a.manifest = document(a.zip.read(where, manifestMax), manifestForm, where, manifestMax)
	checked(a.manifest["service"], serviceForm, where)
	frozen := checked(a.manifest["frozen_range"], rangeForm, where)
	asked := checked(a.manifest["requested_range"], requestedForm, where)
	for name, form := range map[string]members{"files": fileForm, "config_versions": versionForm, "content_parts": partForm} {
		for _, one := range list(a.manifest, name) {
			checked(one, form, where)
		}
	}
	a.mode, a.channelID, a.version = text(a.manifest, "mode"), text(a.manifest, "channel_id"), integer(a.manifest, "v")
	a.issuedAt = text(a.manifest, "issued_at")
	a.first, a.last = integer(frozen, "first_sequence"), integer(frozen, "last_sequence")
	a.from, _ = asked["from"].(string)
	a.to, _ = asked["to"].(string)
}

// checkEntries: section 3, these entries in this order.
func (a *archive) checkEntries() {
	expected := []string{"mimetype", "README.txt", "LEEME.txt", "genesis.json"}
	if a.version > 2 && a.zip.has("signers.p7m") {
		expected = append(expected, "signers.p7m")
	}
	before := int64(0)
	for _, one := range list(a.manifest, "config_versions") {
		version := integer(one.(object), "version")
		require(before < version, "manifest.json", "the order of configurations")
		before = version
		expected = append(expected, configName(version))
	}
	for _, stream := range streams {
		expected = append(expected, a.zip.streams(stream)...)
	}
	expected = append(expected, "manifest.json", asicName, signedName)
	require(strings.Join(a.zip.names, "\n") == strings.Join(expected, "\n"), a.zip.where,
		"other entries, or in another order")
	unused := streams[streamsOfVersion[a.version]:]
	if a.mode == "test" {
		unused = streams[1:]
	}
	for _, stream := range unused {
		require(len(a.zip.streams(stream)) == 0, a.zip.where, "a stream that this archive does not have")
	}
	a.hasLog = len(a.zip.streams("checkpoints")) > 0
	require(a.hasLog == (len(a.zip.streams("log")) > 0), a.zip.where, "checkpoints or places in the log alone")
	require(string(a.zip.read("mimetype", 64)) == "application/vnd.etsi.asic-e+zip", "mimetype", "its content")
}

func configName(version int64) string { return fmt.Sprintf("config/config-%06d.json", version) }

// checkFiles: every entry against the manifest, and the ASiCManifest byte by byte.
func (a *archive) checkFiles() {
	names := a.zip.names[1 : len(a.zip.names)-3]
	listed := list(a.manifest, "files")
	require(len(listed) == len(names), "manifest.json", "the digests of the files")
	for number, name := range names {
		one := listed[number].(object)
		require(text(one, "path") == name && text(one, "sha256") == a.zip.digest(name) &&
			integer(one, "size") == a.zip.entries[name].size, "manifest.json", "the digests of the files")
	}
	var wanted strings.Builder
	wanted.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#" xmlns:ds="http://www.w3.org/2000/09/xmldsig#">
<asic:SigReference URI="` + signedName + `" MimeType="application/x-pkcs7-signature"/>
`)
	for _, name := range append([]string{"manifest.json"}, names...) {
		digest := base64.StdEncoding.EncodeToString(hexBytes(a.zip.digest(name)))
		wanted.WriteString(`<asic:DataObjectReference URI="` + name + `"><ds:DigestMethod` +
			` Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/><ds:DigestValue>` + digest +
			"</ds:DigestValue></asic:DataObjectReference>\n")
	}
	wanted.WriteString("</asic:ASiCManifest>\n")
	a.asic = a.zip.read(asicName, manifestMax)
	require(string(a.asic) == wanted.String(), asicName, "other bytes")
}

func (a *archive) checkRanges() {
	where, asked := "manifest.json", inside(a.manifest, "requested_range")
	require(a.first <= a.last && integer(a.manifest, "event_count") == a.last-a.first+1, where, "its range")
	hasTimes, hasNumbers := a.from != "" && a.to != "", asked["seq_from"] != nil && asked["seq_to"] != nil
	byNumber := hasNumbers && asked["from"] == nil && asked["to"] == nil && integer(asked, "seq_from") == a.first &&
		integer(asked, "seq_to") == a.last
	byTime := hasTimes && asked["seq_from"] == nil && asked["seq_to"] == nil && a.from < a.to
	require(byNumber || byTime, where, "the range that was asked for")
}

func (a *archive) checkParts() {
	where, after := "content_parts", a.first-1
	parts := list(a.manifest, "content_parts")
	require(len(parts) <= 10000, where, "too many")
	for number, one := range parts {
		part := one.(object)
		first, last := integer(part, "first_sequence"), integer(part, "last_sequence")
		require(text(part, "name") == fmt.Sprintf("content-part-%03d.zip", number+1), where, "a name")
		require(after < first && first <= last && last <= a.last, where, "a range")
		after = last
	}
}

func (a *archive) checkGenesis() {
	where := "genesis.json"
	genesis := document(a.zip.read(where, documentMax), genesisForm, where, documentMax)
	require(text(genesis, "chain") == a.mode && text(genesis, "channel_id") == a.channelID, where, "another chain's")
	a.genesisHash = a.zip.digest(where)
	require(a.first > 1 || text(a.manifest, "previous_chain_hash") == a.genesisHash, where, "event 1 does not build on it")
}

func (a *archive) readConfigs() {
	a.configs = map[int64]config{}
	for _, one := range list(a.manifest, "config_versions") {
		version, hash := integer(one.(object), "version"), text(one.(object), "hash")
		name := configName(version)
		data := a.zip.read(name, documentMax)
		found := document(data, configForm, name, documentMax)
		require(text(found, "channel_id") == a.channelID && integer(found, "version") == version && sha256Hex(data) == hash,
			name, "another one")
		a.configs[version] = config{hash, text(found, "modality")}
	}
}

// checkSignature checks what the signature and its timestamp are over, and their times. It returns both, for their
// values to be checked.
func (a *archive) checkSignature() []*signed {
	a.signed = newSigned(a.zip.read(signedName, signatureMax), signedName, a.asic, dataType)
	require(a.signed.digest == crypto.SHA256, signedName, "another digest than SHA-256")
	wanted := 1
	if a.signed.hasOtherRevocations {
		wanted = 5
	}
	require(a.signed.version == wanted, signedName, "the version of its SignedData")
	require(a.signed.signingTime().Equal(timeOf(a.issuedAt).Truncate(time.Second)), signedName,
		"its signing-time is not issued_at")
	stamp := a.signed.timestamp()
	if stamp == nil {
		require(a.mode == "test", signedName, "it has no timestamp")
		return []*signed{a.signed}
	}
	require(len(stamp) <= tokenMax, signedName, "the size of its timestamp")
	token := newToken(stamp, "the signature's timestamp")
	require(token.imprint == sha256Hex(a.signed.value), signedName, "its timestamp is over another one")
	a.stampedAt = token.time
	require(a.issuedAt <= later(a.stampedAt), signedName, "issued_at is after its timestamp")
	return []*signed{a.signed, token.signed}
}

// latest returns the latest time that anything in the archive may have.
func (a *archive) latest() string {
	if a.stampedAt != "" && a.stampedAt < a.issuedAt {
		return later(a.stampedAt)
	}
	return later(a.issuedAt)
}
