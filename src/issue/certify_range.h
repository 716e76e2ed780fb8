/* Resolves a certification request into its range of events and the configuration versions in that
 * range. */
#ifndef ISSUE_CERTIFY_RANGE_H
#define ISSUE_CERTIFY_RANGE_H

#include "issue/certify.h"
#include "service/service.h"
#include "store/certifications/certifications.h"

#define CONFIG_VERSIONS_TEXT_MAX ((size_t)1000 * 24) /* 1000 versions, in JSON */

/* Resolves the request into sequence numbers. `versions` holds the JSON text of the configuration
 * versions. *ret_sealed: all events are sealed already. A range by time is closed
 * (store_close_range), so that no later event can fall into it. ERR_VALIDATION: the range is
 * invalid, empty or too large; ERR_CLOCK. */
int certification_freeze(struct service *service, const struct certification_order *order,
                         struct certification *ret, struct buf *versions, bool *ret_sealed,
                         struct error *error) MUST_CHECK;
/* Does the same without closing the range. */
int certification_preview(struct service *service, const struct certification_order *order,
                          struct certification *ret, struct buf *versions, bool *ret_sealed,
                          struct error *error) MUST_CHECK;

/* Fills in expected_bytes and stored_max. */
int certification_expect_bytes(struct service *service, struct certification *certification,
                               struct error *error) MUST_CHECK;

#endif
