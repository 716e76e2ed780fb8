/* Signs the list of signers when it has changed and once a day. */
#include <stdio.h>

#include "base/log.h"
#include "base/schedule.h"
#include "evidence/signer_listing.h"
#include "jobs/internal.h"
#include "service/read_only.h"
#include "store/evidence/signer_records.h"

#define POLL_US (5 * US_PER_SECOND)
#define PAUSE_MAX_US (600 * US_PER_SECOND)
#define LEASE_US (60 * US_PER_SECOND)

void list_signer_init(struct list_signer *list_signer, struct service *service, const char *node)
{
	*list_signer = (struct list_signer){.service = service};
	snprintf(list_signer->holder, sizeof list_signer->holder, "%s", node);
}

/* The lease only saves the cost of a second timestamp; signing on two nodes is harmless. */
static int sign(struct list_signer *list_signer, struct error *error)
{
	struct service *service = list_signer->service;
	struct store *store = service->store;
	bool leased = false;
	int result = store_take_lease(store, LEASE_SIGNER_LIST, list_signer->holder,
	                              store_now_us(store), LEASE_US, &leased, error);
	if (result || !leased)
		return result;
	result = signer_listing_sign(service, error);
	if (!result)
		log_info("signer_list_signed");
	if (store_end_lease(store, LEASE_SIGNER_LIST, list_signer->holder, NULL))
		log_warning("signer_list_lease_not_released", "cause", "it runs out");
	return result;
}

/* Once; a store without room for them, or a key that was ended, is logged, and the list signed
 * without them. */
static int add_keys(struct list_signer *list_signer, struct error *error)
{
	if (list_signer->has_keys)
		return OK;
	int result = signer_listing_add_keys(list_signer->service, error);
	bool refused = result == ERR_FULL || result == ERR_REFUSED;
	if (refused)
		log_error("public_keys_not_listed", "cause", error->cause, "consequence",
		          "receipts of this node cannot be attributed to the service");
	list_signer->has_keys = !result || refused;
	list_signer->is_listed = !result;
	return refused ? OK : result;
}

/* Once for each certificate. While the key does not sign, the list is signed without its proof. */
static int prove_key(struct list_signer *list_signer, struct error *error)
{
	struct sha256 in_force;
	bool any = false, done = false;
	if (!list_signer->is_listed)
		return OK;
	int result = store_get_signer(list_signer->service->store, &in_force, &any, error);
	bool is_new = any && !sha256_equal(&in_force, &list_signer->certificate);
	if (result || !any || (list_signer->is_proved && !is_new))
		return result;
	result = signer_listing_prove(list_signer->service, &in_force, &done, error);
	if (!result && !done && is_new)
		log_warning("receipt_key_not_proved", "cause", "the signer of receipts does not sign",
		            "consequence", "receipts of this node cannot be attributed to the service yet");
	if (!result)
		list_signer->certificate = in_force;
	list_signer->is_proved = !result && done;
	return result;
}

int64_t list_signer_run(void *context, const atomic_bool *stopping)
{
	struct list_signer *list_signer = context;
	struct error error = {0};
	bool due = false;
	if (read_only_is_active(list_signer->service))
		return READ_ONLY_POLL_US;
	int result = add_keys(list_signer, &error);
	if (!result)
		result = prove_key(list_signer, &error);
	if (!result)
		result = signer_listing_is_due(list_signer->service, &due, &error);
	if (!result && due)
		result = sign(list_signer, &error);
	if (!result || atomic_load(stopping)) {
		list_signer->failures = 0;
		return POLL_US;
	}
	log_warning("signer_list_not_signed", "error", error_code_text(result), "cause",
	            error_reason(&error, result));
	return backoff_us(++list_signer->failures, POLL_US, PAUSE_MAX_US);
}
