/* Whether the content is this database's to sweep.
 *
 * A copy of the database has the installation's identifier, and to it what was registered since has
 * no name. So each sweep leaves a token of its own at the place, after the store has recorded it;
 * who finds a token that his store does not know has a copy for a neighbour or is one, and cannot
 * tell which. He leaves a token that nobody knows, so that neither sweeps until an operator
 * decided: by removing the marker, or by accepting a rollback. After either what was there before
 * stays.
 *
 * Between the store's commit and the marker's change the place carries the token before, which the
 * store still knows: so whatever dies, and whenever, the true store is not taken for a copy.
 * Nothing is deleted before its mark stood for content.keep_swept, long after both have come by. */
#include "service/sweep_place.h"

#include <stdio.h>
#include <string.h>

#include "store/nodes/sweeps.h"

#define DISPUTED "disputed" /* no token: those are hex digits */

static int refuse(struct error *error)
{
	return error_set(error, ERR_REFUSED, MSG_CONTENT_DISPUTED, CONTENT_MARKER, NULL);
}

static int stale(struct error *error)
{
	return error_cause(error, ERR_UNAVAILABLE, "another has swept meanwhile");
}

/* A node that slept between its looks at place and store is no copy, nor is one whose store is not
 * the one that acknowledges any more. */
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

static int leave_token(struct service *service, const struct sweep_turn *turn,
                       struct content_marker *marker, struct error *error)
{
	int result = OK;
	struct content_marker found;
	/* What a store that went back does not know was stored before now. */
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

int sweep_take_place(struct service *service, int64_t *ret_since_us, struct error *error)
{
	struct content_marker marker;
	struct sweep_turn turn;
	int result = content_claim(service->content, service->installation, &marker, error);
	if (result)
		return result;
	result = store_take_sweep_turn(service->store, marker.sweep, marker.accepted_us, &turn, error);
	if (result == ERR_REFUSED)
		return dispute(service, &marker, error);
	if (!result)
		result = leave_token(service, &turn, &marker, error);
	if (!result)
		*ret_since_us = marker.since_us;
	return result;
}
