/* The store, with each call failing in turn: memory, and statements of its database. A fault is
 * reported as a fault, nothing of the change is done, and the operation succeeds when it is
 * repeated. */
#include <unistd.h>

#include "testing.h"
#include "failing.h"
#include "registering.h"
#include "sample.h"
#include "store/audit/form_dedup.h"
#include "store/certifications/certifications.h"
#include "store/certifications/idempotency.h"
#include "store/certifications/link_secrets.h"
#include "store/check/inspect.h"
#include "store/events/segments.h"
#include "store/money/packs.h"
#include "store/money/purchases.h"
#include "store/money/topup.h"
#include "store/nodes/leases.h"
#include "store/nodes/sweeps.h"
#include "store/notices/deliveries.h"
#include "store/notices/mails.h"
#include "store/notices/webhooks.h"
#include "store/usage/request_records.h"
#include "store/usage/totals.h"

#define LEASE_US (60 * US_PER_SECOND)

static struct sample sample;
static struct arena arena;
static struct error error;

static bool is_fault(int result)
{
	return result == ERR_UNAVAILABLE || result == ERR_IO || result == ERR_NO_MEMORY;
}

/* Returns whether to continue after an attempt in which the `at`-th call was to fail. */
static bool goes_on(const char *what, int at, int result)
{
	const char *failed = failing_disarm();
	if (failed ? !is_fault(result) : result)
		fail_msg("%s, call %d, %s: %d %s", what, at, failed ? failed : "none", result, error.cause);
	return failed;
}

/* Makes each call of the expression fail in turn, then none. */
#define IN_TURN(expression)                                                                        \
	do {                                                                                           \
		int at = 0, code;                                                                          \
		do {                                                                                       \
			error = (struct error){0};                                                             \
			failing_arm(FAILING_MEMORY | FAILING_SQLITE, ++at);                                    \
			code = (expression);                                                                   \
		} while (goes_on(#expression, at, code));                                                  \
	} while (0)

static int set_up(void **state)
{
	sample_open(&sample, MODALITY_CONTENT, 100000);
	arena_init(&arena, (size_t)64 << 20);
	return 0;
}

static int tear_down(void **state)
{
	sample_close(&sample);
	arena_free(&arena);
	return 0;
}

/* ---- registration ---- */

static struct registration make_item(enum mode mode, const char *ref)
{
	struct registration item = {.account = sample.account,
	                            .channel = sample.channel,
	                            .chain = mode == MODE_TEST ? sample.test_chain : sample.live_chain,
	                            .key = 1,
	                            .declaration = {.modality = MODALITY_CONTENT,
	                                            .client_ref = slice_of(ref),
	                                            .occurred_at_us = TIME_NONE},
	                            .content = slice_of("{}"),
	                            .content_bytes = 2,
	                            .arena = &arena};
	struct sha256 hash = sha256_of("{}", 2);
	memcpy(item.declaration.hash, hash.bytes, sizeof hash.bytes);
	return item;
}

static void no_problem(void *context, const char *text)
{
	(void)context;
	fail_msg("%s", text);
}

/* Whatever failed before, the complete store is consistent. */
static void check_all(int64_t events)
{
	struct check_report report;
	struct check_listener listener = {.problem = no_problem};
	assert_int_equal(store_check(sample.store, &listener, &report, &error), OK);
	assert_int_equal(report.events, events);
}

TEST_CASE(opens_when_nothing_fails_any_more)
{
	sample_register(&sample, MODE_LIVE, 3);
	store_close(sample.store);
	IN_TURN(store_open(&(struct db_options){.url = sample.url}, &sample.store, &error));
	sample_register(&sample, MODE_LIVE, 1);
	IN_TURN(store_ready(sample.store, &error));
	IN_TURN(store_confirm(sample.store, &error));
	struct sweep_grant turn;
	IN_TURN(store_take_sweep_token(sample.store, "", 0, &turn, &error));
	struct check_report report;
	struct check_listener listener = {.problem = no_problem};
	IN_TURN(store_check(sample.store, &listener, &report, &error));
	assert_int_equal(report.events, 4);
}

static struct registration items[5];
static struct event rooms[5];
static struct error errors[5];

/* Registers three new events of two modes, a repetition and a conflict in one batch. */
static int register_some(void)
{
	static const char *const refs[] = {"a", "b", "a", "order-1", "order-2"};
	struct registration *list[5];
	for (size_t i = 0; i < 5; i++) {
		items[i] = make_item(i == 2 ? MODE_TEST : MODE_LIVE, refs[i]);
		/* Without memory of its own, an item would fail alone or have no message. */
		items[i].room = &rooms[i];
		items[i].error = &errors[i];
		list[i] = &items[i];
	}
	items[3].content = slice_of("{\"order\":1}");
	items[3].content_bytes = (int64_t)items[3].content.size;
	struct sha256 hash = sha256_of(items[3].content.data, items[3].content.size);
	memcpy(items[3].declaration.hash, hash.bytes, sizeof hash.bytes);
	return register_items(sample.store, list, 5, sample.now_us + 10, &error);
}

TEST_CASE(registers_whole_batches_or_nothing)
{
	sample_register(&sample, MODE_LIVE, 2);
	char id[ID_SIZE];
	struct slice account = slice_of(sample.account_id);
	IN_TURN(store_create_webhook(sample.store, account, "https://example.org/", NULL, sample.now_us,
	                             id, &error));
	IN_TURN(store_create_threshold(sample.store, account, 99997, id, &error));
	IN_TURN(store_create_limit(sample.store, slice_of(sample.channel_id), slice_of(""), PERIOD_DAY,
	                           3, false, sample.now_us, id, &error));
	IN_TURN(register_some());
	assert_int_equal(items[0].result, OK);
	assert_int_equal(items[0].event->sequence, 3);
	assert_int_equal(items[1].event->sequence, 4);
	assert_int_equal(items[2].event->sequence, 1);
	assert_true(items[3].replayed);
	assert_int_equal(items[4].result, ERR_CONFLICT);
	struct balance balance;
	IN_TURN(store_get_balance(sample.store, sample.account, &balance, &error));
	assert_int_equal(balance.balance, 99996);
	struct event event;
	IN_TURN(store_get_event(sample.store, sample.account, sample.live_chain, 4, &arena, &event,
	                        &error));
	assert_true(slice_is(event.declaration.client_ref, "b"));
	int64_t first, last;
	IN_TURN(store_resolve_times(sample.store, sample.account, sample.live_chain, sample.now_us + 1,
	                            INT64_MAX, &first, &last, &error));
	assert_int_equal(first, 3);
	assert_int_equal(last, 4);
	struct delivery_counts counts;
	IN_TURN(store_count_deliveries(sample.store, &counts, &error));
	assert_int_equal(counts.waiting, 2); /* the threshold's and the limit's */
	atomic_bool stop = false;
	int64_t unbalanced;
	IN_TURN(store_count_unbalanced(sample.store, &stop, &unbalanced, &error));
	assert_int_equal(unbalanced, 0);
	check_all(5);
}

/* ---- sealing and certifications ---- */

static int take_document(void *context, struct slice document)
{
	return document.size > 0 ? OK : ERR_CORRUPT;
}

static void seal(void)
{
	struct unsealed_chain chain;
	size_t count, failed;
	IN_TURN(store_list_unsealed(sample.store, 0, 0, 1, &chain, &count, &error));
	assert_int_equal(count, 1);
	struct sha256 hashes[8];
	IN_TURN(store_read_chain_hashes(sample.store, chain.account, chain.chain, chain.sealed_sequence,
	                                chain.last_sequence, hashes, &error));
	struct round_record round = {.authority = "a",
	                             .kind = "development",
	                             .sealed_at_us = sample.now_us,
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t")};
	IN_TURN(store_last_round(sample.store, &round.round, &round.token_hash, &error));
	round.round++;
	struct segment_record segment = {.account = chain.account,
	                                 .chain = chain.chain,
	                                 .number = chain.sealed_segment + 1,
	                                 .segment_id = "seg_1",
	                                 .first_sequence = chain.sealed_sequence + 1,
	                                 .last_sequence = chain.last_sequence,
	                                 .document = slice_of("{}"),
	                                 .nodes = slice_of("n")};
	struct staged_round staged;
	IN_TURN(store_get_staged_round(sample.store, &staged, &error));
	assert_int_equal(staged.blocks, 0);
	struct round_block block = {.round = round.round, .events = 1};
	IN_TURN(store_stage_block(sample.store, &block, &segment, 1, &failed, &error));
	IN_TURN(store_unstage_block(sample.store, round.round, 0, &error));
	IN_TURN(store_stage_block(sample.store, &block, &segment, 1, &failed, &error));
	struct slice roots;
	IN_TURN(store_read_block(sample.store, round.round, 0, &arena, &roots, &block.events, &error));
	assert_true(slice_equal(roots, slice_make(&segment.root, SHA256_SIZE)));
	bool awaited;
	IN_TURN(store_round_is_awaited(sample.store, &awaited, &error));
	IN_TURN(store_list_wanted(sample.store, 1, &chain, &count, &error));
	struct round_token second = {.authority = "b",
	                             .kind = "development",
	                             .request = slice_of("r"),
	                             .response_head = slice_of("h"),
	                             .token = slice_of("t")};
	round.blocks = roots;
	IN_TURN(store_get_staged_round(sample.store, &staged, &error));
	round.staged_changes = staged.changes;
	round.second = &second;
	IN_TURN(store_write_round(sample.store, &round, &error));
	IN_TURN(store_get_second_token(sample.store, round.round, &arena, &second, &error));
	struct round_record read;
	IN_TURN(store_get_round(sample.store, 1, &arena, &read, &error));
	IN_TURN(store_find_segment(sample.store, sample.account, sample.live_chain, 2, &arena, &segment,
	                           &error));
	IN_TURN(store_get_segment(sample.store, sample.account, sample.live_chain, 1, &arena, &segment,
	                          &error));
	int64_t segment_round;
	IN_TURN(store_read_segment_rounds(sample.store, sample.account, sample.live_chain, 1, 1,
	                                  &segment_round, NULL, &error));
	int64_t seal_bytes;
	IN_TURN(store_measure_seals(sample.store, sample.account, sample.live_chain, 1, 1, &seal_bytes,
	                            &error));
	IN_TURN(store_read_seals(sample.store, sample.account, sample.live_chain, 1, 1, take_document,
	                         NULL, &error));
	int64_t sealed_us, last;
	bool present;
	struct sha256 last_root, root;
	IN_TURN(store_last_seal_time(sample.store, &sealed_us, &error));
	assert_int_equal(sealed_us, sample.now_us);
	IN_TURN(store_read_round_roots(sample.store, 1, &last, &last_root, &present, &root, &error));
	assert_true(present);
}

static struct certification accept(const char *key)
{
	struct certification made = {.account = sample.account,
	                             .channel = sample.channel,
	                             .chain = sample.live_chain,
	                             .key = 1,
	                             .mode = MODE_LIVE,
	                             .requested_at_us = sample.now_us,
	                             .range = {TIME_NONE, TIME_NONE, 1, 3},
	                             .first_sequence = 1,
	                             .last_sequence = 3,
	                             .config_versions = "[1]",
	                             .fee = 50,
	                             .idempotency_key = key};
	memcpy(made.channel_id, sample.channel_id, ID_SIZE);
	struct certification_range by_time = {.from_us = 1, .to_us = INT64_MAX};
	struct ledger_clock clock = {.now_us = sample.now_us};
	int64_t cut_us;
	IN_TURN(store_close_range(sample.store, sample.account, sample.live_chain, &by_time, &clock,
	                          &cut_us, &error));
	IN_TURN(store_accept_certification(sample.store, "SVC", 10, &made, &error));
	return made;
}

static struct certification claim(void)
{
	struct certification_claim claim = {
		.holder = "h", .now_us = sample.now_us, .lease_us = LEASE_US};
	struct certification claimed;
	IN_TURN(store_claim_certification(sample.store, &claim, &arena, &claimed, &error));
	return claimed;
}

/* What was added is deleted, whatever failed before. */
TEST_CASE(logs_requests)
{
	const struct request_record records[] = {
		{.account = sample.account, .at_us = 1, .number = 1, .represents = 1},
		{.account = sample.account, .at_us = 2, .number = 2, .represents = 1},
	};
	const struct request_filter filter = {
		.account_id = slice_of(sample.account_id),
		.channel_id = slice_of(sample.channel_id),
		.until_us = INT64_MAX,
	};
	struct request_view_list list;
	size_t added;
	int64_t removed;
	IN_TURN(store_add_requests(sample.store, records, 2, &added, &error));
	assert_int_equal(added, 2);
	IN_TURN(store_list_requests(sample.store, &filter, 10, &arena, &list, &error));
	IN_TURN(store_forget_requests(sample.store, 3, NULL, &removed, &error));
	assert_int_equal(sample_number(&sample, "SELECT COUNT(*) FROM requests"), 0);
}

TEST_CASE(certifies)
{
	sample_register(&sample, MODE_LIVE, 3);
	struct certification made = accept("a"), other = accept(NULL);
	struct slice id = slice_of(made.certification_id);
	struct certification read;
	int64_t removed;
	IN_TURN(store_find_repeated(sample.store, sample.account, sample.live_chain, "a", sample.now_us,
	                            &made.range, made.seal_history, &arena, &read, &error));
	assert_string_equal(read.certification_id, made.certification_id);
	IN_TURN(store_forget_idempotency_keys(sample.store, sample.now_us + US_PER_DAY, 1, &removed,
	                                      &error));
	assert_int_equal(removed, 1);
	IN_TURN(store_find_overdue_certification(sample.store, INT64_MAX, 0, &arena, &read, &error));
	seal();
	IN_TURN(store_retry_certification(sample.store, id, sample.now_us, &error));
	made = claim();
	IN_TURN(
		store_renew_certification(sample.store, &made, "h", sample.now_us + LEASE_US, 500, &error));
	const struct certification_delay delay = {.next_us = sample.now_us, .cause = "no"};
	IN_TURN(store_delay_certification(sample.store, &made, "h", &delay, &error));
	made = claim();
	struct document documents[3] = {
		{.kind = DOCUMENT_REPORT, .language = LANGUAGE_SPANISH, .name = "es", .object = "issued/1"},
		{.kind = DOCUMENT_REPORT, .name = "en", .object = "issued/2", .sha256 = {{1}}},
		{.kind = DOCUMENT_EVIDENCE, .name = "zip", .object = "issued/3"}};
	IN_TURN(store_complete_certification(sample.store, &made, "h", sample.now_us, documents, 3,
	                                     &error));
	other = claim();
	char incident[ID_SIZE];
	IN_TURN(
		store_fail_certification(sample.store, &other, "h", "no", sample.now_us, incident, &error));
	struct document *list, found;
	size_t count;
	IN_TURN(store_list_documents(sample.store, made.account, made.certification, &arena, &list,
	                             &count, &error));
	assert_int_equal(count, 3);
	id = slice_of(made.certification_id);
	IN_TURN(store_find_document(sample.store, id, slice_of("zip"), &found, &error));
	assert_string_equal(found.object, "issued/3");
	IN_TURN(store_find_issued(sample.store, slice_of(made.verification_code), NULL, &arena, &read,
	                          &error));
	struct sha256 digest = {{1}};
	IN_TURN(store_find_issued(sample.store, slice_of(""), &digest, &arena, &read, &error));
	assert_string_equal(read.certification_id, made.certification_id);
	bool named;
	IN_TURN(store_is_object_referenced(sample.store, "issued/2", &named, &error));
	assert_true(named);
	IN_TURN(store_forget_usage(sample.store, sample.now_us + 3 * US_PER_DAY, &error));
	struct balance balance;
	IN_TURN(store_get_balance(sample.store, sample.account, &balance, &error));
	assert_int_equal(balance.balance, 100000 - 3 - 50); /* one fee was refunded */
}

/* ---- notices and mails ---- */

static int note_endpoint(void *context, int64_t account, int64_t endpoint)
{
	int64_t *numbers = context;
	numbers[0] = account;
	numbers[1] = endpoint;
	return 0;
}

static struct attempt_record load(const int64_t numbers[2], enum delivery_end end)
{
	struct delivery_batch batch;
	IN_TURN(store_load_deliveries(sample.store, numbers[0], numbers[1], sample.now_us, 10, &arena,
	                              &batch, &error));
	assert_int_equal(batch.count, 1);
	return (struct attempt_record){.account = numbers[0],
	                               .endpoint = numbers[1],
	                               .notice = batch.items[0].notice,
	                               .attempts = batch.items[0].attempts,
	                               .tries = batch.items[0].tries,
	                               .end = end,
	                               .at_us = sample.now_us,
	                               .next_at_us = sample.now_us,
	                               .error = "no answer"};
}

static void send_mail_about(const char *template_name)
{
	struct mail mail;
	int64_t due_us = sample.now_us + LEASE_US;
	IN_TURN(store_claim_mail(sample.store, NULL, "h", due_us, LEASE_US, &arena, &mail, &error));
	assert_string_equal(mail.template_name, template_name);
	IN_TURN(store_delay_mail(sample.store, &mail, "h", due_us, "later", &error));
	IN_TURN(store_claim_mail(sample.store, NULL, "h", due_us, LEASE_US, &arena, &mail, &error));
	IN_TURN(store_end_mail(sample.store, &mail, "h", MAIL_SENT, NULL, sample.now_us, &error));
	assert_string_equal(sample_find_mail(&sample, &arena).state, "sent");
	IN_TURN(store_forget_mails(sample.store, INT64_MAX, &error));
	IN_TURN(store_remove_old_forms(sample.store, INT64_MAX, &error));
}

static void set_email(void)
{
	struct account_change change = ACCOUNT_UNCHANGED;
	change.email = "owner@example.org";
	IN_TURN(store_change_account(sample.store, slice_of(sample.account_id), &change, sample.now_us,
	                             &error));
}

TEST_CASE(delivers)
{
	set_email();
	char endpoint[ID_SIZE], id[ID_SIZE];
	struct slice account = slice_of(sample.account_id);
	IN_TURN(store_create_webhook(sample.store, account, "https://example.org/", NULL, sample.now_us,
	                             endpoint, &error));
	IN_TURN(store_create_threshold(sample.store, account, 100, id, &error));
	struct credit_outcome outcome;
	struct credit_movement movement = {.credits = -99990, .kind = "adjustment"};
	IN_TURN(store_move_credits(sample.store, account, &movement, sample.now_us, &outcome, &error));
	int64_t numbers[2], next_us, removed;
	IN_TURN(store_next_delivery(sample.store, &next_us, &error));
	assert_true(next_us <= sample.now_us);
	IN_TURN(store_each_due_webhook(sample.store, sample.now_us, note_endpoint, numbers, &error));
	struct attempt_record record = load(numbers, DELIVERY_AGAIN);
	IN_TURN(store_record_attempts(sample.store, &record, 1, 1, sample.now_us, &error));
	record = load(numbers, DELIVERY_USED_UP);
	IN_TURN(store_record_attempts(sample.store, &record, 1, 1, sample.now_us, &error));
	assert_true(record.disabled);
	send_mail_about(MAIL_ENDPOINT_DISABLED);
	struct webhook_record webhook;
	IN_TURN(store_find_webhook(sample.store, slice_of(endpoint), &arena, &webhook, &error));
	assert_string_equal(webhook.disabled_by, "failures");
	IN_TURN(store_delete_webhook(sample.store, slice_of(endpoint), sample.now_us, &error));
	IN_TURN(store_forget_notices(sample.store, INT64_MAX, 100, &removed, &error));
	IN_TURN(store_count_deliveries(sample.store, &(struct delivery_counts){0}, &error));
}

TEST_CASE(disables_idle_accounts)
{
	set_email();
	int64_t count;
	IN_TURN(store_disable_idle_accounts(sample.store, INT64_MAX, &count, &error));
	struct account_record account;
	IN_TURN(store_find_account(sample.store, slice_of(sample.account_id), sample.now_us, &arena,
	                           &account, &error));
	assert_true(account.disabled);
	send_mail_about(MAIL_ACCOUNT_DISABLED);
}

/* ---- purchases ---- */

static struct payment claim_payment(void)
{
	struct payment payment;
	IN_TURN(store_claim_payment(sample.store, "h", "stripe", sample.now_us, LEASE_US, &arena,
	                            &payment, &error));
	return payment;
}

static void make_topup(const char *pack_name)
{
	struct slice account = slice_of(sample.account_id);
	struct billing_change billing = {
		.country = "ES", .tax_rate = 2100, .customer = "cus_1", .payment_method = "pm_1"};
	IN_TURN(store_change_billing(sample.store, account, &billing, &error));
	struct pack_record pack = {
		.name = pack_name, .credits = 10, .amount_minor = 1000, .currency = CURRENCY_EUR};
	char pack_id[ID_SIZE];
	IN_TURN(store_create_pack(sample.store, &pack, sample.now_us, pack_id, &error));
	IN_TURN(store_set_topup(sample.store, account, slice_of(pack_id), 200000, 3, &error));
	int64_t due;
	IN_TURN(store_next_due_topup(sample.store, 0, &due, &error));
	assert_int_equal(due, sample.account);
	enum topup_action action;
	IN_TURN(store_run_topup(sample.store, due, "stripe", sample.now_us, &action, &error));
	assert_int_equal(action, TOPUP_BUY);
}

TEST_CASE(buys_and_gives_back)
{
	make_topup("Pack");
	struct payment payment = claim_payment();
	struct payment_delay delay = {sample.now_us + LEASE_US, true, "ch_1", "later"};
	IN_TURN(store_delay_payment(sample.store, &payment, "h", &delay, &error));
	IN_TURN(store_expedite_payment(sample.store, slice_of(payment.idempotency_key),
	                               slice_of(payment.sale_id), sample.now_us, &error));
	payment = claim_payment();
	struct payment_ended ended = {PAYMENT_END_DONE, "paid", "ch_1", NULL, NULL};
	struct purchase_outcome outcome;
	IN_TURN(
		store_end_payment(sample.store, &payment, "h", &ended, sample.now_us, &outcome, &error));
	assert_int_equal(outcome.balance, 100010);
	IN_TURN(store_request_refund(sample.store, slice_of(payment.sale_id), sample.now_us, &error));
	payment = claim_payment();
	IN_TURN(
		store_end_payment(sample.store, &payment, "h", &ended, sample.now_us, &outcome, &error));
	assert_int_equal(outcome.state, PURCHASE_REFUNDED);
	assert_int_equal(outcome.balance, 100000);
}

TEST_CASE(tells_of_a_topup_that_fails)
{
	set_email();
	make_topup("Other");
	struct payment payment = claim_payment();
	struct payment_ended ended = {PAYMENT_END_DECLINED, "declined", NULL, "https://pay.example/",
	                              "no money"};
	struct purchase_outcome outcome;
	IN_TURN(
		store_end_payment(sample.store, &payment, "h", &ended, sample.now_us, &outcome, &error));
	assert_int_equal(outcome.recharge, RECHARGE_FAILED);
	send_mail_about(MAIL_TOPUP_FAILED);
	struct purchase_order order = {.act = PURCHASE_PAY, .sale_id = slice_of(payment.sale_id)};
	IN_TURN(store_change_purchase(sample.store, &order, sample.now_us, &outcome, &error));
	assert_int_equal(outcome.balance, 100010);
}

/* ---- small things ---- */

TEST_CASE(keeps_leases_and_secrets)
{
	bool taken;
	IN_TURN(
		store_take_lease(sample.store, LEASE_SEALER, "h", sample.now_us, LEASE_US, &taken, &error));
	assert_true(taken);
	IN_TURN(store_end_lease(sample.store, LEASE_SEALER, "h", &error));
	struct sha256 secret;
	IN_TURN(store_get_secret(sample.store, "some", &secret, &error));
	struct link_secret secrets[LINK_SECRETS_MAX];
	size_t count;
	IN_TURN(store_read_link_secrets(sample.store, secrets, &count, &error));
	IN_TURN(store_rotate_link_secret(sample.store, 0, US_PER_DAY, false, &error));
	IN_TURN(store_read_link_secrets(sample.store, secrets, &count, &error));
	assert_int_equal(count, 2);
	struct accepted_rollback rollback = {.accepted_at_us = sample.now_us,
	                                     .node = "n",
	                                     .round = 1,
	                                     .known_round = 2,
	                                     .reason = slice_of("a copy was restored")};
	IN_TURN(store_record_rollback(sample.store, &rollback, &error));
}

TEST_MAIN_EACH(set_up, tear_down)
