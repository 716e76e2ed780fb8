#include "service/sweep.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "service/sweep_claim.h"
#include "store/certifications/certifications.h"

/* Minimum age of an orphan. Content is stored seconds before the event that references it.
 * Documents have their certification in their names. */
#define ORPHAN_AGE_US US_PER_DAY
#define MARKS "swept"

struct sweep {
	struct service *service;
	const atomic_bool *stopping, *lost;
	int64_t since_us; /* older objects are kept */
	int64_t marked, deleted, named;
	struct error error;
};

static struct content_store *content_of(const struct sweep *sweep)
{
	return sweep->service->content;
}

static bool is_over(const struct sweep *sweep)
{
	return atomic_load(sweep->stopping) || atomic_load(sweep->lost);
}

static int is_named(struct sweep *sweep, const char *name, bool *ret_named)
{
	if (is_over(sweep))
		return ERR_UNAVAILABLE;
	return store_is_object_referenced(sweep->service->store, name, ret_named, &sweep->error);
}

/* ---- marking ---- */

static int is_marked(struct sweep *sweep, const char *mark, bool *ret_marked)
{
	struct content_reader *reader = NULL;
	uint64_t size;
	int result = content_read_begin(content_of(sweep), mark, 0, &reader, &size, &sweep->error);
	if (!result)
		content_read_end(reader);
	*ret_marked = !result;
	return result == ERR_NOT_FOUND ? OK : result;
}

static int write_mark(struct sweep *sweep, const char *mark)
{
	struct content_writer *writer = NULL;
	int result = content_write_begin(content_of(sweep), &writer, &sweep->error);
	return result ? result : content_write_commit(writer, mark, &sweep->error);
}

static int mark_unnamed(void *context, const char *name)
{
	struct sweep *sweep = context;
	bool named = true, marked = true;
	char mark[CONTENT_NAME_MAX];
	if (!content_name_is_fresh(name) ||
	    (size_t)snprintf(mark, sizeof mark, MARKS "/%s", name) >= sizeof mark)
		return OK;
	int result = is_named(sweep, name, &named);
	if (!result && !named)
		result = is_marked(sweep, mark, &marked);
	if (result || named || marked)
		return result;
	result = write_mark(sweep, mark);
	sweep->marked += !result;
	return result;
}

/* ---- deleting ---- */

static int end_mark(void *context, const char *mark)
{
	struct sweep *sweep = context;
	const char *name = mark + sizeof MARKS;
	bool named = true;
	if (!content_name_is_fresh(name))
		return OK;
	int result = is_named(sweep, name, &named);
	if (!result && !named)
		result = content_delete(content_of(sweep), name, &sweep->error);
	if (!result)
		result = content_delete(content_of(sweep), mark, &sweep->error);
	if (!result)
		named ? sweep->named++ : sweep->deleted++;
	return result;
}

/* Decides about an unfinished upload. */
static int ask_upload(void *context, const char *name)
{
	bool named = true;
	int result = is_named(context, name, &named);
	return result ? result : named ? CONTENT_KEEP : OK;
}

/* ---- the whole ---- */

static int sweep_place(struct sweep *sweep)
{
	static const char *const areas[] = {"event", "issued"};
	struct content_store *content = content_of(sweep);
	int64_t keep_us = sweep->service->settings->content_keep_swept;
	int64_t now_us = 0;
	int result = content_now_us(content, &now_us, &sweep->error);
	struct content_range range = {
		.area = MARKS, .since_us = sweep->since_us, .before_us = now_us - keep_us};
	if (!result)
		result = content_list(content, &range, end_mark, sweep, &sweep->error);
	range.before_us = now_us - ORPHAN_AGE_US;
	for (size_t i = 0; i < sizeof areas / sizeof *areas && !result; i++) {
		range.area = areas[i];
		result = content_list(content, &range, mark_unnamed, sweep, &sweep->error);
	}
	range.area = "";
	return result ? result
	              : content_remove_leftovers(content, &range, ask_upload, sweep, &sweep->error);
}

static void log_count(const char *what, int64_t count)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, count);
	if (count > 0)
		log_info(what, "objects", text);
}

static void log_result(const struct sweep *sweep, int result)
{
	const struct error *error = &sweep->error;
	if (!result || result == ERR_REFUSED) /* other failures do not concern this state */
		atomic_store(&sweep->service->counters.sweep_refused, result == ERR_REFUSED);
	log_count("orphans_marked", sweep->marked);
	log_count("orphans_deleted", sweep->deleted);
	log_count("orphans_unmarked", sweep->named);
	if (result == ERR_REFUSED)
		log_error("sweep_refused", "cause", error_message(error, LANGUAGE_ENGLISH));
	else if (result && !is_over(sweep))
		log_warning("sweep_failed", "cause",
		            *error->cause ? error->cause : error_message(error, LANGUAGE_ENGLISH));
}

void sweep_content(struct service *service, const atomic_bool *stopping, const atomic_bool *lost)
{
	struct sweep sweep = {.service = service, .stopping = stopping, .lost = lost};
	/* Transactions with an unknown outcome may reference objects that are not visible as referenced
	 * yet. */
	int result = store_await_writes(service->store, &sweep.error);
	if (!result)
		result = sweep_claim_store(service, &sweep.since_us, &sweep.error);
	if (!result)
		result = sweep_place(&sweep);
	log_result(&sweep, result);
}
