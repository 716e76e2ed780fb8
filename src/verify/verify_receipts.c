/* Comparison of receipts with the events of the archives. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/receipt.h"
#include "archive/zip_shape.h"
#include "base/base64.h"
#include "base/file.h"
#include "ledger/bounds.h"
#include "verify/verify_check.h"

#define DIFFERENCES_MAX 160
#define PROMISE_MAX_US US_PER_DAY /* after the reception: a later seal is no useful promise */
#define MALFORMED_NAMED_MAX 100   /* of a file: they must not displace other findings */

/* What the archive that is being checked says about a receipt. */
struct said {
	enum { SAYS_NOTHING, SAYS_OTHER_EVENT, SAYS_OTHER_HASH } what;
	bool is_signed;                    /* the receipt's signature covers what differs */
	char differences[DIFFERENCES_MAX]; /* of SAYS_OTHER_EVENT */
	int64_t sealed_us;                 /* as below */
	int64_t passed_us;
};
static const struct said nothing = {.sealed_us = TIME_NONE, .passed_us = TIME_NONE};

struct loaded_receipt {
	struct receipt receipt;
	const char *path;
	char where[32];
	bool compared;  /* compared with an event */
	bool differs;   /* an archive contradicts it, which is a finding */
	bool confirmed; /* an archive contains its chain hash */
	bool is_signed; /* the signature is valid, by the key that the receipt states */
	char key[BASE64_SIZE(RECEIPT_PUBLIC_KEY_SIZE) + 1]; /* as in a list of signers */
	struct said said;
	/* Of a signed receipt, by sound and trusted archives of its service: */
	int64_t sealed_us;       /* earliest time of a segment with its event; TIME_NONE: none */
	int64_t passed_us;       /* time of a later segment that ends before it; TIME_NONE: none */
	const char *passed_path; /* the archive with that segment */
};

static struct place place_of(const struct loaded_receipt *item)
{
	const struct event_facts *event = &item->receipt.event;
	return (struct place){event->channel_id, event->chain, event->sequence};
}

static int compare_places(const void *a, const void *b)
{
	return verify_compare_places(place_of(a), place_of(b));
}

/* ---- reading ---- */

static int load(const char *path, struct buf *out, struct error *error)
{
	struct stat facts;
	DESCRIPTOR_AUTO int fd = file_open_to_read(path, 0, &facts);
	int result = 0;
	if (fd < 0)
		result = error_cause(error, ERR_IO, "cannot open: %s", strerror(errno));
	else if (!S_ISREG(facts.st_mode) || (uint64_t)facts.st_size > RECEIPT_TEXT_MAX)
		result = error_cause(error, ERR_IO, "not a regular file, or too large for receipts");
	if (!result) {
		char *to = buf_extend(out, (size_t)facts.st_size);
		if (!to)
			result = ERR_NO_MEMORY;
		else if (!file_read_at(fd, to, (size_t)facts.st_size, 0))
			result = error_cause(error, ERR_IO, "read error");
	}
	return result;
}

/* Verifies the signature, if there is one. */
static int check_signature(struct loaded_receipt *item)
{
	const struct receipt_signature *signature = item->receipt.signature;
	if (!signature)
		return OK;
	base64_encode(signature->key, sizeof signature->key, item->key);
	return receipt_verify(&item->receipt, &item->is_signed);
}

static int keep(struct run *run, const char *path, const struct receipt *receipts, size_t count,
                struct error *error)
{
	assert(run->receipt_count <= RECEIPTS_MAX);
	if (run->receipt_count + count > RECEIPTS_MAX)
		return finding_fail(error, FINDING_RECEIPT_COUNT, RECEIPTS_MAX);
	struct loaded_receipt *items =
		realloc(run->receipts, (run->receipt_count + count) * sizeof *items);
	if (!items)
		return ERR_NO_MEMORY;
	run->receipts = items;
	size_t named = 0;
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct loaded_receipt *item = &items[run->receipt_count];
		*item = (struct loaded_receipt){.receipt = receipts[i],
		                                .path = path,
		                                .said = nothing,
		                                .sealed_us = TIME_NONE,
		                                .passed_us = TIME_NONE};
		if (count > 1)
			snprintf(item->where, sizeof item->where, "receipt %zu", i + 1);
		if (!receipts[i].cause)
			result = check_signature(item);
		else if (named++ < MALFORMED_NAMED_MAX)
			verify_add_cause(run, VERIFY_UNCHECKED, path, item->where, FINDING_RECEIPT_MALFORMED,
			                 receipts[i].cause);
		run->receipt_count += !receipts[i].cause;
	}
	return result;
}

static int read_file(struct run *run, const char *path)
{
	BUF_AUTO struct buf loaded;
	struct error error = {0};
	struct receipt *receipts;
	size_t count;
	buf_init(&loaded, RECEIPT_TEXT_MAX + 1);
	int result = load(path, &loaded, &error);
	char *text = !result ? arena_copy(&run->receipt_arena, loaded.data, loaded.size) : NULL;
	if (!result && !text)
		result = ERR_NO_MEMORY;
	if (!result)
		result = receipts_read(&run->receipt_arena, slice_make(text, loaded.size), &receipts,
		                       &count, &error);
	if (!result)
		result = keep(run, path, receipts, count, &error);
	if (!result || result == ERR_NO_MEMORY)
		return result;
	/* A file without usable receipts does not contradict the archive. */
	if (finding_of_error(&error) == FINDING_RECEIPT_COUNT)
		verify_add(run, VERIFY_UNCHECKED, path, "", FINDING_RECEIPT_COUNT, RECEIPTS_MAX);
	else
		verify_add_cause(run, VERIFY_UNCHECKED, path, "", FINDING_RECEIPT_NOT_USABLE, error.cause);
	return 0;
}

int verify_receipts_load(struct run *run)
{
	int result = 0;
	for (size_t i = 0; run->options && i < run->options->receipt_count && !result; i++)
		result = read_file(run, run->options->receipts[i]);
	if (run->receipt_count > 0)
		qsort(run->receipts, run->receipt_count, sizeof *run->receipts, compare_places);
	return result;
}

bool verify_receipts_any_signed(const struct run *run)
{
	for (size_t i = 0; i < run->receipt_count; i++)
		if (run->receipts[i].is_signed)
			return true;
	return false;
}

void verify_receipts_free(struct run *run)
{
	free(run->receipts);
	arena_free(&run->receipt_arena);
}

/* ---- comparing ---- */

/* Returns the index of the first receipt at that place or after it. */
static size_t find_place(const struct run *run, const char *channel_id, enum mode chain,
                         int64_t sequence)
{
	const struct place wanted = {channel_id, chain, sequence};
	size_t low = 0, high = run->receipt_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (verify_compare_places(place_of(&run->receipts[middle]), wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the first receipt of an event and the number of its receipts. */
static struct loaded_receipt *find(struct run *run, const char *channel_id, enum mode chain,
                                   int64_t sequence, size_t *ret_count)
{
	const struct place wanted = {channel_id, chain, sequence};
	size_t low = find_place(run, channel_id, chain, sequence), count = 0;
	while (low + count < run->receipt_count &&
	       verify_compare_places(place_of(&run->receipts[low + count]), wanted) == 0)
		count++;
	*ret_count = count;
	return count ? &run->receipts[low] : NULL;
}

/* Returns whether the receipt is signed with a key of the service of a trusted archive. A receipt
 * of an earlier event may be signed with a later key, if the declaration was repeated. */
static bool is_certified(const struct run *run, const struct loaded_receipt *item,
                         const struct input *archive)
{
	return item->is_signed && archive->is_signed && archive->is_trusted &&
	       verify_receipt_key_is_certified(run, &archive->signer, archive->signer_subject,
	                                       item->key, item->receipt.event.received_at_us);
}

/* Writes the names of the members that differ, separated by ", ". Returns whether a signed one
 * does: chain_hash covers the others. */
static bool list_differences(const struct receipt *receipt, const struct event_facts *event,
                             const struct sha256 *chain_hash, char text[DIFFERENCES_MAX])
{
	const struct event_facts *stated = &receipt->event;
	bool same_hash = stated->declaration.hash_algorithm == event->declaration.hash_algorithm &&
	                 memcmp(stated->declaration.hash, event->declaration.hash,
	                        hash_algorithm_size(event->declaration.hash_algorithm)) == 0;
	const struct {
		bool same;
		bool is_signed;
		const char *name;
	} members[] = {
		{sha256_equal(&receipt->chain_hash, chain_hash), true, "chain_hash"},
		{slice_equal(stated->event_id, event->event_id), false, "event_id"},
		{slice_equal(stated->declaration.client_ref, event->declaration.client_ref), false,
	     "client_ref"},
		{stated->received_at_us == event->received_at_us, true, "received_at"},
		{stated->declaration.occurred_at_us == event->declaration.occurred_at_us, false,
	     "occurred_at"},
		{same_hash, true, "hash"},
		{stated->declaration.hash_algorithm == event->declaration.hash_algorithm, true, "hash_alg"},
		{stated->declaration.modality == event->declaration.modality, false, "modality"},
		{stated->config_version == event->config_version, false, "config_version"},
	};
	size_t size = 0;
	bool any_signed = false;
	text[0] = '\0';
	for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
		if (members[i].same)
			continue;
		any_signed |= members[i].is_signed;
		size += (size_t)snprintf(text + size, DIFFERENCES_MAX - size, "%s%s", size ? ", " : "",
		                         members[i].name);
	}
	assert(size < DIFFERENCES_MAX);
	return any_signed;
}

void verify_receipt_event(struct run *run, const struct input *archive,
                          const struct event_facts *event, const struct sha256 *chain_hash)
{
	size_t count;
	struct loaded_receipt *found =
		find(run, event->channel_id, event->chain, event->sequence, &count);
	assert(archive == run->archive);
	for (size_t i = 0; i < count; i++) {
		struct said said = found[i].said;
		run->result->checked.receipts += !found[i].compared;
		found[i].compared = true;
		said.is_signed = list_differences(&found[i].receipt, event, chain_hash, said.differences);
		said.what = SAYS_OTHER_EVENT;
		if (!said.differences[0])
			continue;
		found[i].differs = true;
		if (!found[i].said.what || said.is_signed > found[i].said.is_signed)
			found[i].said = said;
	}
}

void verify_receipt_hash(struct run *run, const struct input *archive, int64_t sequence,
                         const struct sha256 *chain_hash)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	size_t count;
	struct loaded_receipt *found = find(run, facts->channel_id, facts->mode, sequence, &count);
	for (size_t i = 0; i < count; i++) {
		bool confirmed = sha256_equal(&found[i].receipt.chain_hash, chain_hash);
		found[i].confirmed |= confirmed;
		if (confirmed)
			continue;
		found[i].differs = true;
		if (!found[i].said.is_signed) {
			found[i].said.what = SAYS_OTHER_HASH;
			found[i].said.is_signed = true;
		}
	}
}

/* Records how the archive contradicts the receipt. */
static void report_difference(struct run *run, const struct loaded_receipt *item,
                              const struct input *archive, bool is_proof)
{
	const struct said *said = &item->said;
	const bool is_hash = said->what == SAYS_OTHER_HASH;
	const int64_t sequence = item->receipt.event.sequence;
	if (is_proof && said->is_signed)
		verify_add(run, VERIFY_WRONG, item->path, item->where, FINDING_RECEIPT_TWO_HISTORIES,
		           sequence, archive->path, is_hash ? "chain_hash" : said->differences);
	else if (is_hash)
		verify_add(run, VERIFY_UNCHECKED, item->path, item->where, FINDING_RECEIPT_CHAIN_DIFFERS,
		           sequence, archive->path);
	else
		verify_add(run, VERIFY_UNCHECKED, item->path, item->where, FINDING_RECEIPT_EVENT_DIFFERS,
		           sequence, archive->path, said->differences);
}

static bool is_earlier(int64_t time_us, int64_t than_us)
{
	return time_us != TIME_NONE && (than_us == TIME_NONE || time_us < than_us);
}

void verify_receipts_judge(struct run *run, const struct input *archive, bool is_sound)
{
	for (size_t i = 0; i < run->receipt_count; i++) {
		struct loaded_receipt *item = &run->receipts[i];
		const struct said *said = &item->said;
		bool is_said = said->what || said->sealed_us != TIME_NONE || said->passed_us != TIME_NONE;
		bool is_proof = is_said && is_sound && is_certified(run, item, archive);
		if (said->what)
			report_difference(run, item, archive, is_proof);
		if (is_proof && is_earlier(said->sealed_us, item->sealed_us))
			item->sealed_us = said->sealed_us;
		if (is_proof && said->passed_us != TIME_NONE) {
			item->passed_us = said->passed_us;
			item->passed_path = archive->path;
		}
		item->said = nothing;
	}
}

/* ---- promises ---- */

/* Returns whether the segment came too late for the receipt's promise. */
static bool breaks_promise(const struct loaded_receipt *item, int64_t gen_time_us)
{
	int64_t seal_by_us = item->receipt.signature->seal_by_us;
	return seal_by_us != TIME_NONE && gen_time_us > seal_by_us + VERIFY_CLOCK_TOLERANCE_US;
}

void verify_receipt_segment(struct run *run, const struct input *archive, int64_t first,
                            int64_t last, int64_t gen_time_us)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	const struct place end = {facts->channel_id, facts->mode, last};
	for (size_t i = find_place(run, facts->channel_id, facts->mode, first); i < run->receipt_count;
	     i++) {
		struct loaded_receipt *item = &run->receipts[i];
		if (verify_compare_places(place_of(item), end) > 0)
			return;
		if (is_earlier(gen_time_us, item->said.sealed_us))
			item->said.sealed_us = gen_time_us;
	}
}

/* The timestamps of an archive's segments ascend, so that the last one decides. */
void verify_receipt_end(struct run *run, const struct input *archive, int64_t last,
                        int64_t gen_time_us)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	const struct place end = {facts->channel_id, facts->mode, EVENT_SEQUENCE_MAX};
	for (size_t i = find_place(run, facts->channel_id, facts->mode, last + 1);
	     i < run->receipt_count; i++) {
		struct loaded_receipt *item = &run->receipts[i];
		if (verify_compare_places(place_of(item), end) > 0)
			return;
		if (item->is_signed && breaks_promise(item, gen_time_us))
			item->said.passed_us = gen_time_us;
	}
}

/* Returns whether the service has withheld the event, which is a finding. */
static bool report_promise(struct run *run, const struct loaded_receipt *item)
{
	char promised[TIME_TEXT_SIZE], found[TIME_TEXT_SIZE];
	int64_t sequence = item->receipt.event.sequence;
	bool is_sealed = item->sealed_us != TIME_NONE;
	if (is_sealed ? !breaks_promise(item, item->sealed_us) : item->passed_us == TIME_NONE)
		return false;
	time_format(item->receipt.signature->seal_by_us, promised);
	time_format(is_sealed ? item->sealed_us : item->passed_us, found);
	if (is_sealed)
		verify_add(run, VERIFY_WARNING, item->path, item->where, FINDING_RECEIPT_LATE, sequence,
		           promised, found);
	else
		verify_add(run, VERIFY_WRONG, item->path, item->where, FINDING_RECEIPT_WITHHELD, sequence,
		           promised, item->passed_path, found);
	return !is_sealed;
}

/* Returns whether a signed receipt of a live event promises nothing by which a withheld event can
 * be found. Test events are not sealed. */
static bool has_no_promise(const struct loaded_receipt *item)
{
	const struct event_facts *event = &item->receipt.event;
	if (!item->is_signed || event->chain != MODE_LIVE)
		return false;
	int64_t seal_by_us = item->receipt.signature->seal_by_us;
	return seal_by_us == TIME_NONE || seal_by_us - event->received_at_us > PROMISE_MAX_US;
}

/* Counts these receipts, and names the first one. */
static void judge_promises(struct run *run)
{
	const struct loaded_receipt *first = NULL;
	size_t count = 0;
	for (size_t i = 0; i < run->receipt_count; i++) {
		if (!has_no_promise(&run->receipts[i]))
			continue;
		first = first ? first : &run->receipts[i];
		count++;
	}
	if (first)
		verify_add(run, VERIFY_WARNING, first->path, first->where, FINDING_RECEIPT_NO_PROMISE,
		           count, first->receipt.event.sequence, first->receipt.event.channel_id);
}

/* ---- receipts by themselves ---- */

/* Appends the name of a member if it differs. */
static void name_difference(bool same, const char *name, char text[DIFFERENCES_MAX])
{
	size_t size = strlen(text);
	if (!same)
		snprintf(text + size, DIFFERENCES_MAX - size, "%s%s", size ? ", " : "", name);
}

/* Writes the signed members by which two receipts of one chain, the first of the same or an earlier
 * event, cannot both be true. */
static void list_contradictions(const struct receipt *a, const struct receipt *b,
                                char text[DIFFERENCES_MAX])
{
	const struct declaration *one = &a->event.declaration, *two = &b->event.declaration;
	bool same_algorithm = one->hash_algorithm == two->hash_algorithm;
	text[0] = '\0';
	if (a->event.sequence != b->event.sequence) {
		name_difference(a->event.received_at_us <= b->event.received_at_us, "received_at", text);
		return;
	}
	name_difference(sha256_equal(&a->chain_hash, &b->chain_hash), "chain_hash", text);
	name_difference(a->event.received_at_us == b->event.received_at_us, "received_at", text);
	name_difference(same_algorithm &&
	                    memcmp(one->hash, two->hash, hash_algorithm_size(one->hash_algorithm)) == 0,
	                "hash", text);
	name_difference(same_algorithm, "hash_alg", text);
}

static void compare_receipts(struct run *run, const struct loaded_receipt *earlier,
                             const struct loaded_receipt *item)
{
	char differences[DIFFERENCES_MAX], other[FINDING_TEXT_SIZE / 2];
	list_contradictions(&earlier->receipt, &item->receipt, differences);
	if (!differences[0])
		return;
	snprintf(other, sizeof other, "%s%s%s", earlier->path, earlier->where[0] ? " " : "",
	         earlier->where);
	verify_add(run, VERIFY_WRONG, item->path, item->where, FINDING_RECEIPT_CONTRADICTION,
	           item->receipt.event.sequence, other, earlier->receipt.event.sequence, differences);
}

static void judge_origin(struct run *run, const struct loaded_receipt *item,
                         const struct certificate_facts *signer)
{
	const char *origin = item->receipt.signature->origin;
	const char *other = verify_receipt_keys_other_origin(run, signer, origin);
	if (other)
		verify_add(run, VERIFY_WARNING, item->path, item->where, FINDING_RECEIPT_ORIGIN,
		           item->receipt.event.sequence, origin, other);
}

/* Says once for each run of receipts with one key that no trusted list certifies it, although there
 * is one: a service could otherwise sign receipts that never count. */
static void judge_key(struct run *run, const struct loaded_receipt *item, const char **judged)
{
	if (!run->receipt_keys || !item->is_signed || item->differs ||
	    (!item->compared && !item->confirmed) || (*judged && strcmp(*judged, item->key) == 0))
		return;
	verify_add(run, VERIFY_WARNING, item->path, item->where, FINDING_RECEIPT_NOT_CERTIFIED,
	           item->receipt.event.sequence, item->key);
	*judged = item->key;
}

/* Compares the receipts of each chain with each other, those that lists of one service certify: of
 * the same event, and by their times, which never descend. */
static void compare_all_receipts(struct run *run)
{
	const struct loaded_receipt *same = NULL, *latest = NULL;
	const struct certificate_facts *service = NULL;
	const char *judged = NULL;
	for (size_t i = 0; i < run->receipt_count; i++) {
		const struct loaded_receipt *item = &run->receipts[i];
		const struct event_facts *event = &item->receipt.event;
		const struct certificate_facts *signer =
			item->is_signed ? verify_receipt_key_signer(run, item->key, event->received_at_us)
							: NULL;
		if (!signer) {
			judge_key(run, item, &judged);
			continue;
		}
		judge_origin(run, item, signer);
		bool same_chain = latest && latest->receipt.event.chain == event->chain &&
		                  strcmp(latest->receipt.event.channel_id, event->channel_id) == 0;
		if (!same_chain) {
			same = latest = item;
			service = signer;
			continue;
		}
		if (!verify_receipt_key_is_certified(run, &service->sha256, service->subject, item->key,
		                                     event->received_at_us))
			continue;
		if (same->receipt.event.sequence == event->sequence)
			compare_receipts(run, same, item);
		else
			same = item;
		if (latest->receipt.event.sequence < event->sequence)
			compare_receipts(run, latest, item);
		if (event->received_at_us >= latest->receipt.event.received_at_us)
			latest = item;
	}
}

void verify_receipts_conclude(struct run *run)
{
	compare_all_receipts(run);
	judge_promises(run);
	for (size_t i = 0; i < run->receipt_count; i++) {
		const struct loaded_receipt *item = &run->receipts[i];
		const struct event_facts *event = &item->receipt.event;
		if (item->receipt.signature && !item->is_signed && !item->differs)
			verify_add(run, VERIFY_UNCHECKED, item->path, item->where, FINDING_RECEIPT_SIGNATURE);
		if (report_promise(run, item) || item->compared)
			continue;
		if (item->confirmed)
			verify_add(run, VERIFY_UNCHECKED, item->path, item->where, FINDING_RECEIPT_HASH_ALONE,
			           event->sequence, event->channel_id, mode_text(event->chain));
		else
			verify_add(run, VERIFY_UNCHECKED, item->path, item->where,
			           FINDING_RECEIPT_EVENT_NOT_GIVEN, event->sequence, event->channel_id,
			           mode_text(event->chain));
	}
}
