/* Notices of the test mode of a channel, which its developer's programs fetch with a test key:
 * those of test certifications, and samples. Endpoints do not receive samples. The newest
 * TEST_NOTICES_MAX of a channel are kept, for a day. Thread safe. Results live in the caller's
 * arena. */
#ifndef STORE_TEST_NOTICES_H
#define STORE_TEST_NOTICES_H

#include "ledger/ledger.h"
#include "store/store.h"

#define TEST_NOTICES_MAX 1000
#define TEST_NOTICES_KEEP_US US_PER_DAY

struct test_notice {
	int64_t position; /* ascends in the order of the commits of a chain */
	char notice_id[ID_SIZE];
	const char *type;
	int64_t created_at_us;
	struct slice data; /* JSON */
};
struct test_notice_list {
	struct test_notice *items;
	size_t count;
	bool more;
};

/* Lists at most `limit` notices of the test chain after a position, oldest first. */
int store_list_test_notices(struct store *store, int64_t account, int64_t chain, int64_t after,
                            int64_t limit, struct arena *arena, struct test_notice_list *ret,
                            struct error *error) MUST_CHECK;
/* Returns the position of the last one; 0: there is none. */
int store_last_test_notice(struct store *store, int64_t account, int64_t chain,
                           int64_t *ret_position, struct error *error) MUST_CHECK;
/* Writes a sample with this type and data; sets all of *ret but `type` and `data`. */
int store_create_test_notice(struct store *store, int64_t account, int64_t chain,
                             enum notice_type type, struct slice data, int64_t now_us,
                             struct test_notice *ret, struct error *error) MUST_CHECK;
/* Removes notices written before before_us, at most `most`. */
int store_forget_test_notices(struct store *store, int64_t before_us, int64_t most,
                              int64_t *ret_removed, struct error *error) MUST_CHECK;

#endif
