/* Creates the content parts of a certification concurrently with its archive. A separate thread
 * reads the events with their content while the issuer's thread reads them for the archive. It has
 * the issuer's priority, and uses only data of `issue` that does not change any more. */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/tuned.h"
#include "issue/issue_job.h"

#define FILE_CONTENT_MAX ((size_t)10485760)
#define WAIT_US 100000 /* between checks whether the issuer must stop */

struct issue_parts {
	const struct issue_job *issue;
	pthread_t thread;
	bool started;
	atomic_bool stopping;
	atomic_int_fast64_t done; /* events */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool over; /* protected by the mutex; afterwards the members below belong to the issuer's thread
	            */
	int result;
	struct error error;
	struct part_writer *writer;
	const struct part_facts *facts;
	size_t count;
};

/* ---- on the thread ---- */

/* For content stores without file descriptors: copies one object at a time through memory. */
static int add_object_by_memory(struct issue_parts *parts, const struct part_entry *entry,
                                const char *object)
{
	struct content_reader *reader;
	uint64_t size;
	int result = content_read_begin(parts->issue->service->content, object, 0, &reader, &size,
	                                &parts->error);
	if (result)
		return result;
	char *content = size <= FILE_CONTENT_MAX ? malloc(size + 1) : NULL;
	size_t used = 0;
	int64_t count = content ? 1 : ERR_NO_MEMORY;
	while (count > 0) {
		count = content_read(reader, content + used, size - used + 1, &parts->error);
		used += count > 0 ? (size_t)count : 0;
		if (used > size)
			count = error_cause(&parts->error, ERR_CORRUPT, "object %s grew", object);
	}
	content_read_end(reader);
	result = (int)count;
	if (!result)
		result = part_writer_add(parts->writer, entry, slice_make(content, used), &parts->error);
	free(content);
	return result;
}

static int add_object(struct issue_parts *parts, const struct part_entry *entry, const char *object)
{
	uint64_t size;
	int descriptor = content_read_descriptor(parts->issue->service->content, object, &size);
	if (descriptor < 0)
		return add_object_by_memory(parts, entry, object);
	int result = part_writer_add_file(parts->writer, entry, descriptor, &parts->error);
	close(descriptor);
	return result;
}

static int add_content(void *context, const struct event *event)
{
	struct issue_parts *parts = context;
	if (atomic_load(&parts->stopping))
		return ERR_UNAVAILABLE;
	atomic_fetch_add(&parts->done, 1);
	if (event->declaration.modality != MODALITY_CONTENT)
		return OK;
	struct part_entry entry = {
		.sequence = event->sequence,
		.event_id = slice_of(event->event_id),
		.is_json = !event->file_name,
	};
	memcpy(entry.hash.bytes, event->declaration.hash, SHA256_SIZE);
	return event->content_object
	           ? add_object(parts, &entry, event->content_object)
	           : part_writer_add(parts->writer, &entry, event->content, &parts->error);
}

static int make_parts(struct issue_parts *parts)
{
	const struct issue_job *issue = parts->issue;
	const struct certification *certification = issue->certification;
	int result =
		part_writer_begin(issue->directory, certification->certification_id,
	                      certification->channel_id, (uint64_t)tuned("part_bytes", 0),
	                      (uint32_t)tuned("part_entries", 0), &parts->writer, &parts->error);
	if (!result)
		result = issue_each_event(issue, true, add_content, parts, &parts->error);
	if (!result)
		result = part_writer_finish(parts->writer, &parts->facts, &parts->count, &parts->error);
	return result;
}

static void *run(void *argument)
{
	struct issue_parts *parts = argument;
	int result = make_parts(parts);
	pthread_mutex_lock(&parts->mutex);
	parts->result = result;
	parts->over = true;
	pthread_cond_signal(&parts->changed);
	pthread_mutex_unlock(&parts->mutex);
	return NULL;
}

/* ---- on the issuer's thread ---- */

int issue_start_parts(struct issue_job *work, struct error *error)
{
	assert(!work->making);
	bool any = false;
	for (size_t i = 0; i < work->configuration_count; i++)
		any |= work->configurations[i].facts.modality == MODALITY_CONTENT;
	if (!any)
		return OK;
	struct issue_parts *parts = calloc(1, sizeof *parts);
	if (!parts)
		return error_cause(error, ERR_NO_MEMORY, "content parts");
	parts->issue = work;
	pthread_mutex_init(&parts->mutex, NULL);
	pthread_cond_init(&parts->changed, NULL);
	work->making = parts;
	parts->started = pthread_create(&parts->thread, NULL, run, parts) == 0;
	if (!parts->started)
		return error_cause(error, ERR_NO_MEMORY,
		                   "the thread that creates content parts cannot be started");
	pthread_setname_np(parts->thread, "parts");
	return OK;
}

int64_t issue_parts_permille(const struct issue_job *work)
{
	return work->making ? 1000 * atomic_load(&work->making->done) / issue_event_count(work) : 1000;
}

static bool wait_briefly(struct issue_parts *parts)
{
	const int64_t until_us = clock_monotonic_us() + WAIT_US;
	pthread_mutex_lock(&parts->mutex);
	if (!parts->over)
		(void)thread_wait_until(&parts->changed, &parts->mutex, until_us);
	bool over = parts->over;
	pthread_mutex_unlock(&parts->mutex);
	return over;
}

int issue_await_parts(struct issue_job *work, struct error *error)
{
	struct issue_parts *parts = work->making;
	int result = OK;
	if (!parts)
		return OK;
	while (!result && !wait_briefly(parts))
		result = issue_progress(work, 1, 1);
	if (result)
		return result;
	assert(parts->over);
	if (parts->result) {
		if (error)
			*error = parts->error;
		return parts->result;
	}
	struct part_facts *facts = arena_alloc(work->arena, (parts->count + 1) * sizeof *facts);
	if (!facts)
		return error_cause(error, ERR_NO_MEMORY, "content parts");
	if (parts->count > 0)
		memcpy(facts, parts->facts, parts->count * sizeof *facts);
	work->parts = facts;
	work->part_count = parts->count;
	/* Frees the writer's memory for the next steps. */
	issue_free_parts(work);
	return OK;
}

void issue_free_parts(struct issue_job *work)
{
	struct issue_parts *parts = work->making;
	if (!parts)
		return;
	atomic_store(&parts->stopping, true);
	if (parts->started)
		pthread_join(parts->thread, NULL);
	part_writer_free(parts->writer);
	pthread_cond_destroy(&parts->changed);
	pthread_mutex_destroy(&parts->mutex);
	free(parts);
	work->making = NULL;
}
