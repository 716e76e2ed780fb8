/* Periodic tasks: removal of expired rows, idle accounts, checks of balances and limits, the sweep
 * of content. */
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/tuned.h"
#include "jobs/internal.h"
#include "service/read_only.h"
#include "service/sweep.h"
#include "service/user_auth.h"
#include "service/watch.h"
#include "store/accounts/accounts.h"
#include "store/audit/audit_log.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"
#include "store/events/segments.h"
#include "store/notices/deliveries.h"
#include "store/notices/mails.h"
#include "store/notices/test_notices.h"
#include "store/usage/request_records.h"

#define INTERVAL_US (6 * 3600 * US_PER_SECOND)
#define RUN_INTERVAL_US (10 * US_PER_SECOND)
#define FORGOTTEN_MAX 200000 /* maximum notices and deliveries, or idempotency keys, per run */
#define IDLE_ACCOUNT_US (365 * US_PER_DAY)
#define MAIL_KEEP_US (90 * US_PER_DAY)
#define FORM_KEEP_US US_PER_DAY /* longer than any session that could send the form */

/* The year must be confirmed by a timestamp authority: a clock error must not disable all accounts
 * and notify their owners by mail. */
static void disable_idle_accounts(struct service *service)
{
	struct error error = {0};
	int64_t count = 0, sealed_at_us = TIME_NONE;
	int result = store_last_seal_time(service->store, &sealed_at_us, &error);
	int64_t now_us = store_now_us(service->store);
	if (!result && sealed_at_us != TIME_NONE)
		result = store_disable_idle_accounts(
			service->store, (now_us < sealed_at_us ? now_us : sealed_at_us) - IDLE_ACCOUNT_US,
			&count, &error);
	if (result)
		log_warning("idle_accounts_not_disabled", "cause", error_reason(&error, result));
	if (count > 0) {
		char text[24];
		snprintf(text, sizeof text, "%" PRId64, count);
		log_info("idle_accounts_disabled", "accounts", text);
		service_clear_key_cache(service);
	}
}

static void forget_notices(struct service *service)
{
	struct error error = {0};
	int64_t removed = 0;
	int result = store_forget_notices(
		service->store, store_now_us(service->store) - service->settings->webhook_keep,
		FORGOTTEN_MAX, &removed, &error);
	if (result)
		log_warning("notices_not_deleted", "cause", error_reason(&error, result));
	if (removed > 0) {
		char text[24];
		snprintf(text, sizeof text, "%" PRId64, removed);
		log_info("notices_deleted", "rows", text);
	}
}

static void forget_test_notices(struct service *service)
{
	struct error error = {0};
	int64_t removed = 0;
	int result = store_forget_test_notices(service->store,
	                                       store_now_us(service->store) - TEST_NOTICES_KEEP_US,
	                                       FORGOTTEN_MAX, &removed, &error);
	if (result)
		log_warning("test_notices_not_deleted", "cause", error_reason(&error, result));
}

static void check_balances(struct service *service, const atomic_bool *stopping)
{
	struct error error = {0};
	int64_t count = 0;
	int result = store_count_unbalanced(service->store, stopping, &count, &error);
	if (result) {
		log_warning("balances_not_checked", "cause", error_reason(&error, result));
		return;
	}
	atomic_store(&service->counters.unbalanced_accounts, count);
	if (count > 0)
		log_error("balances_differ", "cause", "store check names the accounts");
}

static void check_bounds(struct service *service)
{
	struct error error = {0};
	int result = watch_read_limits(service, &error);
	if (result)
		log_warning("limits_not_checked", "cause", error_reason(&error, result));
}

static void forget_mails(struct service *service)
{
	struct error error = {0};
	int result =
		store_forget_mails(service->store, store_now_us(service->store) - MAIL_KEEP_US, &error);
	if (result)
		log_warning("mails_not_deleted", "cause", error_reason(&error, result));
}

static void delete_expired_sessions(struct service *service)
{
	struct error error = {0};
	int result = user_auth_delete_expired(service, &error);
	if (result)
		log_warning("sessions_not_deleted", "cause", error_reason(&error, result));
}

static void forget_forms(struct service *service)
{
	struct error error = {0};
	int result =
		store_remove_old_forms(service->store, store_now_us(service->store) - FORM_KEEP_US, &error);
	if (result)
		log_warning("forms_not_deleted", "cause", error_reason(&error, result));
}

static void forget_idempotency_keys(struct service *service)
{
	struct error error = {0};
	int64_t removed = 0;
	int result = store_forget_idempotency_keys(service->store, store_now_us(service->store),
	                                           FORGOTTEN_MAX, &removed, &error);
	if (result)
		log_warning("idempotency_keys_not_deleted", "cause", error_reason(&error, result));
}

static void forget_requests(struct service *service, const atomic_bool *stopping)
{
	struct error error = {0};
	int64_t removed = 0;
	int result =
		store_forget_requests(service->store, store_now_us(service->store) - REQUESTS_KEEP_US,
	                          stopping, &removed, &error);
	if (result)
		log_warning("requests_not_deleted", "cause", error_reason(&error, result));
}

static void sweep(struct housekeeping *housekeeping, const atomic_bool *stopping)
{
	struct renewed_lease lease = {
		.store = housekeeping->service->store,
		.lease_renewer = housekeeping->lease_renewer,
		.name = LEASE_SWEEP,
		.holder = housekeeping->holder,
	};
	bool leased = false;
	struct error error = {0};
	int result = renewed_lease_take(&lease, &leased, &error);
	if (result && !atomic_load(stopping))
		log_warning("sweep_failed", "cause", error_reason(&error, result));
	if (!leased)
		return; /* or another node is sweeping */
	sweep_content(housekeeping->service, stopping, &lease.lost);
	renewed_lease_pause(&lease);
	if (renewed_lease_end(&lease, NULL))
		log_warning("sweep_lease_not_released", "cause", "it runs out");
}

static void keep_house(struct housekeeping *housekeeping, const atomic_bool *stopping)
{
	struct error error = {0};
	int result = store_forget_usage(housekeeping->service->store,
	                                store_now_us(housekeeping->service->store), &error);
	if (result)
		log_warning("usage_not_deleted", "cause", error_reason(&error, result));
	disable_idle_accounts(housekeeping->service);
	check_bounds(housekeeping->service);
	check_balances(housekeeping->service, stopping);
	forget_notices(housekeeping->service);
	forget_test_notices(housekeeping->service);
	delete_expired_sessions(housekeeping->service);
	forget_mails(housekeeping->service);
	forget_forms(housekeeping->service);
	forget_idempotency_keys(housekeeping->service);
	forget_requests(housekeeping->service, stopping);
	sweep(housekeeping, stopping); /* last, because it takes longest */
}

int64_t housekeeping_run(void *context, const atomic_bool *stopping)
{
	struct housekeeping *housekeeping = context;
	if (read_only_is_active(housekeeping->service))
		return READ_ONLY_POLL_US;
	int64_t now_us = clock_monotonic_us();
	validation_log_levels(&housekeeping->level_logger, housekeeping->service, stopping);
	if (now_us >= housekeeping->next_us && store_is_whole(housekeeping->service->store)) {
		housekeeping->next_us = now_us + tuned_up_to("housekeeping_us", INTERVAL_US);
		keep_house(housekeeping, stopping);
	}
	return tuned_up_to("housekeeping_us", RUN_INTERVAL_US);
}
