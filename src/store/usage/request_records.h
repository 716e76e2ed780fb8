/* The request log of accounts: rows about the requests of their keys, for 30 days. It never has
 * bodies, keys or other headers. Not every request has a row: nodes keep a part of many, and a
 * crash loses the last second. Thread safe. */
#ifndef STORE_USAGE_REQUEST_RECORDS_H
#define STORE_USAGE_REQUEST_RECORDS_H

#include <stdatomic.h>

#include "store/store.h"

#define REQUESTS_KEEP_US (30 * US_PER_DAY)

#define REQUEST_NUMBER_SIZE 24
#define REQUEST_PATH_SIZE 204 /* with a NUL, as is the next one */
#define REQUEST_QUERY_SIZE 304
#define REQUEST_INCIDENT_SIZE 24

/* A row to add. */
struct request_record {
	int64_t account, channel, key;
	int64_t at_us;      /* when the request began */
	int64_t number;     /* of its X-Request-Id (request_number_parse) */
	const char *method; /* a literal, as are the next one and `code`; NULL: none */
	const char *route;
	const char *code;             /* error code; NULL: none */
	char path[REQUEST_PATH_SIZE]; /* printable ASCII and "…", as is the next one */
	char query[REQUEST_QUERY_SIZE];
	char incident_id[REQUEST_INCIDENT_SIZE]; /* "": none */
	int status;                              /* 0: no answer */
	bool aborted;                            /* the client did not receive the whole answer */
	int64_t duration;                        /* microseconds */
	int64_t bytes_in, bytes_out;             /* of the bodies */
	int64_t represents;                      /* number of requests, at least 1 */
};

/* Converts an X-Request-Id, "req_" and 16 hex digits. False: it is none. */
bool request_number_parse(struct slice id, int64_t *ret_number);
void request_number_text(int64_t number, char ret[REQUEST_NUMBER_SIZE]);

/* Adds rows in one transaction, which waits for no standby. Rows whose shard server is known to be
 * unavailable are left out; *ret_added is the number of the others. */
int store_add_requests(struct store *store, const struct request_record *records, size_t count,
                       size_t *ret_added, struct error *error) MUST_CHECK;

#define REQUEST_CURSOR_SIZE 40
struct request_view {
	char cursor[REQUEST_CURSOR_SIZE]; /* position of the row, for the next page */
	char request_id[REQUEST_NUMBER_SIZE];
	int64_t at_us;
	const char *method, *route, *path, *query;
	int64_t status; /* 0: no answer */
	const char *code, *incident_id;
	int64_t duration; /* microseconds */
	int64_t bytes_in, bytes_out;
	bool aborted;
	int64_t represents;
	const char *channel_id, *channel_name, *key_id, *key_name;
	const char *mode;
};
struct request_view_list {
	struct request_view *items;
	size_t count;
	bool more;
};
struct request_filter {
	struct slice account_id;
	struct slice channel_id, key_id; /* empty: any */
	bool has_number;
	int64_t number;             /* with has_number: the request with this X-Request-Id */
	int64_t since_us, until_us; /* since inclusive, until exclusive */
	int64_t lowest_status, highest_status;
	struct slice after; /* cursor of a row; empty: the newest */
};
/* Lists the rows of an account, newest first. Returns ERR_NOT_FOUND when the account, channel or
 * key does not exist or the latter do not belong to the account, and ERR_USAGE for an invalid
 * cursor. */
int store_list_requests(struct store *store, const struct request_filter *filter, int64_t limit,
                        struct arena *arena, struct request_view_list *ret, struct error *error)
	MUST_CHECK;

/* Deletes the rows of requests that began before that time, in small transactions, until none is
 * left or *stopping (NULL: never). */
int store_forget_requests(struct store *store, int64_t before_us, const atomic_bool *stopping,
                          int64_t *ret_removed, struct error *error) MUST_CHECK;

#endif
