/* What the service reads, copies and starts with, with each call failing in turn. A fault is
 * reported as a fault, never as a wrong key, a missing document or an empty list. An operation
 * takes effect completely or not at all, and succeeds when it is repeated. */
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "base/json.h"
#include "failing.h"
#include "office.h"
#include "admin/backup_series.h"
#include "evidence/event_proof.h"
#include "issue/certify.h"
#include "issue/links.h"
#include "issue/verification.h"
#include "seal/signer.h"
#include "service/history.h"
#include "service/keys.h"

#define MEMORY_AND_STORE (FAILING_MEMORY | FAILING_SQLITE | FAILING_PARTS | FAILING_ARENAS)

static struct office office;
static struct arena arena;
static struct error error;
static char id[ID_SIZE], key_text[KEY_TEXT_MAX];
static struct sha256 key_hash;

/* Returns whether to continue after an attempt in which the `at`-th call was to fail. */
static bool goes_on(const char *what, int at, int result)
{
	const char *failed = failing_disarm();
	if (failed ? !failing_is_fault(result) : result)
		fail_msg("%s, call %d, %s: %d %s", what, at, failed ? failed : "none", result,
		         error_reason(&error, result));
	return failed;
}

/* Makes each call of the expression fail in turn, then none. */
#define IN_TURN(kinds, expression)                                                                 \
	do {                                                                                           \
		int at = 0, code;                                                                          \
		do {                                                                                       \
			error = (struct error){0};                                                             \
			arena_reset(&arena);                                                                   \
			failing_arm(kinds, ++at);                                                              \
			code = (expression);                                                                   \
		} while (goes_on(#expression, at, code));                                                  \
	} while (0)

static int set_up(void **state)
{
	char object[CONTENT_NAME_MAX], key_id[ID_SIZE];
	arena_init(&arena, 16 << 20);
	office_open(&office, MODALITY_CONTENT, 1000000);
	sample_register(&office.sample, MODE_LIVE, 2);
	office_register_object(&office, slice_of("any bytes"), "a.bin", object);
	office_start_jobs(&office);
	office_request(&office, MODE_LIVE, 1, 3, id);
	assert_int_equal(office_await_certification(&office, MODE_LIVE, id).status,
	                 CERTIFICATION_COMPLETED);
	office_stop_jobs(&office);
	key_generate("svc", MODE_LIVE, key_text);
	key_hash = sha256_of(key_text, strlen(key_text));
	sample_add_key(&office.sample, MODE_LIVE, key_text, key_id);
	return 0;
}

static int tear_down(void **state)
{
	office_close(&office);
	arena_free(&arena);
	return 0;
}

/* ---- keys ---- */

TEST_CASE(a_right_key_is_never_called_wrong)
{
	struct key_identity identity;
	struct key_lookup_query question;
	int result;
	for (int at = 1;; at++) {
		error_clear(&error);
		failing_arm(MEMORY_AND_STORE, at);
		int code = service_find_key(&office.service, &key_hash, &identity, &error);
		const char *failed = failing_disarm();
		if (failed && !failing_is_fault(code) && strcmp(failed, "malloc") != 0)
			fail_msg("call %d, %s: %d", at, failed, code);
		if (code) {
			/* A failure is cached for a second, as a failure. */
			if (service_find_cached_key(&office.service, slice_of(key_text), &question, &result,
			                            &identity, &error))
				assert_true(failing_is_fault(result));
		} else {
			assert_int_equal(identity.account, office.sample.account);
		}
		service_clear_key_cache(&office.service);
		if (!failed)
			break;
	}
	assert_int_equal(service_find_key(&office.service, &key_hash, &identity, &error), OK);
	assert_true(service_find_cached_key(&office.service, slice_of(key_text), &question, &result,
	                                    &identity, &error));
	assert_int_equal(result, OK);
}

TEST_CASE(what_is_no_key_is_not_looked_up)
{
	struct key_identity identity;
	struct key_lookup_query question;
	char changed[KEY_TEXT_MAX];
	static const char *const bad[] = {
		"",
		"x",
		"svc_live_",
		"svc_live_0123456789ABCDEFGHIJKLMNOPQRST000000",
		"svc_live_0123456789ABCDEFGHIJKLMNOPQR-T000000",
		"acc_live_0123456789ABCDEFGHIJKLMNOPQRST000000",
		"svc_live_0123456789ABCDEFGHIJKLMNOPQRST0000000",
		"svc_test_0123456789ABCDEFGHIJKLMNOPQRST0000000123456789012345678901234567890"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		int result = OK;
		assert_true(service_find_cached_key(&office.service, slice_of(bad[i]), &question, &result,
		                                    &identity, &error));
		assert_int_equal(result, ERR_INVALID_KEY);
	}
	strcpy(changed, key_text);
	changed[10] = changed[10] == 'a' ? 'b' : 'a';
	assert_false(key_well_formed("svc", slice_of(changed)));
	assert_true(key_well_formed("svc", slice_of(key_text)));
	assert_false(key_well_formed("other", slice_of(key_text)));
	key_generate("svc", MODE_TEST, changed);
	assert_true(key_well_formed("svc", slice_of(changed)));
	struct sha256 unknown = sha256_of(changed, strlen(changed));
	assert_int_equal(service_find_key(&office.service, &unknown, &identity, &error),
	                 ERR_INVALID_KEY);
	int result;
	assert_true(service_find_cached_key(&office.service, slice_of(changed), &question, &result,
	                                    &identity, &error));
	assert_int_equal(result, ERR_INVALID_KEY);
}

/* ---- certifications and proofs ---- */

static int request(const char *key, struct buf *out, bool *ret_replayed)
{
	struct certification_range range = {.from_us = 1,
	                                    .to_us = INT64_C(4102444800) * US_PER_SECOND}; /* 2100 */
	struct certification_order order = {.key = &office.live_key,
	                                    .range = &range,
	                                    .idempotency_key = key,
	                                    .language = LANGUAGE_SPANISH};
	buf_clear(out);
	return certification_request(&office.service, &order, out, ret_replayed, NULL, &error);
}

static int read_record(struct buf *out)
{
	buf_clear(out);
	int result = certification_get(&office.service, &office.live_key, slice_of(id),
	                               LANGUAGE_ENGLISH, out, NULL, &error);
	return result ? result : buf_check(out);
}

static const struct list_page first_page = {ORDER_DESCENDING, 0, 10};

static int read_list(struct buf *out)
{
	bool more;
	int64_t last;
	buf_clear(out);
	int result = certification_list(&office.service, &office.live_key, "completed", &first_page,
	                                LANGUAGE_ENGLISH, out, &more, &last, &error);
	return result ? result : buf_check(out);
}

static int look_up(struct slice code, const struct sha256 *digest, struct buf *out)
{
	buf_clear(out);
	int result = verification_lookup(&office.service, code, digest, out, &error);
	return result ? result : buf_check(out);
}

static int prove(int64_t sequence, struct buf *out)
{
	struct event event;
	struct json_writer writer = {.out = out};
	buf_clear(out);
	int result = store_get_event(office.service.store, office.sample.account,
	                             office.sample.live_chain, sequence, &arena, &event, &error);
	json_begin_object(&writer, NULL);
	if (!result)
		result = event_proof_json(office.service.store, office.sample.account,
		                          office.sample.live_chain, &event, &arena, &writer, &error);
	json_end_object(&writer);
	return result ? result : buf_check(out);
}

static int record(int64_t sequence, struct buf *out)
{
	struct event event;
	buf_clear(out);
	int result = store_get_event(office.service.store, office.sample.account,
	                             office.sample.live_chain, sequence, &arena, &event, &error);
	if (!result)
		result = event_evidence_record(office.service.store, NULL, office.sample.account,
		                               office.sample.live_chain, &event, &arena, out, &error);
	return result ? result : buf_check(out);
}

static int find_file(const char *name)
{
	struct issued_file file;
	return issued_file_find(&office.service, slice_of(id), slice_of(name), &file, &error);
}

TEST_CASE(what_is_there_is_never_called_missing)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	struct certification certification = office_await_certification(&office, MODE_LIVE, id);
	char verification[VERIFICATION_CODE_SIZE], name[128];
	snprintf(verification, sizeof verification, "%s", certification.verification_code);
	IN_TURN(MEMORY_AND_STORE, read_record(&out));
	assert_non_null(strstr(out.data, "\"status\":\"completed\""));
	IN_TURN(MEMORY_AND_STORE, read_list(&out));
	assert_non_null(strstr(out.data, id));
	IN_TURN(MEMORY_AND_STORE, look_up(slice_of(verification), NULL, &out));
	assert_non_null(strstr(out.data, id));
	const char *digest_text = strstr(out.data, "\"sha256\":\"") + strlen("\"sha256\":\"");
	struct sha256 digest;
	assert_true(hex_decode(slice_make(digest_text, 64), digest.bytes, SHA256_SIZE));
	IN_TURN(MEMORY_AND_STORE, look_up(slice_of(""), &digest, &out));
	assert_non_null(strstr(out.data, id));
	IN_TURN(MEMORY_AND_STORE, prove(2, &out));
	assert_non_null(strstr(out.data, "\"token\""));
	IN_TURN(MEMORY_AND_STORE, record(2, &out));
	assert_true(out.size > 1000);
	snprintf(name, sizeof name, "%s-evidence.zip", id);
	IN_TURN(MEMORY_AND_STORE, find_file(name));
	IN_TURN(MEMORY_AND_STORE, service_refresh_links(&office.service, &error));
	assert_int_equal(find_file("other.zip"), ERR_NOT_FOUND);
	assert_int_equal(look_up(slice_of(""), NULL, &out), ERR_NOT_FOUND);
	assert_int_equal(look_up(slice_of("SVC-2026-0123-4567-89AB-CDEF-GHJK-MNPQ"), NULL, &out),
	                 ERR_NOT_FOUND);
	bool more;
	int64_t last;
	assert_int_equal(certification_list(&office.service, &office.live_key, "lost", &first_page,
	                                    LANGUAGE_ENGLISH, &out, &more, &last, &error),
	                 ERR_VALIDATION);
}

/* A client without an answer asks again; the range is frozen again each time. */
TEST_CASE(a_request_is_accepted_or_told_to_have_failed)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	office.settings.certification_fee = 5;
	struct balance before, after;
	struct store *store = office.service.store;
	for (int at = 1;; at++) {
		assert_int_equal(store_get_balance(store, office.sample.account, &before, &error), OK);
		bool replayed;
		failing_arm(MEMORY_AND_STORE, at);
		int result = request(NULL, &out, &replayed);
		const char *failed = failing_disarm();
		assert_int_equal(store_get_balance(store, office.sample.account, &after, &error), OK);
		/* The request was accepted, and the buffer reports that there was no memory for the
		 * answer. */
		bool answered = !result && !buf_check(&out);
		if (result ? !failed || !failing_is_fault(result) : !failed && !answered)
			fail_msg("call %d, %s: %d", at, failed ? failed : "none", result);
		assert_int_equal(before.balance - after.balance, result ? 0 : 5);
		assert_true(!answered || strstr(out.data, "\"event_count\":3") != NULL);
		if (!failed)
			break;
	}
}

/* With an idempotency key a client that asks again pays once, whichever request failed. */
TEST_CASE(a_repeated_request_is_accepted_once)
{
	BUF_AUTO struct buf out = {.limit = 1 << 20};
	office.settings.certification_fee = 5;
	struct balance before, after;
	struct store *store = office.service.store;
	bool replayed, again;
	const char *failed = "";
	for (int at = 1; failed; at++) {
		char key[16];
		snprintf(key, sizeof key, "key %d", at);
		assert_int_equal(store_get_balance(store, office.sample.account, &before, &error), OK);
		failing_arm(MEMORY_AND_STORE, at);
		int result = request(key, &out, &replayed);
		failed = failing_disarm();
		assert_true(!result || (failed && failing_is_fault(result)));
		assert_int_equal(request(key, &out, &again), OK);
		assert_true(!replayed && again == !result);
		assert_int_equal(buf_check(&out), OK);
		assert_int_equal(store_get_balance(store, office.sample.account, &after, &error), OK);
		assert_int_equal(before.balance - after.balance, 5);
	}
	failed = "";
	for (int at = 1; failed; at++) {
		failing_arm(MEMORY_AND_STORE, at);
		int result = request("key 1", &out, &replayed);
		failed = failing_disarm();
		assert_true(result ? failed && failing_is_fault(result) : replayed);
		assert_int_equal(store_get_balance(store, office.sample.account, &before, &error), OK);
		assert_int_equal(before.balance, after.balance);
	}
}

/* ---- the store's history ---- */

TEST_CASE(a_store_that_cannot_be_read_has_not_gone_back)
{
	struct history history;
	struct signer *signer = office.service.signer;
	sample_register(&office.sample, MODE_LIVE, 1);
	office_start_jobs(&office);
	office_await_seal(&office, 4);
	office_stop_jobs(&office);
	IN_TURN(MEMORY_AND_STORE, history_check(office.service.store, signer, &history, &error));
	assert_true(history.known.round >= 2);
	assert_int_equal(history_accept(office.service.store, signer, "node", "log.example",
	                                slice_of("no"), &history, &error),
	                 ERR_REFUSED);
}

/* ---- backups ---- */

static struct backup_facts facts;

static const char *restored_url, *restored_content;

static int restore(const char *path)
{
	char *directory = arena_printf(&arena, "%s/restored", office.sample.directory);
	scratch_remove(directory);
	assert_int_equal(mkdir(directory, 0700), 0);
	struct db_options store = {.url = restored_url, .create = true};
	struct content_options content = {.url = restored_content, .create = true};
	return backup_restore(path, &store, &content, false, NULL, NULL, &facts, &error);
}

/* Returns the number of complete backups, after reading all of them. */
static size_t verify_series(const char *directory, const char *url)
{
	struct series_list list = {0};
	struct error why = {0};
	assert_int_equal(backup_series_list(directory, &list, &why), OK);
	size_t count = list.count;
	assert_string_equal(list.unreadable, "");
	for (size_t i = 0; i < count; i++) {
		char path[400];
		snprintf(path, sizeof path, "%s/%s", directory, list.items[i].name);
		int result = backup_verify(path, NULL, url, true, &facts, &why);
		if (result)
			fail_msg("%s: %s", path, error_reason(&why, result));
	}
	backup_series_free(&list);
	return count;
}

/* Many calls of making the next backup of a series; all would take minutes. */
TEST_CASE(a_series_gains_a_whole_backup_or_none)
{
	char directory[256], url[256];
	const unsigned kinds = MEMORY_AND_STORE | FAILING_FILES;
	snprintf(directory, sizeof directory, "%s/series", office.sample.directory);
	snprintf(url, sizeof url, "sqlite:%s", office.sample.directory);
	struct backup_series series = {directory, .keep = 1, .full_every = 3, .store_url = url};
	for (int at = 0;; at += 11) {
		struct series_backup made = {0};
		size_t before = at ? verify_series(directory, url) : 0;
		error_clear(&error);
		if (at)
			failing_arm(kinds, at);
		int result = backup_series_add(office.service.store, office.service.content, &series,
		                               clock_now_us(), &made, &error);
		const char *failed = at ? failing_disarm() : "none";
		if (result && (!at || !failed || !failing_is_fault(result)))
			fail_msg("call %d, %s: %d %s", at, failed ? failed : "none", result,
			         error_reason(&error, result));
		size_t after = verify_series(directory, url);
		/* A backup whose last sync failed is there, but does not count as made. */
		assert_in_range(after, result ? before : 1, before + 1);
		assert_int_equal(result ? 0 : made.facts.content_missing, 0);
		if (!failed)
			break;
	}
}

/* Every call of making and restoring a backup. A directory without a manifest is not a backup. */
TEST_CASE(a_backup_is_whole_or_none)
{
	char path[256], manifest[300], url[256], content[256];
	const unsigned kinds = MEMORY_AND_STORE | FAILING_FILES;
	snprintf(path, sizeof path, "%s/copy", office.sample.directory);
	snprintf(manifest, sizeof manifest, "%s/backup.json", path);
	snprintf(url, sizeof url, "sqlite:%s/restored/store.db", office.sample.directory);
	snprintf(content, sizeof content, "file:%s/restored/content", office.sample.directory);
	restored_url = url;
	restored_content = content;
	for (int at = 1;; at++) {
		scratch_remove(path);
		failing_arm(kinds, at);
		int result = backup_make(office.service.store, office.service.content, path, clock_now_us(),
		                         &facts, &error);
		const char *failed = failing_disarm();
		if (failed ? !failing_is_fault(result) && result : result)
			fail_msg("call %d, %s: %d %s", at, failed ? failed : "none", result,
			         error_reason(&error, result));
		if (!result)
			assert_int_equal(facts.content_missing, 0);
		if (!failed)
			break;
	}
	assert_int_equal(facts.content_objects, 5); /* a file, two reports, archive and part */
	for (int at = 1;; at++) {
		arena_reset(&arena);
		char *directory = arena_printf(&arena, "%s/restored", office.sample.directory);
		scratch_remove(directory);
		assert_int_equal(mkdir(directory, 0700), 0);
		struct db_options store = {.url = url, .create = true};
		struct content_options objects = {.url = content, .create = true};
		failing_arm(kinds, at);
		int result = backup_restore(path, &store, &objects, false, NULL, NULL, &facts, &error);
		const char *failed = failing_disarm();
		if (failed ? !failing_is_fault(result) && result : result)
			fail_msg("call %d, %s: %d %s", at, failed ? failed : "none", result,
			         error_reason(&error, result));
		if (!failed)
			break;
	}
	struct store *restored;
	struct chain_head head;
	assert_int_equal(store_open(&(struct db_options){.url = url}, &restored, &error), OK);
	assert_int_equal(
		store_get_chain(restored, office.sample.account, office.sample.live_chain, &head, &error),
		OK);
	assert_int_equal(head.sealed_sequence, 3);
	store_close(restored);
	assert_int_equal(restore(path), OK);
	assert_int_equal(unlink(manifest), 0);
	assert_int_not_equal(restore(path), OK);
	assert_int_equal(backup_make(office.service.store, office.service.content, "not/absolute",
	                             clock_now_us(), &facts, &error),
	                 ERR_USAGE);
}

/* ---- starting ---- */

TEST_CASE(the_service_starts_or_says_why_not)
{
	const unsigned kinds =
		FAILING_MEMORY | FAILING_FILES | FAILING_SQLITE | FAILING_PARTS | FAILING_SYSTEM;
	struct authorities *authorities = office.service.authorities;
	links_close(&office.service);
	service_close(&office.service);
	for (int at = 1;; at++) {
		error_clear(&error);
		failing_arm(kinds, at);
		int result = service_open(&office.settings, false, &office.service, &error);
		bool is_open = !result;
		if (!result)
			result = links_open(&office.service, &error);
		const char *failed = failing_disarm();
		if (result && (!failed || !failing_is_fault(result)))
			fail_msg("call %d, %s: %d %s", at, failed ? failed : "none", result,
			         error_reason(&error, result));
		if (!failed)
			break;
		if (is_open) {
			links_close(&office.service);
			service_close(&office.service);
		}
		assert_null(office.service.store);
	}
	office.service.authorities = authorities;
	assert_int_equal(service_signer_ready(&office.service, &error), OK);
}

int main(void)
{
	return tests_run(office_start_signer, office_stop_signer, set_up, tear_down);
}
