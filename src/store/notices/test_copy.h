/* Copies the account's last notice to those that programs fetch (test_notices.h), in the
 * transaction that wrote it. Private to src/store. */
#ifndef STORE_TEST_COPY_H
#define STORE_TEST_COPY_H

#include "db/db.h"

/* The caller holds the lock of the account. */
int copy_test_notice(struct db_connection *connection, int64_t account, int64_t chain,
                     int64_t now_us, struct error *error) MUST_CHECK;

#endif
