#include "store/nodes/job_claims.h"

int job_claim_update(struct db_query *query, const char *id, struct error *error)
{
	int64_t changes = 0;
	int result = db_execute(query, &changes, error);
	if (result || changes == 1)
		return result;
	return error_cause(error, ERR_REFUSED, "%s has ended or is leased to another holder", id);
}
