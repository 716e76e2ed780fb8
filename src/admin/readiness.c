#include "admin/readiness.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "evidence/signers.h"
#include "seal/clock_state.h"
#include "seal/signer.h"
#include "service/read_only.h"
#include "service/registrar.h"
#include "service/registration_clock.h"

#define SEAL_LATE_ROUNDS 5 /* sealing is late after this number of intervals */
#define SEAL_LATE_MIN_US (10 * US_PER_SECOND)
#define WRITE_LATE_US                                                                              \
	(10 * US_PER_SECOND) /* a batch is late after store.commit_timeout and this                    \
	                      */
#define SPACE_MIN_BYTES ((int64_t)1 << 20)
#define MIB ((int64_t)1 << 20)
#define LOGGED_MAX ((size_t)64 * 1024)

const char *concern_text(enum concern concern)
{
	static const char *const texts[] = {
#define CONCERN(name, text) text,
		CONCERNS
#undef CONCERN
	};
	return texts[concern];
}

size_t readiness_count(const struct readiness *readiness, enum concern concern)
{
	size_t count = 0;
	for (size_t i = 0; i < readiness->count; i++)
		count += readiness->items[i].concern == concern;
	return count;
}

/* ---- gauges ---- */

static int64_t time_or_zero(int64_t time_us)
{
	return time_us == TIME_NONE ? 0 : time_us;
}

/* Unknown until the store has responded once. */
static void read_observation(const struct service *service, struct gauges *ret)
{
	struct observation seen = watch_get_observation(service);
	bool known = seen.at_us != 0;
	ret->oldest_pending_us = known ? time_or_zero(seen.oldest_pending_us) : GAUGE_UNKNOWN;
	ret->last_seal_us = known ? time_or_zero(seen.last_seal_us) : GAUGE_UNKNOWN;
	ret->last_backup_us = known ? time_or_zero(seen.last_backup_us) : GAUGE_UNKNOWN;
	ret->replicas = known ? seen.replicas.synchronous : GAUGE_UNKNOWN;
	ret->replicas_required = known ? seen.replicas.required : GAUGE_UNKNOWN;
	ret->replica_lag_bytes = known ? seen.replicas.lag_bytes : GAUGE_UNKNOWN;
	ret->replica_lag_us = known ? seen.replicas.lag_us : GAUGE_UNKNOWN;
}

void service_read_gauges(struct service *service, struct gauges *ret)
{
	registrar_read_gauges(service->registrar, ret);
	ret->quiet = read_only_is_active(service);
	struct clock_state clock = clock_state_read();
	ret->clock_synchronized = clock.synchronized;
	ret->clock_max_error_us = clock.max_error_us;
	ret->clock_compared = atomic_load(&service->comparison.state) == CLOCK_COMPARED;
	ret->clock_ahead_us = service_clock_ahead_us(service);
	ret->development_keys = service_has_development_keys(service);
	read_observation(service, ret);
	ret->signer_can_sign = signers_check(service, NULL) == 0;
	const struct signer_key *key =
		service->signer ? signer_get_key(service->signer, signer_active_key(service->signer))
						: NULL;
	ret->signer_expires_us = key ? key->valid_until_us : 0;
	ret->authority_expires_us = service_authorities_expire_us(service);
}

/* ---- findings ---- */

__attribute__((format(printf, 5, 6))) static void find(struct readiness *readiness,
                                                       enum concern concern, bool stops,
                                                       const char *about, const char *format, ...)
{
	if (readiness->count == READINESS_MAX)
		return;
	struct finding *item = &readiness->items[readiness->count++];
	item->concern = concern;
	item->stops = stops;
	snprintf(item->about, sizeof item->about, "%s", about);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(item->text, sizeof item->text, format, arguments);
	va_end(arguments);
	readiness->ready = readiness->ready && !stops;
}

static void find_in_stores(const struct stores_state *stores, struct readiness *ret)
{
	if (stores->store)
		find(ret, CONCERN_STORE, true, "", "%s", error_reason(&stores->store_error, stores->store));
	if (stores->content)
		find(ret, CONCERN_CONTENT, false, "", "%s",
		     error_reason(&stores->content_error, stores->content));
}

/* Registrations that wait for the batch are answered 503 at their deadline. The node stays ready,
 * because its other sequencers may work. */
static void find_in_registration(const struct service *service, const struct stores_state *stores,
                                 const struct gauges *gauges, struct readiness *ret)
{
	/* Not reported in addition to a finding about the store itself. */
	if (!stores->store &&
	    gauges->writing_us > service->settings->store_commit_timeout + WRITE_LATE_US)
		find(ret, CONCERN_REGISTRATION, false, "",
		     "the store has not written a batch of registrations for %lld s",
		     (long long)(gauges->writing_us / US_PER_SECOND));
}

static void find_in_clock(const struct service *service, struct readiness *ret)
{
	struct error error = {0};
	if (service_clock_ready(service, &error))
		find(ret, CONCERN_CLOCK, true, "", "%s", error.cause);
	else if (!clock_state_read().synchronized)
		find(ret, CONCERN_CLOCK, false, "",
		     "the system clock is not synchronized; seals record that");
	if (atomic_load(&service->comparison.state) == CLOCK_NOT_COMPARED)
		find(
			ret, CONCERN_CLOCK, false, "timestamp",
			"no timestamp authority has responded since the start: the clock was not compared with "
			"a timestamp; seals record that");
}

static void find_read_only(struct service *service, struct readiness *ret)
{
	char text[READ_ONLY_TEXT_SIZE];
	if (!read_only_is_active(service))
		return;
	read_only_describe(service, text);
	find(ret, CONCERN_QUIET, true, "", "%s", text);
}

/* ---- chains ---- */

/* The cause may be an authority, the store, or a node that crashed or hangs while holding the
 * lease. */
static void find_in_sealing(const struct service *service, const struct observation *seen,
                            struct readiness *ret)
{
	int64_t late_us = SEAL_LATE_ROUNDS * service->settings->seal_interval;
	if (late_us < SEAL_LATE_MIN_US)
		late_us = SEAL_LATE_MIN_US;
	char since[TIME_TEXT_SIZE];
	if (seen->oldest_pending_us == TIME_NONE ||
	    store_now_us(service->store) - seen->oldest_pending_us < late_us)
		return;
	time_format(seen->oldest_pending_us, since);
	find(ret, CONCERN_SEALING, false, "",
	     "no segment could be sealed recently; events are pending, the oldest since %s", since);
}

static void find_in_chains(struct service *service, const struct gauges *gauges,
                           struct readiness *ret)
{
	struct counters *counters = &service->counters;
	if (atomic_load(&counters->chains_quarantined))
		find(ret, CONCERN_CHAIN_QUARANTINED, false, "sealing",
		     "chains that cannot be sealed are in quarantine; see the log");
	if (gauges->registration_chains_quarantined)
		find(ret, CONCERN_CHAIN_QUARANTINED, false, "registration",
		     "registrations of some chains fail; see the log");
	if (atomic_load(&counters->chains_ahead) || gauges->clock_refuses)
		find(ret, CONCERN_CHAIN_AHEAD, false, "",
		     "the clock is behind the last event of some chains: their events stay pending, and "
		     "their live registrations are refused");
}

/* ---- keys and authorities ---- */

/* Without a key, registration continues, and issued documents remain available. */
static void find_in_signing(const struct service *service, struct readiness *ret)
{
	struct expiring items[EXPIRING_MAX];
	struct error error = {0};
	char until[TIME_TEXT_SIZE];
	if (service_signer_ready(service, &error))
		find(ret, CONCERN_SIGNER, true, "", "%s", error.cause);
	error_clear(&error);
	if (signers_check(service, &error))
		find(ret, CONCERN_SIGNING_KEY, false, "", "certifications wait: %s", error.cause);
	size_t count = service_list_expiring(service, items);
	for (size_t i = 0; i < count; i++) {
		if (!items[i].near)
			continue;
		time_format(items[i].until_us, until);
		find(ret, CONCERN_CERTIFICATE, false, items[i].subject, "%s (%s) expires on %s",
		     items[i].what, items[i].subject, until);
	}
	if (!service->development && service_has_development_keys(service))
		find(ret, CONCERN_DEVELOPMENT_KEY, false, "",
		     "a development key signs or issues timestamps: documents have no probative value "
		     "(signer.key, tsa.url)");
}

static void find_in_authorities(const struct service *service, struct readiness *ret)
{
	struct authority_status watched;
	for (size_t i = 0; watch_get_authority(service, i, &watched); i++)
		if (watched.fails)
			find(ret, CONCERN_AUTHORITY, false, watched.host,
			     "the timestamp authority %s fails: %s", watched.host, watched.reason);
}

/* ---- monitored components ---- */

static void find_in_disks(const struct service *service, const struct observation *seen,
                          struct readiness *ret)
{
	const struct disk *store = &seen->disks[PLACE_STORE];
	bool full = store->known && store->free_bytes < SPACE_MIN_BYTES;
	if (full || atomic_load(&service->lacks_space))
		find(ret, CONCERN_SPACE, true, "", "the store's disk is full; nothing can be registered");
	int64_t bound_permille = service->settings->store_disk_warn * 10;
	for (enum place place = 0; place < PLACE_COUNT; place++) {
		const struct disk *disk = &seen->disks[place];
		if (disk->known && disk->free_permille < bound_permille)
			find(ret, CONCERN_DISK, false, place_text(place),
			     "the disk of the %s directory is nearly full: %lld MiB (%lld.%lld %%) is free",
			     place_text(place), (long long)(disk->free_bytes / MIB),
			     (long long)(disk->free_permille / 10), (long long)(disk->free_permille % 10));
	}
}

static void find_in_replicas(const struct observation *seen, const struct stores_state *stores,
                             struct readiness *ret)
{
	/* Not reported in addition to a finding about the store itself. */
	if (!stores->store && seen->replicas.synchronous < seen->replicas.required)
		find(ret, CONCERN_REPLICAS, false, "",
		     "%lld synchronous standby%s available, store.require_replicas asks for %lld",
		     (long long)seen->replicas.synchronous,
		     seen->replicas.synchronous == 1 ? " is" : "s are", (long long)seen->replicas.required);
}

/* The node is ready because it serves the accounts on the other servers. */
static void find_in_servers(const struct observation *seen, struct readiness *ret)
{
	for (size_t i = 0; i < seen->failing_count; i++)
		find(ret, CONCERN_SHARD, false, seen->failing[i].name,
		     "the store's server %s: %s; nothing is acknowledged for its accounts",
		     seen->failing[i].name, seen->failing[i].cause);
}

static void find_in_backup(const struct service *service, const struct observation *seen,
                           struct readiness *ret)
{
	int64_t bound_us = service->settings->store_backup_warn;
	char at[TIME_TEXT_SIZE];
	if (!bound_us || !seen->at_us)
		return;
	if (seen->last_backup_us == TIME_NONE) {
		find(ret, CONCERN_BACKUP, false, "", "no backup of the store has been recorded");
	} else if (store_now_us(service->store) - seen->last_backup_us > bound_us) {
		time_format(seen->last_backup_us, at);
		find(ret, CONCERN_BACKUP, false, "", "the last backup of the store was made at %s", at);
	}
}

static void find_near_bound(enum bound bound, const struct bound_use *use, struct readiness *ret)
{
	const char *colon = *use->about ? ": " : "";
	if (bound == BOUND_STORED) /* in percent */
		find(ret, CONCERN_LIMIT, false, bound_label(bound),
		     "an account uses %lld %% of the bytes that it may store%s%s", (long long)use->used,
		     colon, use->about);
	else
		find(ret, CONCERN_LIMIT, false, bound_label(bound), "%lld of at most %lld %s are used%s%s",
		     (long long)use->used, (long long)bound_most(bound), bound_counted(bound), colon,
		     use->about);
}

static void find_in_bounds(const struct observation *seen, struct readiness *ret)
{
	for (enum bound bound = 0; seen->bounds_known && bound < BOUND_COUNT; bound++)
		if (bound_is_near(bound, seen->bounds[bound].used))
			find_near_bound(bound, &seen->bounds[bound], ret);
}

/* Reports checks that hang or fail; their old results are not shown. */
static void find_in_watch(const struct service *service, const struct observation *seen,
                          struct readiness *ret)
{
	if (watch_hangs_us(service) > WATCH_LATE_US)
		find(ret, CONCERN_WATCH, false, "",
		     "the store, the content store or a disk has not responded to this node's check "
		     "for %lld s",
		     (long long)(watch_hangs_us(service) / US_PER_SECOND));
	else if (seen->stale_us)
		find(ret, CONCERN_WATCH, false, "store",
		     "pending work, standbys and backup of the store are unknown: the store could not be "
		     "read for %lld s: %s",
		     (long long)(seen->stale_us / US_PER_SECOND), seen->stale_cause);
	for (enum place place = 0; place < PLACE_COUNT; place++)
		if (seen->disks[place].failed)
			find(ret, CONCERN_WATCH, false, place_text(place),
			     "the disk of the %s directory cannot be checked: %s", place_text(place),
			     strerror(seen->disks[place].failed));
}

void readiness_read(struct service *service, const struct stores_state *stores,
                    struct readiness *ret)
{
	struct observation seen = watch_get_observation(service);
	struct gauges gauges = {0};
	service_read_gauges(service, &gauges);
	ret->ready = true;
	ret->count = 0;
	find_in_stores(stores, ret);
	find_in_registration(service, stores, &gauges, ret);
	find_in_clock(service, ret);
	find_read_only(service, ret);
	find_in_sealing(service, &seen, ret);
	find_in_chains(service, &gauges, ret);
	find_in_signing(service, ret);
	find_in_authorities(service, ret);
	find_in_disks(service, &seen, ret);
	find_in_replicas(&seen, stores, ret);
	find_in_servers(&seen, ret);
	find_in_backup(service, &seen, ret);
	find_in_bounds(&seen, ret);
	find_in_watch(service, &seen, ret);
}

/* ---- logging ---- */

static bool has(const struct readiness *readiness, const struct finding *wanted)
{
	for (size_t i = 0; i < readiness->count; i++) {
		const struct finding *item = &readiness->items[i];
		if (item->concern == wanted->concern && item->stops == wanted->stops &&
		    strcmp(item->about, wanted->about) == 0)
			return true;
	}
	return false;
}

/* Appends the findings of `a` that are missing in `b`. Numbers and times in the texts may
 * differ. */
static size_t add_missing(const struct readiness *a, const struct readiness *b, struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < a->count; i++)
		if (!has(b, &a->items[i]))
			buf_printf(out, "%s%s", count++ ? "; " : "", a->items[i].text);
	buf_add_byte(out, '\0');
	return count;
}

static void add_all(const struct readiness *readiness, bool stops, struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < readiness->count; i++)
		if (readiness->items[i].stops == stops)
			buf_printf(out, "%s%s", count++ ? "; " : "", readiness->items[i].text);
	buf_add_byte(out, '\0');
}

/* Returns false if memory is exhausted; the next call logs the change. */
static bool log_changes(const struct readiness *now, const struct readiness *before)
{
	BUF_AUTO struct buf come, gone, reasons, warnings;
	struct buf *texts[] = {&come, &gone, &reasons, &warnings};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		buf_init(texts[i], LOGGED_MAX);
	size_t news = add_missing(now, before, &come);
	size_t gone_count = add_missing(before, now, &gone);
	if (!news && !gone_count)
		return true;
	add_all(now, true, &reasons);
	add_all(now, false, &warnings);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (buf_check(texts[i]))
			return false;
	log_write(news ? LOG_WARNING : LOG_INFO, "readiness_changed", "ready",
	          now->ready ? "true" : "false", "come", come.data, "gone", gone.data, "reasons",
	          reasons.data, "warnings", warnings.data, NULL);
	return true;
}

void readiness_log(struct service *service, struct readiness *logged)
{
	struct observation seen = watch_get_observation(service);
	struct stores_state stores = {.store = seen.store, .content = seen.content};
	struct readiness now;
	snprintf(stores.store_error.cause, ERROR_CAUSE_MAX, "%s", seen.store_cause);
	snprintf(stores.content_error.cause, ERROR_CAUSE_MAX, "%s", seen.content_cause);
	readiness_read(service, &stores, &now);
	if (log_changes(&now, logged))
		*logged = now;
}
