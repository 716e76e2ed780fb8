/* What a request for a certification means: of which events, under which configurations. */
#ifndef ISSUE_CERTIFY_RANGE_H
#define ISSUE_CERTIFY_RANGE_H

#include "issue/certify.h"
#include "service/service.h"
#include "store/certifications/certifications.h"

#define CONFIG_VERSIONS_TEXT_MAX ((size_t)1000 * 24) /* a thousand versions, in JSON */

/* Turns what was asked for into sequence numbers; the versions' text lies in `versions`.
 * *ret_sealed: they are sealed already. A range by time is closed (store_close_range), so that they
 * stay what they are. ERR_VALIDATION: no range, none of events, or of too many; ERR_CLOCK. */
int certification_freeze(struct service *service, const struct certification_order *order,
                         struct certification *ret, struct buf *versions, bool *ret_sealed,
                         struct error *error) MUST_CHECK;
/* The same as it stands now; nothing is closed. */
int certification_foresee(struct service *service, const struct certification_order *order,
                          struct certification *ret, struct buf *versions, bool *ret_sealed,
                          struct error *error) MUST_CHECK;

/* Fills in expected_bytes and stored_max. */
int certification_expect_bytes(struct service *service, struct certification *certification,
                               struct error *error) MUST_CHECK;

#endif
