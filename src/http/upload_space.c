/* Accounts for data that requests have written to the content store and that no event refers to
 * yet. It becomes useless if the request is aborted or refused, and is not part of any account's
 * stored bytes. */
#include "http/upload_space.h"

#include <assert.h>

#include "http/http_internal.h"

#define MIB ((int64_t)1024 * 1024)
#define SHARE 4 /* an owner may use at most this fraction, but always enough for one file */

int upload_space_reserve(struct upload_space *space, struct http_server *server, uint64_t owner,
                         size_t size, struct error *error)
{
	int64_t all = server->service->settings->http_upload_space * MIB, more = (int64_t)size;
	int64_t share = all / SHARE > (int64_t)FILE_MAX ? all / SHARE : (int64_t)FILE_MAX;
	if (size == 0)
		return OK;
	assert(!space->held || space->owner == owner); /* it is given back to whom it was taken from */
	space->owner = owner;
	pthread_mutex_lock(&server->bodies_lock);
	bool fits =
		server->upload_held + more <= all && share_take(server->uploads, owner, more, share) == 0;
	if (fits) {
		server->upload_held += more;
		space->held += more;
	}
	pthread_mutex_unlock(&server->bodies_lock);
	struct metrics *metrics = &server->metrics;
	if (fits) {
		atomic_fetch_add_explicit(&metrics->upload_bytes, more, memory_order_relaxed);
		return OK;
	}
	atomic_fetch_add_explicit(&metrics->upload_space_refused, 1, memory_order_relaxed);
	return error_cause(error, ERR_UNAVAILABLE,
	                   "http.upload_space or the account's share of it is exhausted");
}

void upload_space_release(struct upload_space *space, struct http_server *server)
{
	if (!space->held)
		return;
	pthread_mutex_lock(&server->bodies_lock);
	share_release(server->uploads, space->owner, space->held);
	server->upload_held -= space->held;
	assert(server->upload_held >= 0);
	pthread_mutex_unlock(&server->bodies_lock);
	atomic_fetch_sub_explicit(&server->metrics.upload_bytes, space->held, memory_order_relaxed);
	space->held = 0;
}
