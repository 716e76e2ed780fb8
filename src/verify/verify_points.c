/* Comparison of several archives of one channel at common positions: events, seals, documents. */
#include <assert.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>

#include "verify/verify_check.h"

#define POINTS_PER_ARCHIVE 4
#define POINTS_PER_BRIDGE 2
#define OUTLINE_ARENA_MAX ((size_t)256 << 20)
#define SEGMENT_ARENA_MAX ((size_t)1 << 20)

int verify_compare_places(struct place a, struct place b)
{
	int channel = strcmp(a.channel_id, b.channel_id);
	if (channel)
		return channel;
	if (a.chain != b.chain)
		return a.chain < b.chain ? -1 : 1;
	return (a.sequence > b.sequence) - (a.sequence < b.sequence);
}

static int compare_points(const void *a, const void *b)
{
	const struct point *x = a, *y = b;
	return verify_compare_places((struct place){x->channel_id, x->chain, x->sequence},
	                             (struct place){y->channel_id, y->chain, y->sequence});
}

/* The source of hashes of a chain. */
struct source {
	const char *path;
	const char *channel_id; /* NULL: an archive that could not be read */
	enum mode chain;
	bool is_bridge;
};

static struct source source_of(const struct input *archive)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	return (struct source){archive->path, archive->described ? facts->channel_id : NULL,
	                       facts->mode, false};
}

/* Returns the first point of the source's chain at or after `sequence`; NULL: none. */
static struct point *find_from(const struct run *run, const struct source *source, int64_t sequence)
{
	struct point wanted = {
		.channel_id = source->channel_id, .chain = source->chain, .sequence = sequence};
	size_t low = 0, high = run->point_count;
	if (!source->channel_id)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_points(&run->points[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == run->point_count)
		return NULL;
	struct point *found = &run->points[low];
	wanted.sequence = found->sequence;
	return compare_points(found, &wanted) == 0 ? found : NULL;
}

static struct point *find_at(const struct run *run, const struct source *source, int64_t sequence)
{
	struct point *point = find_from(run, source, sequence);
	return point && point->sequence == sequence ? point : NULL;
}

static void compare_event(struct run *run, const struct source *source, int64_t sequence,
                          const struct sha256 *chain_hash, int64_t received_at_us)
{
	struct point *point = find_at(run, source, sequence);
	if (!point)
		return;
	if (received_at_us != TIME_NONE)
		point->received_at_us = received_at_us;
	if (!point->path) {
		point->path = source->path;
		point->chain_hash = *chain_hash;
	} else if (!sha256_equal(&point->chain_hash, chain_hash)) {
		if (source->is_bridge)
			verify_add(run, VERIFY_WRONG, source->path, "", FINDING_BRIDGE_DIFFERS, point->path,
			           sequence);
		else
			verify_add(run, VERIFY_WRONG, source->path, "", FINDING_HISTORY_DIFFERS, point->path,
			           sequence);
		run->archive_differs++;
	}
}

static void compare_seals(struct run *run, const struct source *source, struct point *point,
                          const struct sha256 *seal_hash)
{
	if (!point->seal_path) {
		point->seal_path = source->path;
		point->seal_hash = *seal_hash;
	} else if (!sha256_equal(&point->seal_hash, seal_hash)) {
		if (source->is_bridge)
			verify_add(run, VERIFY_WRONG, source->path, "", FINDING_BRIDGE_DIFFERS,
			           point->seal_path, point->sequence);
		else
			verify_add(run, VERIFY_WRONG, source->path, "", FINDING_HISTORY_SEALS, point->seal_path,
			           point->sequence);
		run->archive_differs++;
	}
}

static void compare_tokens(struct run *run, const struct source *source, struct point *point,
                           const struct sha256 *token_hash)
{
	if (!point->token_path) {
		point->token_path = source->path;
		point->token_hash = *token_hash;
	} else if (!sha256_equal(&point->token_hash, token_hash)) {
		verify_add(run, VERIFY_WRONG, source->path, "", FINDING_HISTORY_TOKENS, point->token_path,
		           point->sequence);
		run->archive_differs++;
	}
}

static void compare_seal(struct run *run, const struct source *source, int64_t first, int64_t last,
                         const struct sha256 *seal_hash, const struct sha256 *token_hash)
{
	const struct point *end = run->points + run->point_count;
	for (struct point *point = find_from(run, source, first);
	     point && point < end && find_at(run, source, point->sequence) == point &&
	     point->sequence <= last;
	     point++) {
		compare_seals(run, source, point, seal_hash);
		if (token_hash)
			compare_tokens(run, source, point, token_hash);
	}
}

void verify_point_event(struct run *run, const struct input *archive, int64_t sequence,
                        const struct sha256 *chain_hash, int64_t received_at_us)
{
	const struct source source = source_of(archive);
	compare_event(run, &source, sequence, chain_hash, received_at_us);
}

void verify_point_seal(struct run *run, const struct input *archive, int64_t first, int64_t last,
                       const struct sha256 *seal_hash, const struct sha256 *token_hash)
{
	const struct source source = source_of(archive);
	compare_seal(run, &source, first, last, seal_hash, token_hash);
}

void verify_point_bridge(struct run *run, const struct bridge *bridge,
                         const struct seal_document *seal, const struct sha256 *seal_hash)
{
	const struct source source = {bridge->path, seal->channel_id, MODE_LIVE, true};
	const int64_t before = seal->first_sequence - 1;
	compare_event(run, &source, before, &seal->chain_hash_before, TIME_NONE);
	compare_event(run, &source, seal->last_sequence, &seal->chain_hash_last, TIME_NONE);
	if (seal->previous_seal_hash)
		compare_seal(run, &source, before, before, seal->previous_seal_hash, NULL);
	compare_seal(run, &source, seal->first_sequence, seal->last_sequence, seal_hash, NULL);
}

/* ---- unique documents of a channel ---- */

struct sealed {
	const char *channel_id;
	enum mode chain; /* for a genesis document; configurations belong to the channel */
	int64_t version;
	struct sha256 hash;
	const char *path;
};

static int compare_sealed(const void *a, const void *b)
{
	const struct sealed *x = a, *y = b;
	int channel = strcmp(x->channel_id, y->channel_id);
	if (channel)
		return channel;
	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	return x->version == 0 && x->chain != y->chain ? (x->chain < y->chain ? -1 : 1) : 0;
}

int verify_point_document(struct run *run, const struct input *archive, int64_t version,
                          const struct sha256 *hash)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	struct sealed *item = arena_alloc(&run->arena, sizeof *item);
	if (!item)
		return ERR_NO_MEMORY;
	*item = (struct sealed){facts->channel_id, facts->mode, version, *hash, archive->path};
	struct sealed **found = tsearch(item, &run->sealed, compare_sealed);
	if (!found)
		return ERR_NO_MEMORY;
	if (sha256_equal(&(*found)->hash, hash))
		return 0;
	char name[ZIP_NAME_MAX + 1] = ARCHIVE_GENESIS_NAME;
	if (version > 0)
		archive_config_path(version, name);
	verify_add(run, VERIFY_WRONG, archive->path, name, FINDING_HISTORY_DOCUMENT, (*found)->path);
	run->archive_differs++;
	return 0;
}

static void keep(void *item)
{
	(void)item; /* owned by the arena */
}

void verify_points_free(struct run *run)
{
	tdestroy(run->sealed, keep);
	free(run->points);
}

/* ---- planning ---- */

struct outline {
	const char *channel_id;
	enum mode chain;
	int64_t first, last;                /* the range */
	int64_t segments_from, segments_to; /* events covered by its segments */
	bool has_history;                   /* it has the seal documents of all segments before */
};

/* Reads the events that an archive's segments cover. A hostile archive may contain any number of
 * segment lines. Only valid lines that continue each other count, and the first other one ends the
 * reading. */
static int outline_lines(struct line_stream *stream, struct input *archive, struct outline *outline,
                         struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf canonical;
	struct slice line;
	struct archive_segment segment;
	bool continues = true;
	arena_init(&arena, SEGMENT_ARENA_MAX);
	buf_init(&canonical, ARCHIVE_LINE_MAX);
	for (int64_t next = 0; continues && next <= outline->last; arena_reset(&arena)) {
		int result = line_stream_next(stream, &line, error);
		if (result <= 0)
			return result;
		archive->outline_lines++;
		result = verify_read_segment(&arena, line, &canonical, &segment, error);
		if (result < 0)
			return result;
		const struct seal_document *seal = &segment.seal;
		continues = next == 0 || seal->first_sequence == next;
		if (next == 0)
			outline->segments_from = seal->first_sequence;
		if (continues)
			outline->segments_to = seal->last_sequence;
		next = seal->last_sequence + 1;
	}
	return 0;
}

static int outline_segments(struct zip_reader *zip, struct input *archive, struct outline *outline,
                            struct error *error)
{
	struct line_stream *stream;
	int result = line_stream_open(zip, STREAM_SEALS, false, &stream, error);
	if (result < 0)
		return result;
	result = outline_lines(stream, archive, outline, error);
	line_stream_free(stream);
	return result == ERR_INVALID_EVIDENCE ? 0 : result;
}

static bool has_history(const struct zip_reader *zip)
{
	char path[ZIP_NAME_MAX + 1];
	archive_stream_path(STREAM_HISTORY, 1, path);
	return zip_find(zip, path);
}

static int outline_zip(struct run *run, struct zip_reader *zip, struct input *archive,
                       struct outline *outline, struct error *error)
{
	ARENA_AUTO struct arena arena;
	BUF_AUTO struct buf text;
	struct archive_manifest manifest;
	arena_init(&arena, OUTLINE_ARENA_MAX);
	buf_init(&text, ARCHIVE_MANIFEST_MAX);
	const struct zip_entry *entry = zip_find(zip, ARCHIVE_MANIFEST_NAME);
	if (!entry)
		return ERR_INVALID_EVIDENCE;
	int result = zip_entry_load(zip, entry, ARCHIVE_MANIFEST_MAX - 1, &text, error);
	if (!result)
		result = archive_read_manifest(&arena, buf_slice(&text), &manifest, error);
	if (result < 0)
		return result;
	const struct archive_facts *facts = &manifest.facts;
	*outline = (struct outline){arena_text(&run->arena, facts->channel_id),
	                            facts->mode,
	                            facts->first_sequence,
	                            facts->last_sequence,
	                            facts->first_sequence,
	                            facts->last_sequence,
	                            has_history(zip)};
	return outline->channel_id ? outline_segments(zip, archive, outline, error) : ERR_NO_MEMORY;
}

static void add_point(struct run *run, const char *channel_id, enum mode chain, int64_t sequence)
{
	run->points[run->point_count++] = (struct point){.channel_id = channel_id,
	                                                 .chain = chain,
	                                                 .sequence = sequence,
	                                                 .received_at_us = TIME_NONE};
}

/* An invalid archive has no points of its own. Its check will record the error. */
static int add_points(struct run *run, struct input *archive)
{
	struct zip_reader *zip;
	struct outline outline = {0};
	struct error error = {0};
	int result = verify_open_zip(archive, &zip, &error);
	if (!result) {
		result = outline_zip(run, zip, archive, &outline, &error);
		zip_reader_free(zip);
	}
	if (result == ERR_INVALID_EVIDENCE)
		return 0;
	if (result < 0) {
		archive->unread = true;
		result =
			verify_add_error(run, archive->path, "", FINDING_ARCHIVE_MALFORMED, result, &error);
		return result == ERR_IO ? 0 : result;
	}
	archive->outlined = true;
	archive->hashes_from = outline.has_history ? 0 : outline.segments_from - 1;
	archive->hashes_to = outline.segments_to;
	const int64_t places[POINTS_PER_ARCHIVE] = {outline.segments_from - 1, outline.first - 1,
	                                            outline.last + 1, outline.segments_to};
	for (size_t i = 0; i < POINTS_PER_ARCHIVE; i++)
		add_point(run, outline.channel_id, outline.chain, places[i]);
	return 0;
}

static int add_ends(struct run *run, const struct seal_walk *walk)
{
	const char *channel_id = arena_text(&run->arena, walk->channel_id);
	if (!channel_id)
		return ERR_NO_MEMORY;
	add_point(run, channel_id, MODE_LIVE, walk->first_sequence - 1);
	add_point(run, channel_id, MODE_LIVE, walk->last_sequence);
	return 0;
}

static void remove_duplicates(struct run *run)
{
	size_t kept = 0;
	qsort(run->points, run->point_count, sizeof *run->points, compare_points);
	for (size_t i = 0; i < run->point_count; i++)
		if (kept == 0 || compare_points(&run->points[kept - 1], &run->points[i]) != 0)
			run->points[kept++] = run->points[i];
	assert(kept <= run->point_count);
	run->point_count = kept;
}

int verify_points_plan(struct run *run)
{
	size_t archives = 0;
	for (size_t i = 0; i < run->input_count; i++)
		archives += run->inputs[i].kind == INPUT_ARCHIVE;
	if (archives < 2 && run->bridge_count == 0)
		return 0;
	run->points = calloc(archives * POINTS_PER_ARCHIVE + run->bridge_count * POINTS_PER_BRIDGE + 1,
	                     sizeof *run->points);
	if (!run->points)
		return ERR_NO_MEMORY;
	int result = 0;
	for (size_t i = 0; i < run->input_count && !result; i++)
		if (run->inputs[i].kind == INPUT_ARCHIVE)
			result = add_points(run, &run->inputs[i]);
	for (size_t i = 0; i < run->bridge_count && !result; i++)
		if (run->bridges[i].usable)
			result = add_ends(run, &run->bridges[i].walk);
	remove_duplicates(run);
	return result;
}

/* ---- after all archives ---- */

static bool same_certification(const struct input *a, const struct input *b)
{
	return strcmp(a->manifest.facts.certification_id, b->manifest.facts.certification_id) == 0 &&
	       strcmp(a->manifest.facts.channel_id, b->manifest.facts.channel_id) == 0;
}

static void find_duplicate_id(struct run *run, size_t index)
{
	const struct input *archive = &run->inputs[index];
	for (size_t i = 0; i < index; i++) {
		const struct input *other = &run->inputs[i];
		if (other->kind == INPUT_ARCHIVE && other->described &&
		    same_certification(archive, other) &&
		    !sha256_equal(&archive->sum.sha256, &other->sum.sha256)) {
			verify_add(run, VERIFY_WRONG, archive->path, "", FINDING_HISTORY_CERTIFICATION,
			           other->path, archive->manifest.facts.certification_id);
			return;
		}
	}
}

/* Warns if events may be missing at the ends of a range by time. */
static void judge_ends(struct run *run, const struct input *archive)
{
	const struct archive_facts *facts = &archive->manifest.facts;
	const struct source source = source_of(archive);
	const struct point *before = find_at(run, &source, facts->first_sequence - 1);
	const struct point *after = find_at(run, &source, facts->last_sequence + 1);
	bool begin_shown = facts->first_sequence == 1;
	bool end_shown = false;
	if (before && before->received_at_us != TIME_NONE) {
		begin_shown = true;
		if (before->received_at_us >= facts->requested_from_us)
			verify_add(run, VERIFY_WRONG, archive->path, ARCHIVE_MANIFEST_NAME,
			           FINDING_RANGE_EVENT_LEFT_OUT, before->sequence, before->path);
	}
	/* Events received after the request do not belong to the range. The archive does not contain
	 * the time of the request, so issued_at is used. */
	if (after && after->received_at_us != TIME_NONE)
		end_shown = after->received_at_us >= facts->requested_to_us ||
		            after->received_at_us >= facts->issued_at_us;
	if (!begin_shown && !end_shown)
		verify_add(run, VERIFY_WARNING, archive->path, "", FINDING_RANGE_OPEN);
	else if (!begin_shown)
		verify_add(run, VERIFY_WARNING, archive->path, "", FINDING_RANGE_OPEN_BEFORE);
	else if (!end_shown)
		verify_add(run, VERIFY_WARNING, archive->path, "", FINDING_RANGE_OPEN_AFTER);
}

int verify_points_conclude(struct run *run)
{
	for (size_t i = 0; i < run->input_count; i++) {
		const struct input *archive = &run->inputs[i];
		if (archive->kind != INPUT_ARCHIVE || !archive->described)
			continue;
		find_duplicate_id(run, i);
		if (archive->manifest.facts.requested_from_us != TIME_NONE &&
		    archive->manifest.facts.requested_to_us != TIME_NONE)
			judge_ends(run, archive);
	}
	return run->point_count > 0 ? verify_connections(run) : 0;
}
