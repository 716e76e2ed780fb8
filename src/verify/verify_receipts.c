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
#include "base/file.h"
#include "verify/verify_check.h"

#define DIFFERENCES_MAX 160

struct loaded_receipt {
	struct receipt receipt;
	const char *path;
	char where[32];
	bool compared;  /* compared with an event */
	bool confirmed; /* an archive contains its chain hash */
};

static int compare_places(const void *a, const void *b)
{
	const struct event_facts *x = &((const struct loaded_receipt *)a)->receipt.event;
	const struct event_facts *y = &((const struct loaded_receipt *)b)->receipt.event;
	return verify_compare_places((struct place){x->channel_id, x->chain, x->sequence},
	                             (struct place){y->channel_id, y->chain, y->sequence});
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
	for (size_t i = 0; i < count; i++) {
		struct loaded_receipt *item = &items[run->receipt_count++];
		*item = (struct loaded_receipt){.receipt = receipts[i], .path = path};
		if (count > 1)
			snprintf(item->where, sizeof item->where, "receipt %zu", i + 1);
	}
	return 0;
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

void verify_receipts_free(struct run *run)
{
	free(run->receipts);
	arena_free(&run->receipt_arena);
}

/* ---- comparing ---- */

/* Returns the first receipt of an event and the number of its receipts. */
static struct loaded_receipt *find(struct run *run, const char *channel_id, enum mode chain,
                                   int64_t sequence, size_t *ret_count)
{
	struct loaded_receipt wanted = {
		.receipt.event = {.channel_id = channel_id, .chain = chain, .sequence = sequence}};
	size_t low = 0, high = run->receipt_count, count = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_places(&run->receipts[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + count < run->receipt_count &&
	       compare_places(&run->receipts[low + count], &wanted) == 0)
		count++;
	*ret_count = count;
	return count ? &run->receipts[low] : NULL;
}

/* Writes the names of the members that differ, separated by ", ". */
static void list_differences(const struct receipt *receipt, const struct event_facts *event,
                             const struct sha256 *chain_hash, char text[DIFFERENCES_MAX])
{
	const struct event_facts *stated = &receipt->event;
	bool same_hash = stated->declaration.hash_algorithm == event->declaration.hash_algorithm &&
	                 memcmp(stated->declaration.hash, event->declaration.hash,
	                        hash_algorithm_size(event->declaration.hash_algorithm)) == 0;
	const struct {
		bool same;
		const char *name;
	} members[] = {
		{sha256_equal(&receipt->chain_hash, chain_hash), "chain_hash"},
		{slice_equal(stated->event_id, event->event_id), "event_id"},
		{slice_equal(stated->declaration.client_ref, event->declaration.client_ref), "client_ref"},
		{stated->received_at_us == event->received_at_us, "received_at"},
		{stated->declaration.occurred_at_us == event->declaration.occurred_at_us, "occurred_at"},
		{same_hash, "hash"},
		{stated->declaration.hash_algorithm == event->declaration.hash_algorithm, "hash_alg"},
		{stated->declaration.modality == event->declaration.modality, "modality"},
		{stated->config_version == event->config_version, "config_version"},
	};
	size_t size = 0;
	text[0] = '\0';
	for (size_t i = 0; i < sizeof members / sizeof *members; i++)
		if (!members[i].same)
			size += (size_t)snprintf(text + size, DIFFERENCES_MAX - size, "%s%s", size ? ", " : "",
			                         members[i].name);
	assert(size < DIFFERENCES_MAX);
}

void verify_receipt_event(struct run *run, const struct input *archive,
                          const struct event_facts *event, const struct sha256 *chain_hash)
{
	size_t count;
	struct loaded_receipt *found =
		find(run, event->channel_id, event->chain, event->sequence, &count);
	for (size_t i = 0; i < count; i++) {
		char differences[DIFFERENCES_MAX];
		run->result->checked.receipts += !found[i].compared;
		found[i].compared = true;
		list_differences(&found[i].receipt, event, chain_hash, differences);
		if (differences[0])
			verify_add(run, VERIFY_UNCHECKED, found[i].path, found[i].where,
			           FINDING_RECEIPT_EVENT_DIFFERS, event->sequence, archive->path, differences);
	}
}

void verify_receipt_hash(struct run *run, const struct input *archive, int64_t sequence,
                         const struct sha256 *chain_hash)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	size_t count;
	struct loaded_receipt *found = find(run, facts->channel_id, facts->mode, sequence, &count);
	for (size_t i = 0; i < count; i++) {
		if (sha256_equal(&found[i].receipt.chain_hash, chain_hash))
			found[i].confirmed = true;
		else
			verify_add(run, VERIFY_UNCHECKED, found[i].path, found[i].where,
			           FINDING_RECEIPT_CHAIN_DIFFERS, sequence, archive->path);
	}
}

void verify_receipts_conclude(struct run *run)
{
	for (size_t i = 0; i < run->receipt_count; i++) {
		const struct loaded_receipt *item = &run->receipts[i];
		const struct event_facts *event = &item->receipt.event;
		if (item->compared)
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
