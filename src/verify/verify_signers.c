/* Checks signers against lists of signers: the given ones (--signers), and the one that an archive
 * contains.
 *
 * A thief of a key can sign a list, too. So a list is used only under these conditions. The list
 * and its timestamp chain to the trusted roots. Neither the list itself nor another used list says
 * that its signing key ended before its timestamp. All given lists are of one service. Newer lists
 * repeat all statements of older ones. A list that violates a condition is ignored, and the verdict
 * stays open. */
#include <stdlib.h>

#include "archive/signer_list.h"
#include "base/file.h"
#include "verify/verify_check.h"

#define LISTS_ARENA_MAX ((size_t)512 << 20)
#define LIST_ARENA_MAX ((size_t)64 << 20)
/* The service signs its list daily. */
#define LIST_AGE_MAX_US (2 * US_PER_DAY)

struct read_list {
	const char *path;
	struct sha256 digest; /* of the signed list */
	struct signer_list list;
	struct cms_facts facts;
	bool is_left_out;
	bool is_contradicted; /* the reason why it is ignored */
};
struct signer_lists {
	struct arena arena;
	struct read_list *items; /* sorted by timestamp, the oldest first */
	size_t count;
	const struct read_list *newest; /* the newest list in use; NULL: none */
};

bool verify_is_signer_required(const struct run *run, const struct sha256 *sha256)
{
	for (size_t i = 0; run->options && i < run->options->signer_count; i++)
		if (sha256_equal(&run->options->signers[i], sha256))
			return true;
	return false;
}

/* ---- one list ---- */

static const char *use_text(enum signer_use use)
{
	return use == SIGNER_USE_TOO_EARLY ? "was not yet in force" : "was no longer in force";
}

/* Checks a list by its own statements. */
static int check_itself(const struct read_list *read, struct error *error)
{
	const struct signer_list *list = &read->list;
	const struct cms_facts *facts = &read->facts;
	if (!facts->has_timestamp)
		return error_cause(error, ERR_INVALID_EVIDENCE, "its signature has no timestamp");
	int64_t later_us = facts->timestamp.gen_time_us - list->issued_at_us;
	if (later_us < -VERIFY_CLOCK_TOLERANCE_US || later_us > VERIFY_DELAY_MAX_US)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "its issued_at differs from the timestamp of its signature");
	const struct signer_list_item *own = signer_list_find(list, &facts->signer.sha256);
	if (!own)
		return error_cause(error, ERR_INVALID_EVIDENCE,
		                   "the certificate of its signer, %s, is not on the list",
		                   facts->signer.name);
	enum signer_use use = signer_list_judge(own, facts->timestamp.gen_time_us);
	return use == SIGNER_USE_IN_FORCE
	           ? OK
	           : error_cause(error, ERR_INVALID_EVIDENCE,
	                         "according to the list itself, the key that signed it %s",
	                         use_text(use));
}

static int read_list(struct run *run, struct arena *arena, struct slice cms,
                     struct read_list *ret_read, struct error *error)
{
	BUF_AUTO struct buf text;
	struct read_list read = {.path = ret_read->path, .digest = sha256_of(cms.data, cms.size)};
	buf_init(&text, SIGNER_LIST_TEXT_MAX + 1);
	int result = cms_verify_attached(cms, &run->roots, &read.facts, &text, error);
	const char *copy = !result ? arena_copy(arena, text.data, text.size) : NULL;
	if (!result && !copy)
		result = ERR_NO_MEMORY;
	if (!result)
		result = signer_list_read(arena, slice_make(copy, text.size), &read.list, error);
	if (!result)
		result = check_itself(&read, error);
	if (!result)
		*ret_read = read;
	return result;
}

/* ---- given lists ---- */

#define leave_out(run, read, finding)                                                              \
	((read)->is_left_out = true, verify_add(run, VERIFY_UNCHECKED, (read)->path, "", finding))

static int load_one(struct run *run, struct read_list *read)
{
	BUF_AUTO struct buf cms;
	struct error error = {0};
	buf_init(&cms, CMS_LT_SIZE_MAX);
	int result = file_read_whole(read->path, &cms, &error);
	if (!result)
		result = read_list(run, &run->signer_lists->arena, buf_slice(&cms), read, &error);
	if (result == ERR_NO_MEMORY)
		return result;
	if (result) {
		read->is_left_out = true;
		verify_add_cause(run, VERIFY_UNCHECKED, read->path, "", FINDING_SIGNERS_NOT_USABLE,
		                 error_reason(&error, result));
		return OK;
	}
	const struct cms_facts *facts = &read->facts;
	if (!facts->trusted && !verify_is_signer_required(run, &facts->signer.sha256))
		leave_out(run, read, FINDING_SIGNERS_UNTRUSTED);
	else if (!facts->timestamp.trusted)
		leave_out(run, read, FINDING_SIGNERS_TIME_UNTRUSTED);
	return OK;
}

static int compare_times(const void *a, const void *b)
{
	int64_t x = ((const struct read_list *)a)->facts.timestamp.gen_time_us;
	int64_t y = ((const struct read_list *)b)->facts.timestamp.gen_time_us;
	return (x > y) - (x < y);
}

/* Returns whether, according to `by`, the key of `of` was no longer in force when it signed `of`.
 */
static bool is_key_ended(const struct read_list *of, const struct read_list *by)
{
	const struct signer_list_item *item = signer_list_find(&by->list, &of->facts.signer.sha256);
	return item && signer_list_judge(item, of->facts.timestamp.gen_time_us) == SIGNER_USE_ENDED;
}

/* Compares a list with older ones, which take precedence, because a thief cannot backdate a
 * timestamped list. */
static void compare_with_older(struct run *run, struct read_list *items, size_t count)
{
	struct read_list *newer = &items[count];
	bool is_ended = false;
	for (size_t i = 0; i < count; i++)
		is_ended |= !items[i].is_left_out && is_key_ended(newer, &items[i]);
	for (size_t i = 0; i < count && !is_ended; i++) {
		if (items[i].is_left_out)
			continue;
		if (is_key_ended(&items[i], newer))
			leave_out(run, &items[i], FINDING_SIGNERS_KEY_ENDED);
		else if (!signer_list_extends(&newer->list, &items[i].list)) {
			items[i].is_contradicted = true;
			leave_out(run, &items[i], FINDING_SIGNERS_CONTRADICTED);
		}
	}
	if (is_ended)
		leave_out(run, newer, FINDING_SIGNERS_KEY_ENDED);
}

/* Returns whether two certificates are of one service: the same certificate, the same organization,
 * or both required by the caller. */
static bool is_of_one_service(const struct run *run, const struct certificate_facts *a,
                              const struct certificate_facts *b)
{
	return sha256_equal(&a->sha256, &b->sha256) ||
	       trust_same_organization(a->subject, b->subject) ||
	       (verify_is_signer_required(run, &a->sha256) &&
	        verify_is_signer_required(run, &b->sha256));
}

/* Ignores lists of several services. Anyone with a certificate of the same authority can sign a
 * newer list that repeats the service's list and adds to it. Nothing shows which of the services is
 * meant. */
static void ignore_several_services(struct run *run, struct read_list *items, size_t count)
{
	bool is_one = true;
	for (size_t i = 1; i < count && is_one; i++)
		is_one = is_of_one_service(run, &items[0].facts.signer, &items[i].facts.signer);
	for (size_t i = 0; i < count && !is_one; i++)
		leave_out(run, &items[i], FINDING_SIGNERS_SEVERAL_SERVICES);
}

static int record_newest(struct run *run)
{
	const struct read_list *newest = run->signer_lists->newest;
	if (!newest)
		return OK;
	struct verify_signer_list *reported = arena_alloc(&run->result->arena, sizeof *reported);
	if (!reported)
		return ERR_NO_MEMORY;
	*reported = (struct verify_signer_list){
		.path = arena_text(&run->result->arena, newest->path),
		.service = arena_text(&run->result->arena, newest->list.service_name),
		.signer = newest->facts.signer.sha256,
		.issued_at_us = newest->list.issued_at_us,
		.signed_at_us = newest->facts.timestamp.gen_time_us,
	};
	if (!reported->path || !reported->service)
		return ERR_NO_MEMORY;
	verify_make_visible(reported->path);
	verify_make_visible(reported->service);
	run->result->signer_list = reported;
	return OK;
}

static int keep_receipt_keys(struct run *run, const struct read_list *read)
{
	return run->receipt_count > 0
	           ? verify_receipt_keys_add(run, read->path, &read->digest, &read->list, &read->facts)
	           : OK;
}

int verify_signers_load(struct run *run)
{
	size_t count = run->options ? run->options->signer_list_count : 0;
	if (count == 0)
		return OK;
	struct signer_lists *lists = run->signer_lists = calloc(1, sizeof *lists);
	if (!lists)
		return ERR_NO_MEMORY;
	arena_init(&lists->arena, LISTS_ARENA_MAX);
	lists->items = calloc(count, sizeof *lists->items);
	if (!lists->items)
		return ERR_NO_MEMORY;
	int result = OK;
	for (size_t i = 0; i < count && !result; i++) {
		struct read_list *read = &lists->items[lists->count];
		read->path = run->options->signer_lists[i];
		result = load_one(run, read);
		if (read->is_left_out)
			*read = (struct read_list){0};
		else
			lists->count++;
	}
	if (!result)
		qsort(lists->items, lists->count, sizeof *lists->items, compare_times);
	if (!result)
		ignore_several_services(run, lists->items, lists->count);
	for (size_t i = 0; i < lists->count && !result; i++)
		compare_with_older(run, lists->items, i);
	for (size_t i = 0; i < lists->count; i++)
		if (!lists->items[i].is_left_out)
			lists->newest = &lists->items[i];
	for (size_t i = 0; i < lists->count && !result; i++)
		if (!lists->items[i].is_left_out || lists->items[i].is_contradicted)
			result = keep_receipt_keys(run, &lists->items[i]);
	return result ? result : record_newest(run);
}

void verify_signers_free(struct run *run)
{
	if (!run->signer_lists)
		return;
	arena_free(&run->signer_lists->arena);
	free(run->signer_lists->items);
	free(run->signer_lists);
}

/* ---- signers ---- */

/* Returns whether a list applies to a signer. Anyone with a certificate of the same authority could
 * list the signer's certificate. So the list must be signed with that certificate, by the same
 * organization, or by a required signer. */
static bool applies_to(const struct run *run, const struct read_list *read,
                       const struct certificate_facts *signer)
{
	const struct certificate_facts *lister = &read->facts.signer;
	return sha256_equal(&lister->sha256, &signer->sha256) ||
	       verify_is_signer_required(run, &lister->sha256) ||
	       trust_same_organization(lister->subject, signer->subject);
}

static void judge_age(struct run *run, const struct read_list *read, const char *path,
                      const char *where, int64_t signed_us)
{
	char listed[TIME_TEXT_SIZE];
	int64_t older_us = signed_us - read->facts.timestamp.gen_time_us;
	if (older_us <= 0)
		return;
	time_format(read->facts.timestamp.gen_time_us, listed);
	verify_add(run, older_us > LIST_AGE_MAX_US ? VERIFY_UNCHECKED : VERIFY_WARNING, path, where,
	           FINDING_SIGNERS_OLDER, read->path, listed);
}

static void judge_use(struct run *run, const struct signer_list_item *item, const char *path,
                      const char *where, int64_t signed_us)
{
	char from[TIME_TEXT_SIZE], until[TIME_TEXT_SIZE], signed_at[TIME_TEXT_SIZE];
	enum signer_use use = signer_list_judge(item, signed_us);
	time_format(item->used_from_us, from);
	if (item->used_until_us != TIME_NONE)
		time_format(item->used_until_us, until);
	if (signed_us != TIME_NONE)
		time_format(signed_us, signed_at);
	if (use == SIGNER_USE_ENDED)
		verify_add(run, VERIFY_WRONG, path, where, FINDING_SIGNERS_ENDED, signed_at, until,
		           item->reason);
	else if (use == SIGNER_USE_TOO_EARLY)
		verify_add(run, VERIFY_WRONG, path, where, FINDING_SIGNERS_NOT_YET, signed_at, from);
	else if (use == SIGNER_USE_UNDATED)
		verify_add(run, VERIFY_UNCHECKED, path, where, FINDING_SIGNERS_ENDED_UNTIMED, until,
		           item->reason);
}

/* Returns whether the certificate is on a list that a newer one contradicts. One of the two lists
 * is false, and it is unknown which one. */
static bool is_disputed(const struct run *run, const struct sha256 *signer)
{
	const struct signer_lists *lists = run->signer_lists;
	for (size_t i = 0; i < lists->count; i++)
		if (lists->items[i].is_contradicted && signer_list_find(&lists->items[i].list, signer))
			return true;
	return false;
}

/* Judges a signer that is not listed. A key that came into force after the list was signed is not
 * on it. */
static void judge_unlisted(struct run *run, const struct read_list *read, const char *path,
                           const char *where, const struct certificate_facts *signer,
                           int64_t signed_us)
{
	char hex[2 * SHA256_SIZE + 1], listed[TIME_TEXT_SIZE];
	hex_encode(signer->sha256.bytes, SHA256_SIZE, hex);
	time_format(read->facts.timestamp.gen_time_us, listed);
	if (signed_us != TIME_NONE && signed_us > read->facts.timestamp.gen_time_us)
		verify_add(run, VERIFY_UNCHECKED, path, where, FINDING_SIGNERS_NOT_LISTED_YET, signer->name,
		           hex, read->list.service_name, listed);
	else if (!is_disputed(run, &signer->sha256))
		verify_add(run, VERIFY_WRONG, path, where, FINDING_SIGNERS_NOT_LISTED, signer->name, hex,
		           read->list.service_name);
}

void verify_signers_judge(struct run *run, const char *path, const char *where,
                          const struct cms_facts *facts)
{
	const struct read_list *read = run->signer_lists ? run->signer_lists->newest : NULL;
	if (!read)
		return;
	const struct signer_list_item *item = signer_list_find(&read->list, &facts->signer.sha256);
	int64_t signed_us = facts->has_timestamp ? facts->timestamp.gen_time_us : TIME_NONE;
	if (!item) {
		judge_unlisted(run, read, path, where, &facts->signer, signed_us);
		return;
	}
	if (!applies_to(run, read, &facts->signer))
		verify_add(run, VERIFY_UNCHECKED, path, where, FINDING_SIGNERS_OTHER_SERVICE,
		           facts->signer.name, read->facts.signer.name);
	judge_use(run, item, path, where, signed_us);
	if (item->used_until_us == TIME_NONE && signed_us != TIME_NONE)
		judge_age(run, read, path, where, signed_us);
}

/* ---- the list in an archive ---- */

static void compare_with_given(struct run *run, const struct read_list *inside)
{
	const struct read_list *given = run->signer_lists ? run->signer_lists->newest : NULL;
	if (!given)
		return;
	bool is_newer = inside->facts.timestamp.gen_time_us > given->facts.timestamp.gen_time_us;
	bool agree = is_newer ? signer_list_extends(&inside->list, &given->list)
	                      : signer_list_extends(&given->list, &inside->list);
	if (!agree)
		verify_add(run, VERIFY_UNCHECKED, inside->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_DIFFER, given->path);
}

static bool is_trusted(const struct run *run, const struct cms_facts *facts)
{
	return facts->timestamp.trusted &&
	       (facts->trusted || verify_is_signer_required(run, &facts->signer.sha256));
}

/* Returns whether the list is of a trusted service, and names the archive's signer. */
static bool judge_inside(struct run *run, const struct input *archive,
                         const struct read_list *inside)
{
	const struct cms_facts *facts = &inside->facts;
	bool dated = archive->signed_at_us != TIME_NONE;
	const struct signer_list_item *item = signer_list_find(&inside->list, &archive->signer);
	if (!item)
		verify_add(run, VERIFY_WRONG, archive->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_ARCHIVE_NOT_LISTED);
	else if (signer_list_judge(item, archive->signed_at_us) == SIGNER_USE_TOO_EARLY)
		verify_add(run, VERIFY_WRONG, archive->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_ARCHIVE_NOT_YET);
	else if (signer_list_judge(item, archive->signed_at_us) != SIGNER_USE_IN_FORCE)
		verify_add(run, VERIFY_WRONG, archive->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_ARCHIVE_ENDED);
	if (dated && facts->timestamp.gen_time_us > archive->signed_at_us + VERIFY_CLOCK_TOLERANCE_US)
		verify_add(run, VERIFY_WRONG, archive->path, ARCHIVE_SIGNERS_NAME, FINDING_SIGNERS_LATER);
	bool trusted = is_trusted(run, facts);
	if (trusted)
		compare_with_given(run, inside);
	else if (run->roots.signers.data && run->roots.timestamps.data)
		verify_add(run, VERIFY_WARNING, archive->path, ARCHIVE_SIGNERS_NAME,
		           FINDING_SIGNERS_INSIDE_UNTRUSTED);
	return trusted && item;
}

/* The signer of the archive vouches for the list in it, and so for the keys of the log. A list of a
 * stranger vouches for nothing: it could name the keys of another service. */
static int keep_log_keys(struct run *run, struct input *archive, const struct signer_list *list)
{
	size_t count = list->keys[SIGNER_LIST_LOG].count;
	struct signer_list_key *keys = arena_alloc(&run->arena, (count + 1) * sizeof *keys);
	if (!keys)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < count; i++) {
		keys[i] = list->keys[SIGNER_LIST_LOG].items[i];
		keys[i].key = arena_text(&run->arena, keys[i].key);
		if (!keys[i].key)
			return ERR_NO_MEMORY;
	}
	archive->log_keys.items = keys;
	archive->log_keys.count = count;
	return OK;
}

int verify_signers_check_embedded(struct run *run, struct input *archive, struct slice cms,
                                  struct error *error)
{
	ARENA_AUTO struct arena arena;
	struct read_list inside = {.path = archive->path};
	arena_init(&arena, LIST_ARENA_MAX);
	int result = read_list(run, &arena, cms, &inside, error);
	if (result || !archive->is_signed)
		return result;
	return judge_inside(run, archive, &inside) ? keep_log_keys(run, archive, &inside.list) : OK;
}

/* ---- the keys of receipts ---- */

/* The check of the archive reports what is wrong with its list. */
static int collect_from(struct run *run, const struct input *archive)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf cms;
	struct read_list inside = {.path = archive->path};
	struct error ignored = {0};
	struct zip_reader *zip;
	arena_init(&arena, LIST_ARENA_MAX);
	buf_init(&cms, CMS_LT_SIZE_MAX);
	int result = verify_open_zip(archive, &zip, &ignored);
	if (result)
		return result == ERR_NO_MEMORY ? result : OK;
	const struct zip_entry *entry = zip_find(zip, ARCHIVE_SIGNERS_NAME);
	if (entry)
		result = zip_entry_load(zip, entry, CMS_LT_SIZE_MAX - 1, &cms, &ignored);
	zip_reader_free(zip);
	if (entry && !result)
		result = read_list(run, &arena, buf_slice(&cms), &inside, &ignored);
	if (entry && !result && is_trusted(run, &inside.facts))
		result = keep_receipt_keys(run, &inside);
	return result == ERR_NO_MEMORY ? result : OK;
}

int verify_signers_collect(struct run *run)
{
	int result = OK;
	for (size_t i = 0; i < run->input_count && run->receipt_count > 0 && !result; i++)
		if (run->inputs[i].kind == INPUT_ARCHIVE && !run->inputs[i].unread)
			result = collect_from(run, &run->inputs[i]);
	return result;
}
