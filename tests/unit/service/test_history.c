/* Whether a store was rolled back. Store and signing process are scripted; the order of their calls
 * is recorded. */
#include "testing.h"
#include "service/history.h"
#include "store/events/segments.h"

#define STORE_ID "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c"
#define ORIGIN "log.example/segments"
#define REASON "the old disk burnt"

static struct {
	struct signer_mark mark;           /* of the signing process */
	struct signer_mark last;           /* of the store */
	bool present;                      /* the store has the marked round */
	struct sha256 present_root;        /* of the store */
	int store_result, mark_result;     /* of reading */
	int confirm_result, record_result; /* of writing */
	int write_mark_result;
	uint64_t log_size;     /* of the last checkpoint of the signing process */
	int checkpoint_result; /* of reading it */
	bool has_ended;        /* the log, by the records of the store */
	int end_result;        /* of reading it */
	char told[128];        /* writers, in order */
	struct accepted_rollback rollback;
} world;

int __wrap_store_get_secret(struct store *store, const char *name, struct sha256 *ret,
                            struct error *error);
int __wrap_signer_get_mark(struct signer *signer, const char *store_id, struct signer_mark *ret,
                           struct error *error);
int __wrap_store_read_round_roots(struct store *store, int64_t round, int64_t *ret_last,
                                  struct sha256 *ret_last_root, bool *ret_present,
                                  struct sha256 *ret_root, struct error *error);
int __wrap_store_confirm(struct store *store, struct error *error);
int __wrap_signer_set_mark(struct signer *signer, const char *store_id,
                           const struct signer_mark *mark, struct error *error);
int __wrap_store_record_rollback(struct store *store, const struct accepted_rollback *rollback,
                                 struct error *error);
int __wrap_store_get_log_end(struct store *store, const char *origin, bool *ret_ended,
                             struct error *error);
int __wrap_signer_accept_mark(struct signer *signer, const char *store_id,
                              const struct signer_mark *mark, struct slice reason,
                              struct error *error);
int __wrap_signer_get_checkpoint(struct signer *signer, const char *origin, uint64_t *ret_size,
                                 struct sha256 *ret_root, struct error *error);

int __wrap_store_get_secret(struct store *store, const char *name, struct sha256 *ret,
                            struct error *error)
{
	memset(ret->bytes, 0x0c, SHA256_SIZE);
	return world.store_result;
}

int __wrap_signer_get_mark(struct signer *signer, const char *store_id, struct signer_mark *ret,
                           struct error *error)
{
	assert_string_equal(store_id, STORE_ID);
	*ret = world.mark;
	return world.mark_result;
}

int __wrap_store_read_round_roots(struct store *store, int64_t round, int64_t *ret_last,
                                  struct sha256 *ret_last_root, bool *ret_present,
                                  struct sha256 *ret_root, struct error *error)
{
	assert_int_equal(round, world.mark.round);
	*ret_last = world.last.round;
	*ret_last_root = world.last.root;
	*ret_present = world.present;
	*ret_root = world.present_root;
	return OK;
}

int __wrap_store_confirm(struct store *store, struct error *error)
{
	strcat(world.told, "confirm ");
	return world.confirm_result;
}

static void is_the_last_round(const char *store_id, const struct signer_mark *mark)
{
	assert_string_equal(store_id, STORE_ID);
	assert_int_equal(mark->round, world.last.round);
	assert_true(sha256_equal(&mark->root, &world.last.root));
}

int __wrap_signer_set_mark(struct signer *signer, const char *store_id,
                           const struct signer_mark *mark, struct error *error)
{
	is_the_last_round(store_id, mark);
	strcat(world.told, "mark ");
	return world.write_mark_result;
}

int __wrap_store_record_rollback(struct store *store, const struct accepted_rollback *rollback,
                                 struct error *error)
{
	strcat(world.told, "record ");
	world.rollback = *rollback;
	return world.record_result;
}

int __wrap_store_get_log_end(struct store *store, const char *origin, bool *ret_ended,
                             struct error *error)
{
	assert_string_equal(origin, ORIGIN);
	assert_string_equal(world.told, "record ");
	*ret_ended = world.has_ended;
	return world.end_result;
}

int __wrap_signer_accept_mark(struct signer *signer, const char *store_id,
                              const struct signer_mark *mark, struct slice reason,
                              struct error *error)
{
	is_the_last_round(store_id, mark);
	assert_true(slice_is(reason, REASON));
	strcat(world.told, "accept ");
	return world.write_mark_result;
}

int __wrap_signer_get_checkpoint(struct signer *signer, const char *origin, uint64_t *ret_size,
                                 struct sha256 *ret_root, struct error *error)
{
	assert_string_equal(origin, ORIGIN);
	*ret_size = world.log_size;
	return world.checkpoint_result;
}

/* Sets the last round of the store and the marked one, of the same history. */
static void be_at(int64_t last, int64_t marked)
{
	memset(&world, 0, sizeof world);
	world.last.round = last;
	world.last.root.bytes[0] = (uint8_t)last;
	world.mark.round = marked;
	world.mark.root.bytes[0] = world.present_root.bytes[0] = (uint8_t)marked;
	world.present = marked > 0 && marked <= last;
	if (!world.present)
		memset(world.present_root.bytes, 0xff, SHA256_SIZE); /* an empty mark */
}

static int check(struct history *ret, struct error *error)
{
	*ret = (struct history){0};
	*error = (struct error){0};
	return history_check(NULL, NULL, ret, error);
}

static int accept(struct history *ret, struct error *error)
{
	*ret = (struct history){.forked = true, .known = {.round = 99}};
	*error = (struct error){0};
	return history_accept(NULL, NULL, "node-1", ORIGIN, slice_of(REASON), ret, error);
}

TEST_CASE(a_mark_moves_on_behind_a_confirmed_round)
{
	struct history history;
	struct error error;
	be_at(8, 5);
	assert_int_equal(check(&history, &error), OK);
	assert_string_equal(world.told, "confirm mark ");
	assert_true(history_is_continuous(&history));
	assert_string_equal(history.store_id, STORE_ID);
	assert_int_equal(history.known.round, 5);
	assert_int_equal(history.found.round, 8);
	be_at(1, 0); /* the first round */
	assert_int_equal(check(&history, &error), OK);
	assert_string_equal(world.told, "confirm mark ");
}

TEST_CASE(a_store_that_stands_still_writes_nothing)
{
	struct history history;
	struct error error;
	for (int64_t round = 0; round <= 5; round += 5) {
		be_at(round, round);
		assert_int_equal(check(&history, &error), OK);
		assert_string_equal(world.told, "");
	}
}

/* A round that another node may still lose is not marked. */
TEST_CASE(what_is_not_confirmed_is_not_marked)
{
	struct history history;
	struct error error;
	be_at(8, 5);
	world.confirm_result = ERR_UNAVAILABLE;
	assert_int_equal(check(&history, &error), ERR_UNAVAILABLE);
	assert_string_equal(world.told, "confirm ");
}

TEST_CASE(a_mark_that_cannot_be_written_is_told)
{
	struct history history;
	struct error error;
	be_at(8, 5);
	world.write_mark_result = ERR_NO_SPACE;
	assert_int_equal(check(&history, &error), ERR_NO_SPACE);
	assert_true(history_is_continuous(&history));
	assert_int_equal(history.found.round, 8);
}

TEST_CASE(a_store_that_went_back_is_corrupt)
{
	struct history history;
	struct error error;
	be_at(4, 5);
	assert_int_equal(check(&history, &error), ERR_CORRUPT);
	assert_non_null(strstr(error.english, "round is 4, but this node has seen round 5"));
	assert_false(history_is_continuous(&history));
	assert_false(history.forked);
	assert_int_equal(history.found.round, 4);
	assert_string_equal(world.told, "");
}

/* The same for the mark of another installation. */
TEST_CASE(a_store_that_was_written_on_from_an_old_copy_is_corrupt)
{
	struct history history;
	struct error error;
	for (int64_t last = 5; last <= 8; last += 3) {
		be_at(last, 5);
		world.present_root.bytes[SHA256_SIZE - 1] ^= 1;
		assert_int_equal(check(&history, &error), ERR_CORRUPT);
		assert_non_null(strstr(error.english, "Round 5 of the store differs from the one"));
		assert_false(history_is_continuous(&history));
		assert_true(history.forked);
		assert_string_equal(world.told, "");
	}
}

TEST_CASE(what_cannot_be_read_is_no_history)
{
	struct history history;
	struct error error;
	be_at(4, 5);
	world.store_result = ERR_UNAVAILABLE;
	assert_int_equal(check(&history, &error), ERR_UNAVAILABLE);
	assert_int_equal(history.known.round, 0);
	world.store_result = OK;
	world.mark_result = ERR_IO;
	assert_int_equal(check(&history, &error), ERR_IO);
	assert_int_equal(accept(&history, &error), ERR_IO);
	assert_int_equal(history.known.round, 99);
	assert_string_equal(world.told, "");
}

/* First in the store, so that a mark is never set back without a record of the reason. */
TEST_CASE(going_back_is_confirmed_on_record)
{
	struct history history;
	struct error error;
	be_at(4, 5);
	assert_int_equal(accept(&history, &error), OK);
	assert_string_equal(world.told, "record accept ");
	assert_string_equal(world.rollback.node, "node-1");
	assert_true(slice_is(world.rollback.reason, REASON));
	assert_int_equal(world.rollback.round, 4);
	assert_int_equal(world.rollback.root.bytes[0], 4);
	assert_int_equal(world.rollback.known_round, 5);
	assert_int_equal(world.rollback.known_root.bytes[0], 5);
	assert_true(world.rollback.accepted_at_us > 0);
	assert_int_equal(history.known.round, 5);
	assert_false(history.forked);
	be_at(8, 5);
	world.present_root.bytes[0] ^= 1;
	assert_int_equal(accept(&history, &error), OK);
	assert_true(history.forked);
	assert_string_equal(world.told, "record accept ");
}

/* Another node, which does not know the lost trees, would sign others in their place. */
TEST_CASE(going_back_ends_a_log_that_was_signed)
{
	struct history history;
	struct error error;
	be_at(4, 5);
	assert_int_equal(accept(&history, &error), OK);
	assert_false(history.log_ended);
	assert_null(world.rollback.ended_log);
	be_at(4, 5);
	world.log_size = 1;
	assert_int_equal(accept(&history, &error), OK);
	assert_true(history.log_ended);
	assert_string_equal(world.rollback.ended_log, ORIGIN);
	be_at(4, 5);
	world.has_ended = true; /* signed by another node */
	assert_int_equal(accept(&history, &error), OK);
	assert_true(history.log_ended);
	be_at(4, 5);
	world.end_result = ERR_UNAVAILABLE;
	assert_int_equal(accept(&history, &error), ERR_UNAVAILABLE);
	assert_string_equal(world.told, "record ");
	be_at(4, 5);
	world.checkpoint_result = ERR_UNAVAILABLE;
	assert_int_equal(accept(&history, &error), ERR_UNAVAILABLE);
	assert_string_equal(world.told, "");
}

TEST_CASE(what_did_not_go_back_is_not_confirmed)
{
	struct history history;
	struct error error;
	for (int64_t last = 5; last <= 8; last += 3) {
		be_at(last, 5);
		assert_int_equal(accept(&history, &error), ERR_REFUSED);
		assert_string_equal(world.told, "");
	}
	be_at(4, 5);
	world.record_result = ERR_UNAVAILABLE;
	assert_int_equal(accept(&history, &error), ERR_UNAVAILABLE);
	assert_string_equal(world.told, "record ");
	assert_int_equal(history.known.round, 99);
}

TEST_MAIN(NULL, NULL)
