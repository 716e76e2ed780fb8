package evidence

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // of references to certificates alone
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"regexp"
	"sort"
	"strings"
	"time"
)

const depthMax = 32

func oid(text string) string {
	data, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

var (
	signedDataType    = oid("2a864886f70d010702")
	dataType          = oid("2a864886f70d010701")
	tstInfoType       = oid("2a864886f70d0109100104")
	contentTypeKind   = oid("2a864886f70d010903")
	messageDigestKind = oid("2a864886f70d010904")
	signingTimeKind   = oid("2a864886f70d010905")
	timestampKind     = oid("2a864886f70d010910020e")
	referenceKind     = oid("2a864886f70d010910020c")
	reference2Kind    = oid("2a864886f70d010910022f")
	pssAlgorithm      = oid("2a864886f70d01010a")
	digestKinds       = map[string]crypto.Hash{oid("608648016503040201"): crypto.SHA256,
		oid("608648016503040202"): crypto.SHA384, oid("608648016503040203"): crypto.SHA512}
)

func digestBy(algorithm crypto.Hash, data []byte) []byte {
	switch algorithm {
	case crypto.SHA1:
		digest := sha1.Sum(data) //nolint:gosec // as the attribute has it
		return digest[:]
	case crypto.SHA224:
		digest := sha256.Sum224(data)
		return digest[:]
	case crypto.SHA256:
		digest := sha256.Sum256(data)
		return digest[:]
	case crypto.SHA384:
		digest := sha512.Sum384(data)
		return digest[:]
	default:
		digest := sha512.Sum512(data)
		return digest[:]
	}
}

// node is an element of BER: its tag, and its content or what it consists of.
type node struct {
	data           []byte
	tag            byte
	depth          int
	at, begin      int // of the element, and of its content
	finish, behind int // of its content, and of the element
}

func newNode(data []byte, at, end, depth int) *node {
	require(depth <= depthMax && at+2 <= end, "BER", "cut off, or nested too deep")
	made := &node{data: data, tag: data[at], depth: depth, at: at}
	require(made.tag&31 != 31, "BER", "a tag number above 30")
	size, begin := int(data[at+1]), at+2
	if size > 0x80 {
		count := size & 127
		require(count <= 4 && begin+count <= end, "BER", "a length")
		size = 0
		for _, digit := range data[begin : begin+count] {
			size = size<<8 | int(digit)
		}
		begin += count
	} else if size == 0x80 {
		made.begin = begin
		made.findEnd(end)
		return made
	}
	require(size >= 0 && begin+size >= begin && begin+size <= end, "BER", "cut off")
	made.begin, made.finish, made.behind = begin, begin+size, begin+size
	return made
}

// findEnd looks for the end of an indefinite length.
func (n *node) findEnd(end int) {
	require(n.tag&0x20 != 0, "BER", "a length")
	place := n.begin
	for !(place+2 <= end && n.data[place] == 0 && n.data[place+1] == 0) {
		place = newNode(n.data, place, end, n.depth+1).behind
	}
	n.finish, n.behind = place, place+2
	require(n.behind <= end, "BER", "cut off")
}

func (n *node) content() []byte { return n.data[n.begin:n.finish] }

func (n *node) whole() []byte { return n.data[n.at:n.behind] }

func (n *node) children() []*node {
	require(n.tag&0x20 != 0, "BER", "an element that should consist of others")
	var found []*node
	for place := n.begin; place < n.finish; {
		child := newNode(n.data, place, n.finish, n.depth+1)
		found = append(found, child)
		place = child.behind
	}
	return found
}

// some returns the children, of which there has to be this number.
func (n *node) some(count int, where string) []*node {
	found := n.children()
	require(len(found) == count, where, "the number of elements")
	return found
}

// octets returns the bytes of an OCTET STRING, which BER may have in pieces.
func (n *node) octets() []byte {
	if n.tag&0x20 == 0 {
		return n.content()
	}
	var all []byte
	for _, piece := range n.children() {
		all = append(all, piece.octets()...)
	}
	return all
}

// der returns its DER: lengths in their shortest form, sets in order.
func (n *node) der() []byte {
	if n.tag == 0x24 {
		return tlv(4, n.octets())
	}
	if n.tag&0x20 == 0 {
		return tlv(n.tag, n.content())
	}
	var parts [][]byte
	for _, child := range n.children() {
		parts = append(parts, child.der())
	}
	if n.tag == 0x31 {
		sortBytes(parts)
	}
	return tlv(n.tag, bytes.Join(parts, nil))
}

func sortBytes(parts [][]byte) {
	sort.Slice(parts, func(one, other int) bool { return bytes.Compare(parts[one], parts[other]) < 0 })
}

func tlv(tag byte, content []byte) []byte {
	size := len(content)
	if size < 128 {
		return append([]byte{tag, byte(size)}, content...)
	}
	var digits []byte
	for ; size > 0; size >>= 8 {
		digits = append([]byte{byte(size)}, digits...)
	}
	head := append([]byte{tag, 0x80 | byte(len(digits))}, digits...)
	return append(head, content...)
}

// parse returns the one element that the data is, to its last byte.
func parse(data []byte, tag byte, where string) *node {
	found := newNode(data, 0, len(data), 1)
	require(found.tag == tag && found.behind == len(data), where, "not one element of BER")
	return found
}

// elements are taken one after the other.
type elements struct {
	left  []*node
	where string
}

func (e *elements) is(tag byte) bool { return len(e.left) > 0 && e.left[0].tag == tag }

func (e *elements) take(tag byte) *node {
	require(e.is(tag), e.where, "an element is missing or another one")
	taken := e.left[0]
	e.left = e.left[1:]
	return taken
}

// first returns the content of the identifier that an element begins with.
func (n *node) first(where string) string {
	found := n.children()
	require(len(found) > 0, where, "an element is empty")
	return string(found[0].content())
}

type attribute struct {
	kind   string
	values []*node
}

func attributesOf(from *node, where string) []attribute {
	var found []attribute
	kinds := map[string]bool{}
	for _, one := range from.children() {
		parts := one.some(2, where)
		require(parts[0].tag == 6 && parts[1].tag == 0x31, where, "an attribute")
		made := attribute{string(parts[0].content()), parts[1].children()}
		require(len(made.values) == 1 && !kinds[made.kind], where, "attributes")
		kinds[made.kind] = true
		found = append(found, made)
	}
	require(len(found) <= 16, where, "attributes")
	return found
}

// signed is a SignedData with one signer, whose message-digest is over its content.
type signed struct {
	where               string
	version             int
	content             []byte
	choices             map[byte]bool // tags of what is with the certificates
	certificates        [][]byte
	hasOtherRevocations bool
	digest              crypto.Hash
	attributes          []attribute
	attributesDER       []byte
	algorithm           string
	value               []byte
	unsigned            *node
	certificate         []byte // the signer's
}

// newSigned reads a SignedData. content is what a detached signature is over; nil: it is inside.
func newSigned(data []byte, where string, content []byte, kind string) *signed {
	made := &signed{where: where, choices: map[byte]bool{}}
	outer := parse(data, 0x30, where).some(2, where)
	require(string(outer[0].content()) == signedDataType && outer[1].tag == 0xa0, where, "not SignedData")
	parts := &elements{outer[1].some(1, where)[0].children(), where}
	for _, digit := range parts.take(2).content() {
		require(made.version < 1<<16, where, "the version of its SignedData")
		made.version = made.version<<8 | int(digit)
	}
	var digests []string
	for _, one := range parts.take(0x31).children() {
		digests = append(digests, one.first(where))
	}
	inner := parts.take(0x30).children()
	require(len(inner) > 0 && string(inner[0].content()) == kind, where, "the type of its content")
	if content != nil {
		require(len(inner) == 1, where, "its content is inside")
		made.content = content
	} else {
		require(len(inner) == 2, where, "its content is not inside")
		made.content = inner[1].children()[0].octets()
	}
	made.readCertificates(parts, content != nil)
	signers := parts.take(0x31).children()
	require(len(parts.left) == 0 && len(signers) == 1, where, "not exactly one signer")
	made.readSigner(signers[0], digests, kind)
	return made
}

func (s *signed) readCertificates(parts *elements, isDetached bool) {
	var choices []*node
	if parts.is(0xa0) {
		choices = parts.take(0xa0).children()
	}
	for _, one := range choices {
		s.choices[one.tag] = true
		if one.tag == 0x30 {
			s.certificates = append(s.certificates, one.whole())
		}
	}
	require(1 <= len(choices) && len(choices) <= 16 && len(s.certificates) > 0, s.where, "its certificates")
	if !parts.is(0xa1) {
		return
	}
	revocations := parts.take(0xa1).children()
	require(len(revocations) > 0 || !isDetached, s.where, "an empty set of revocation data")
	for _, one := range revocations {
		s.hasOtherRevocations = s.hasOtherRevocations || one.tag == 0xa1
	}
}

func (s *signed) readSigner(signer *node, digests []string, kind string) {
	parts := &elements{signer.children(), s.where}
	require(string(parts.take(2).content()) == "\x01", s.where, "the version of its signer")
	identity := parts.take(0x30).some(2, s.where)
	digest := parts.take(0x30).first(s.where)
	algorithm, isKnown := digestKinds[digest]
	require(isKnown, s.where, "another digest than SHA-2")
	require(len(digests) == 1 && digests[0] == digest, s.where, "its digest algorithms")
	s.digest = algorithm
	attributes := parts.take(0xa0)
	s.attributes = attributesOf(attributes, s.where)
	var der [][]byte
	for _, one := range attributes.children() {
		der = append(der, one.der())
	}
	sortBytes(der)
	s.attributesDER = tlv(0x31, bytes.Join(der, nil))
	s.algorithm = parts.take(0x30).first(s.where)
	s.value = parts.take(4).octets()
	if parts.is(0xa1) {
		s.unsigned = parts.take(0xa1)
	}
	require(len(parts.left) == 0, s.where, "more than a signer has")
	require(string(s.attribute(contentTypeKind).content()) == kind, s.where, "the attribute content-type")
	require(bytes.Equal(s.attribute(messageDigestKind).octets(), digestBy(algorithm, s.content)), s.where,
		"it is over something else")
	for _, one := range s.certificates {
		issuer, serial := namedBy(one)
		if bytes.Equal(issuer, identity[0].whole()) && bytes.Equal(serial, identity[1].content()) {
			s.certificate = one
			break
		}
	}
	require(s.certificate != nil, s.where, "the signer's certificate is not inside")
	references := 0
	for _, one := range s.attributes {
		if one.kind == referenceKind || one.kind == reference2Kind {
			s.checkReference(one)
			references++
		}
	}
	require(references > 0, s.where, "the attribute signing-certificate is missing")
}

// checkReference: ESSCertID (SHA-1) and ESSCertIDv2 name the signer's certificate first.
func (s *signed) checkReference(from attribute) {
	named := from.values[0].children()[0].children()[0].children()
	algorithm := crypto.SHA1
	if from.kind == reference2Kind {
		algorithm = crypto.SHA256
		if named[0].tag == 0x30 {
			kind := named[0].first(s.where)
			named = named[1:]
			switch kind {
			case oid("2b0e03021a"):
				algorithm = crypto.SHA1
			case oid("608648016503040204"):
				algorithm = crypto.SHA224
			default:
				known, isKnown := digestKinds[kind]
				if !isKnown {
					return // nothing is said of others
				}
				algorithm = known
			}
		}
	}
	require(bytes.Equal(named[0].octets(), digestBy(algorithm, s.certificate)), s.where,
		"the attribute signing-certificate names another")
}

func (s *signed) attribute(kind string) *node {
	for _, one := range s.attributes {
		if one.kind == kind {
			return one.values[0]
		}
	}
	panic(&Invalid{s.where, "an attribute is missing"})
}

// fingerprint returns the SHA-256 of the signer's certificate.
func (s *signed) fingerprint() string { return sha256Hex(s.certificate) }

// timestamp returns the token over the signature's value, the only unsigned attribute there may be; nil: none.
func (s *signed) timestamp() []byte {
	if s.unsigned == nil {
		return nil
	}
	found := attributesOf(s.unsigned, s.where)
	require(len(found) == 1 && found[0].kind == timestampKind, s.where, "unsigned attributes")
	return found[0].values[0].whole()
}

var (
	utcTimeForm         = regexp.MustCompile(`^[0-9]{12}Z$`)
	generalizedTimeForm = regexp.MustCompile(`^([0-9]{14})(?:\.([0-9]{1,16}))?Z$`)
)

func (s *signed) signingTime() time.Time {
	from := s.attribute(signingTimeKind)
	stated := string(from.content())
	if from.tag == 0x17 && utcTimeForm.MatchString(stated) {
		if stated < "50" {
			stated = "20" + stated
		} else {
			stated = "19" + stated
		}
	} else {
		require(from.tag == 0x18 && !strings.Contains(stated, ".") && generalizedTimeForm.MatchString(stated), s.where,
			"signing-time")
	}
	return timeOfDigits(stated[:14], s.where)
}

func timeOfDigits(digits, where string) time.Time {
	when, err := time.Parse("20060102150405", digits)
	require(err == nil && when.Year() > 0, where, "its time")
	return when
}

// checkValue requires that the key of the certificate inside made the signature. It returns why that cannot be
// judged, or nothing.
func (s *signed) checkValue() string {
	certificate, err := x509.ParseCertificate(s.certificate)
	if err != nil {
		return s.where + ": " + err.Error()
	}
	digest := digestBy(s.digest, s.attributesDER)
	switch key := certificate.PublicKey.(type) {
	case *ecdsa.PublicKey:
		require(ecdsa.VerifyASN1(key, digest, s.value), s.where, "the signature is wrong")
	case *rsa.PublicKey:
		if s.algorithm == pssAlgorithm {
			err = rsa.VerifyPSS(key, s.digest, digest, s.value, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto})
		} else {
			err = rsa.VerifyPKCS1v15(key, s.digest, digest, s.value)
		}
		require(err != rsa.ErrVerification, s.where, "the signature is wrong")
		if err != nil {
			return s.where + ": " + err.Error()
		}
	default:
		return s.where + ": a key of another kind"
	}
	return ""
}

// namedBy returns the issuer, in DER, and the serial number of a certificate.
func namedBy(certificate []byte) (issuer, serial []byte) {
	parts := parse(certificate, 0x30, "a certificate").children()[0].children()
	if parts[0].tag == 0xa0 {
		parts = parts[1:]
	}
	return parts[2].whole(), parts[0].content()
}

// token is a TimeStampToken: its imprint (SHA-256) and its time.
type token struct {
	signed  *signed
	imprint string
	time    string
}

func newToken(data []byte, where string) *token {
	made := &token{signed: newSigned(data, where, nil, tstInfoType)}
	version := made.signed.version
	if made.signed.hasOtherRevocations {
		require(version == 5, where, "the version of its SignedData")
	} else {
		require(version == 3 || version == 4 && made.signed.choices[0xa2], where, "the version of its SignedData")
	}
	parts := &elements{parse(made.signed.content, 0x30, where).children(), where}
	require(string(parts.take(2).content()) == "\x01", where, "the version of its TSTInfo")
	parts.take(6)
	imprint := parts.take(0x30).some(2, where)
	require(digestKinds[imprint[0].first(where)] == crypto.SHA256 && imprint[1].tag == 4, where,
		"another digest than SHA-256")
	made.imprint = hex.EncodeToString(imprint[1].octets())
	parts.take(2)
	found := generalizedTimeForm.FindStringSubmatch(string(parts.take(0x18).content()))
	require(found != nil, where, "its time")
	for _, part := range parts.left {
		if part.tag == 0xa1 {
			checkExtensions(part, where)
		}
	}
	fraction := (found[2] + "000000")[:6]
	made.time = timeOfDigits(found[1], where).Format("2006-01-02T15:04:05.") + fraction + "Z"
	return made
}

// checkExtensions refuses a critical extension.
func checkExtensions(part *node, where string) {
	for _, extension := range part.children() {
		booleans := 0
		for _, one := range extension.children() {
			if one.tag == 1 {
				booleans++
				require(string(one.content()) == "\x00" && booleans == 1, where, "a critical extension of its TSTInfo")
			}
		}
	}
}
