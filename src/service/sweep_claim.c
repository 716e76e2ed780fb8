/* Exclusive ownership of the content store for the sweep.
 *
 * A copy of the database has the same installation identifier, but does not reference objects
 * registered since the copy was made. So each sweep first records a token in its database and then
 * writes it to the marker of the content store. A node that finds a token unknown to its store
 * shares the content store with a copy, or is the copy; it cannot tell which. It writes the token
 * "disputed", so that neither sweeps until the operator decides: by removing the marker, or by
 * accepting a rollback. After either, objects that existed before are kept.
 *
 * Between the store's commit and the update of the marker, the marker has the previous token, which
 * the store still knows. So a crash at any point does not make the original store look like a copy.
 * Nothing is deleted before its mark is older than content.keep_swept, which is long after both
 * databases have swept once. */
#include "service/sweep_claim.h"

#include <stdio.h>
#include <string.h>

#include "store/nodes/sweeps.h"

#define DISPUTED "disputed" /* not a token: tokens are hex digits */

static int refuse(struct error *error)
{
	return error_set(error, ERR_REFUSED, MSG_CONTENT_DISPUTED, CONTENT_MARKER, NULL);
}

static int stale(struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE, "another node has swept in the meantime");
}

/* Marks the content store as disputed. A node that was suspended between reading the marker and the
 * store is not a copy. Neither is a node whose store no longer acknowledges writes. */
static int dispute(struct service *service, const struct content_marker *found, struct error *error)
{
	struct content_marker marker;
	int result = store_confirm(service->store, error);
	if (!result)
		result = content_claim(service->content, service->installation, &marker, error);
	if (!result && strcmp(marker.sweep, found->sweep) != 0)
		result = stale(error);
	if (!result && strcmp(marker.sweep, DISPUTED) != 0) {
		snprintf(marker.sweep, sizeof marker.sweep, DISPUTED);
		result = content_mark(service->content, &marker, error);
	}
	return result ? result : refuse(error);
}

static int leave_token(struct service *service, const struct sweep_grant *turn,
                       struct content_marker *marker, struct error *error)
{
	int result = OK;
	struct content_marker found;
	/* Objects that a store does not know after a rollback were stored before now. */
	if (turn->accepted_us > marker->accepted_us)
		result = content_now_us(service->content, &marker->since_us, error);
	snprintf(marker->sweep, sizeof marker->sweep, "%s", turn->token);
	marker->accepted_us = turn->accepted_us;
	if (!result)
		result = content_mark(service->content, marker, error);
	if (!result)
		result = content_claim(service->content, service->installation, &found, error);
	return result || strcmp(found.sweep, turn->token) == 0 ? result : stale(error);
}

int sweep_claim_store(struct service *service, int64_t *ret_since_us, struct error *error)
{
	struct content_marker marker;
	struct sweep_grant turn;
	int result = content_claim(service->content, service->installation, &marker, error);
	if (result)
		return result;
	result = store_take_sweep_token(service->store, marker.sweep, marker.accepted_us, &turn, error);
	if (result == ERR_REFUSED)
		return dispute(service, &marker, error);
	if (!result)
		result = leave_token(service, &turn, &marker, error);
	if (!result)
		*ret_since_us = marker.since_us;
	return result;
}
