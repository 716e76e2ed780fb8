package evidence

import (
	"fmt"
	"strings"
)

var (
	kindForm  = oneOf("qualified", "non_qualified", "development")
	eventForm = members{"chain": isChain, "channel_id": isText, "client_ref": short(255), "config_hash": isHash,
		"config_version": isPositive, "event_id": isText, "hash": isText, "hash_alg": oneOf("sha-256", "sha-512"),
		"modality": oneOf("content", "hash_only"), "occurred_at": orNull(isTime), "previous_chain_hash": isHash,
		"received_at": isTime, "sequence": isPositive, "v": isOne}
	leafForm    = members{"chain_hash": isHash, "sequence": isPositive}
	segmentForm = members{"path": hashes(40), "round_id": short(127), "seal": isObject}
	sealForm    = members{"chain": isChain, "chain_hash_before": isHash, "chain_hash_last": isHash, "channel_id": isText,
		"clock": isObject, "count": within(1, 16384), "first_sequence": isPositive, "last_sequence": isPositive,
		"previous_seal_hash": orNull(isHash), "previous_token_hash": orNull(isHash), "segment_id": isText, "v": isOne}
	clockForm = members{"max_error_us": isCount, "source": isText, "synchronized": isBool}
	roundForm = members{"gen_time": isTime, "root": isHash, "round_id": short(127), "tokens": isList}
	tokenForm = members{"authority": isText, "certificates": ascending(64), "gen_time": isTime, "kind": kindForm,
		"renewal": orNull(isObject), "request": orNull(base64Of(1024)), "revocations": ascending(16), "token": base64Of(65536)}
	round1Form = members{"authority": isText, "gen_time": isTime, "kind": kindForm, "request": orNull(base64Of(1024)),
		"root": isHash, "round_id": short(127), "token": base64Of(65536)}
	renewalForm = members{"path": hashes(40), "stamp": isPositive}
	stampForm   = members{"authority": isText, "gen_time": isTime, "kind": kindForm, "renewal": orNull(isObject),
		"stamp": isPositive, "token": base64Of(131072)}
	objectForm = members{"der": base64Of(32 << 20), "kind": oneOf("certificate", "crl", "ocsp"), "sha256": isHash}
	digestSize = map[string]int{"sha-256": 64, "sha-512": 128}
)

// link is an event as a segment covers it; event is nil where the archive has its chain hash alone.
type link struct {
	sequence  int64
	chainHash string
	event     object
}

// eventReader returns the events of the range, each checked against the one before, its configuration and the manifest.
type eventReader struct {
	archive            *archive
	lines              *lines
	sequence           int64
	previous, received string
	latest             string
	used               map[int64]bool
}

func newEventReader(from *archive) *eventReader {
	return &eventReader{archive: from, lines: from.zip.lines("events", 0), sequence: from.first,
		previous: text(from.manifest, "previous_chain_hash"), latest: later(from.issuedAt), used: map[int64]bool{}}
}

func (r *eventReader) next() *link {
	line := r.lines.next()
	if line == nil {
		r.end()
		return nil
	}
	a, where := r.archive, fmt.Sprintf("event %d", r.sequence)
	event := document(line, eventForm, where, lineMax)
	require(r.sequence <= a.last, where, "after the range")
	require(text(event, "chain") == a.mode && text(event, "channel_id") == a.channelID &&
		integer(event, "sequence") == r.sequence && text(event, "previous_chain_hash") == r.previous, where,
		"it does not continue the chain")
	received := text(event, "received_at")
	require(r.received <= received && received <= r.latest, where, "received_at")
	require(a.from == "" || a.from <= received && received < a.to, where,
		"it was received outside the range that was asked for")
	version, modality := integer(event, "config_version"), text(event, "modality")
	require(a.configs[version] == config{text(event, "config_hash"), modality}, where, "another configuration")
	algorithm := text(event, "hash_alg")
	require(modality == "hash_only" || algorithm == "sha-256", where, "hash_alg")
	require(isHex(text(event, "hash"), digestSize[algorithm]), where, "hash")
	r.received, r.previous = received, sha256Hex(line)
	require(r.sequence > a.first || r.previous == text(a.manifest, "first_chain_hash"), where, "first_chain_hash")
	r.used[version] = true
	r.sequence++
	return &link{r.sequence - 1, r.previous, event}
}

func (r *eventReader) end() {
	require(r.sequence == r.archive.last+1, "events", "events are missing at the end")
	require(r.previous == text(r.archive.manifest, "last_chain_hash"), "manifest.json", "last_chain_hash")
	require(len(r.used) == len(r.archive.configs), "manifest.json", "a configuration that no event names")
}

// linkReader returns leaves and events in the order of their sequence.
type linkReader struct {
	archive *archive
	leaves  *lines
	before  int64 // of the leaves
	waiting *link
	events  *eventReader
	isAfter bool // the events are over
}

func newLinkReader(from *archive) *linkReader {
	return &linkReader{archive: from, leaves: from.zip.lines("leaves", 0)}
}

func (r *linkReader) next() *link {
	for r.events == nil {
		leaf := r.leaf()
		if leaf != nil && leaf.sequence <= r.archive.last {
			return leaf
		}
		r.waiting, r.events = leaf, newEventReader(r.archive)
	}
	if !r.isAfter {
		if event := r.events.next(); event != nil {
			return event
		}
		r.isAfter = true
	}
	if waiting := r.waiting; waiting != nil {
		r.waiting = nil
		return waiting
	}
	return r.leaf()
}

func (r *linkReader) leaf() *link {
	line := r.leaves.next()
	if line == nil {
		return nil
	}
	leaf := document(line, leafForm, "leaves", lineMax)
	sequence, hash := integer(leaf, "sequence"), text(leaf, "chain_hash")
	require(r.before < sequence && (sequence < r.archive.first || sequence > r.archive.last), "leaves", "the order")
	require(sequence != r.archive.first-1 || hash == text(r.archive.manifest, "previous_chain_hash"), "leaves",
		"the event before the range is another one")
	r.before = sequence
	return &link{sequence, hash, nil}
}

// ---- rounds ----

// round is a line of rounds/, and the SHA-256 of its first token.
type round struct{ id, root, genTime, tokenHash string }

// stamp is an archive timestamp.
type stamp struct{ imprint, genTime string }

// rounds are in order, with what their tokens name and what renewed them.
type rounds struct {
	archive         *archive
	judge           func(*signed)
	objects         map[string]string // kinds by SHA-256
	named           map[string]bool
	stamps          map[int64]stamp
	namedStamps     map[int64]bool
	lines           *lines
	before, current *round
}

func newRounds(from *archive, judge func(*signed)) *rounds {
	made := &rounds{archive: from, judge: judge, objects: map[string]string{}, named: map[string]bool{},
		stamps: map[int64]stamp{}, namedStamps: map[int64]bool{}, lines: from.zip.lines("rounds", 0)}
	made.readObjects()
	made.readStamps()
	made.advance()
	return made
}

// advance goes on to the next line.
func (r *rounds) advance() {
	line := r.lines.next()
	require(line != nil, "rounds", "the round of a segment is missing")
	r.before, r.current = r.current, r.read(line)
	if r.before != nil {
		require(r.before.id != r.current.id, "rounds", "one is repeated")
		require(r.before.genTime <= later(r.current.genTime), "rounds", "their order in time")
	}
}

// end checks that nothing is left over.
func (r *rounds) end() {
	require(r.lines.next() == nil, "rounds", "one that no segment needs")
	require(len(r.named) == len(r.objects), "validation", "an object that no token names")
	require(len(r.namedStamps) == len(r.stamps), "renewals", "one that nothing names")
}

func (r *rounds) read(line []byte) *round {
	var value object
	var tokens []object
	if r.archive.version == 1 {
		value = document(line, round1Form, "rounds", lineMax)
		tokens = []object{value}
	} else {
		value = document(line, roundForm, "rounds", lineMax)
		for _, one := range list(value, "tokens") {
			tokens = append(tokens, checked(one, tokenForm, text(value, "round_id")))
		}
	}
	made := &round{id: text(value, "round_id"), root: text(value, "root"), genTime: text(value, "gen_time")}
	require(1 <= len(tokens) && len(tokens) <= 2 && text(tokens[0], "gen_time") == made.genTime, made.id, "its tokens")
	require(made.genTime <= r.archive.latest(), made.id, "after the archive was issued")
	for _, one := range tokens {
		r.checkToken(one, made.root, made.id)
	}
	made.tokenHash = sha256Hex(decoded(text(tokens[0], "token")))
	return made
}

func (r *rounds) checkToken(given object, root, where string) {
	made := newToken(decoded(text(given, "token")), where)
	require(made.imprint == root, where, "its token is over another root")
	require(made.time == text(given, "gen_time"), where, "gen_time is not its token's")
	for name, kinds := range map[string]string{"certificates": "certificate", "revocations": "crl ocsp"} {
		if given[name] == nil {
			continue
		}
		for _, one := range list(given, name) {
			kind := r.objects[one.(string)]
			require(kind != "" && strings.Contains(kinds, kind), where, "an object that its token names is missing")
			r.named[one.(string)] = true
		}
	}
	r.checkRenewal(given, where)
	r.judge(made.signed)
}

// checkRenewal: section 4.9, the archive timestamp that a renewal names covers the token.
func (r *rounds) checkRenewal(given object, where string) {
	if given["renewal"] == nil {
		return
	}
	renewal := checked(given["renewal"], renewalForm, where)
	number := integer(renewal, "stamp")
	found, has := r.stamps[number]
	require(has, where, "its renewal is missing")
	require(along(sha256Hex(decoded(text(given, "token"))), list(renewal, "path")) == found.imprint, where,
		"its renewal does not cover it")
	require(text(given, "gen_time") <= found.genTime, where, "it was renewed before its time")
	r.namedStamps[number] = true
}

func (r *rounds) readStamps() {
	before := int64(integerMax + 1)
	source := r.archive.zip.lines("renewals", 0)
	for line := source.next(); line != nil; line = source.next() {
		given := document(line, stampForm, "renewals", lineMax)
		number := integer(given, "stamp")
		where := fmt.Sprintf("archive timestamp %d", number)
		require(number < before && len(r.stamps) < 65536, where, "the order")
		before = number
		made := newToken(decoded(text(given, "token")), where)
		require(made.time == text(given, "gen_time"), where, "gen_time is not its token's")
		r.checkRenewal(given, where)
		r.judge(made.signed)
		r.stamps[number] = stamp{made.imprint, made.time}
	}
}

// readObjects: section 4.7.
func (r *rounds) readObjects() {
	before, size := "", 0
	source := r.archive.zip.lines("validation", 0)
	for line := source.next(); line != nil; line = source.next() {
		given := document(line, objectForm, "validation", lineMax)
		der, digest := decoded(text(given, "der")), text(given, "sha256")
		require(sha256Hex(der) == digest && digest > before, "validation", "a digest, or the order")
		before, size = digest, size+len(der)
		require(len(r.objects) < 4096 && size <= 32<<20, "validation", "too many objects")
		r.objects[digest] = text(given, "kind")
	}
}

// ---- segments ----

// visitor takes the events and leaves of an archive, none of which waits in memory for its segment to be checked.
type visitor struct {
	read   func(link) // takes each one as it is read
	settle func()     // is called when all that were read are checked
}

// summary is what a segment's check needs of its events and leaves, which may be many and large.
type summary struct {
	tree      tree
	chainHash string // of the last one
	received  string // time of the last event, and so the latest of all; empty: there are leaves alone
}

func (s *summary) add(one *link) {
	s.tree.add(one.chainHash)
	s.chainHash = one.chainHash
	if one.event != nil {
		s.received = text(one.event, "received_at")
	}
}

// sealRun is the end of a run of seals.
type sealRun struct {
	seal, chainHash string // seal is empty before the first one
	next            int64
}

// isContinued reports whether a seal is the next one of the run.
func (r *sealRun) isContinued(seal object) bool {
	previous, _ := seal["previous_seal_hash"].(string)
	return previous == r.seal && integer(seal, "first_sequence") == r.next && text(seal, "chain_hash_before") == r.chainHash
}

// chain leads every event of a live archive to its round.
type chain struct {
	archive      *archive
	rounds       *rounds
	source       *linkReader
	log          *segmentLog // nil: the archive has none
	sealBefore   string      // empty: there was no segment
	chainHash    string      // of the event before the next segment; empty: not known
	next         int64
	history      *sealRun // the seals before those of the archive; nil: it has none
	hasOpenStart bool     // the first segment names no token before, and may not have to
}

// walk gives every event and leaf as it is read, and says when its segment is checked.
func (c *chain) walk(to visitor) {
	history := c.archive.zip.lines("history", 0)
	for line := history.next(); line != nil; line = history.next() {
		c.walkHistory(line)
	}
	seals := c.archive.zip.lines("seals", 0)
	for line := seals.next(); line != nil; line = seals.next() {
		c.segment(line, to.read)
		to.settle()
	}
	require(c.sealBefore != "", "seals", "there are none")
	require(c.source.next() == nil, "seals", "they do not cover every event")
	c.rounds.end()
	if c.log != nil {
		c.log.end()
	}
}

func (c *chain) checkSeal(seal object) {
	where := text(seal, "segment_id")
	checked(seal["clock"], clockForm, where)
	require(text(seal, "chain") == c.archive.mode && text(seal, "channel_id") == c.archive.channelID, where,
		"another chain's")
	begin, end := integer(seal, "first_sequence"), integer(seal, "last_sequence")
	require(begin <= end && integer(seal, "count") == end-begin+1, where, "count")
}

// walkHistory checks section 4.12: the seals from the first event of the chain on.
func (c *chain) walkHistory(line []byte) {
	seal := document(line, sealForm, "history", sealMax)
	c.checkSeal(seal)
	if c.history == nil {
		c.history = &sealRun{chainHash: c.archive.genesisHash, next: 1}
	}
	require(c.history.isContinued(seal), "history", "a seal that does not continue the one before")
	*c.history = sealRun{sha256Hex(line), text(seal, "chain_hash_last"), integer(seal, "last_sequence") + 1}
}

func (c *chain) segment(line []byte, read func(link)) {
	value := document(line, segmentForm, "seals", lineMax)
	sealed := canonical(value["seal"])
	require(len(sealed) <= sealMax, "seals", "the size of a seal")
	seal := checked(value["seal"], sealForm, "seals")
	c.checkSeal(seal)
	where := text(seal, "segment_id")
	begin, end := integer(seal, "first_sequence"), integer(seal, "last_sequence")
	isFirst := c.sealBefore == ""
	if isFirst {
		require(begin <= c.archive.first && c.archive.first <= end, where, "its place")
	} else {
		require(begin == c.next, where, "its place")
	}
	c.checkBefore(seal, isFirst, where)
	sum := summary{}
	for sequence := begin; sequence <= end; sequence++ {
		one := c.source.next()
		require(one != nil && one.sequence == sequence, where, "an event that it covers is missing")
		sum.add(one)
		read(*one)
	}
	require(sum.chainHash == text(seal, "chain_hash_last"), where, "chain_hash_last")
	require(!isFirst || begin != c.archive.first ||
		text(seal, "chain_hash_before") == text(c.archive.manifest, "previous_chain_hash"), where, "chain_hash_before")
	sealHash := sha256Hex(sealed)
	c.checkRound(value, seal, &sum, sealHash, isFirst)
	if c.log != nil {
		c.log.check(seal, sealHash)
	}
	c.sealBefore, c.next, c.chainHash = sealHash, end+1, sum.chainHash
}

func (c *chain) checkBefore(seal object, isFirst bool, where string) {
	begin, before := integer(seal, "first_sequence"), text(seal, "chain_hash_before")
	previous, has := seal["previous_seal_hash"].(string)
	require(has == (begin > 1), where, "previous_seal_hash")
	require(isFirst || previous == c.sealBefore, where, "previous_seal_hash")
	require(!isFirst || c.history == nil || c.history.isContinued(seal), "history",
		"it does not lead to the first segment")
	require(begin > 1 || before == c.archive.genesisHash, where, "chain_hash_before")
	require(c.chainHash == "" || c.chainHash == before, where, "chain_hash_before")
}

func (c *chain) checkRound(value, seal object, sum *summary, sealHash string, isFirst bool) {
	where, stepsMax := text(seal, "segment_id"), 2
	if isFirst {
		stepsMax = 1
	}
	for steps := 0; c.rounds.current.id != text(value, "round_id"); {
		steps++
		require(steps <= stepsMax, "rounds", "one that no segment needs")
		c.rounds.advance()
	}
	require(sum.received <= later(c.rounds.current.genTime), where, "an event was received after its timestamp")
	sum.tree.add(sealHash)
	root := along(sum.tree.root(), list(value, "path"))
	require(root == c.rounds.current.root, where, "it does not lead to the root of its round")
	previous, has := seal["previous_token_hash"].(string)
	if c.rounds.before != nil {
		require(has && previous == c.rounds.before.tokenHash, where, "previous_token_hash")
	} else {
		require(!has, where, "previous_token_hash")
		c.hasOpenStart = c.hasOpenStart || isFirst && integer(seal, "first_sequence") > 1
	}
}

// walk gives every event and leaf of an archive. It returns whether the start was left open.
func walk(from *archive, judge func(*signed), to visitor) bool {
	if from.mode == "test" {
		events := newEventReader(from)
		for one := events.next(); one != nil; one = events.next() {
			to.read(*one)
			to.settle()
		}
		return false
	}
	made := &chain{archive: from, rounds: newRounds(from, judge), source: newLinkReader(from)}
	if from.hasLog {
		made.log = newSegmentLog(from)
	}
	made.walk(to)
	return made.hasOpenStart
}
