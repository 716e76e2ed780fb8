/* Paths, methods and the operations behind them. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "http/exchange.h"

enum method { METHOD_GET, METHOD_POST, METHOD_COUNT, METHOD_OTHER };

/* Workers of their own, so that nobody waits behind what takes longer. */
enum lane {
	LANE_OWN,     /* that of the loop: readers' or operators' */
	LANE_READERS, /* what is read from the store */
	LANE_OPERATORS,
	LANE_KEYS,     /* a key that is not known yet */
	LANE_BODIES,   /* bodies that are long: to read, check, make canonical and hash them */
	LANE_CONTENT,  /* declared content, which waits for the disk or is across a network */
	LANE_CHECKS,   /* files that were handed in, which take a processor for seconds */
	LANE_RECEIPTS, /* the same, and the signing process */
	LANE_FORMS,    /* those of the console: a commit, which may wait for a standby */
	LANE_TRIES,    /* a registration that is waited for */
	LANE_CALLS,    /* the answer of somebody else's server */
	LANE_COUNT
};

struct operation {
	bool open;       /* needs no key; counted by client address */
	unsigned bucket; /* open: which one of the address; 0: that of public pages and downloads */
	unsigned costs;  /* open: as many requests; 0: one */
	bool page;       /* for people: errors are pages too, unless JSON is preferred */
	bool tells_rate; /* open: beyond its rate it counts as a public page, and says so itself */
	bool listed;     /* a page that search engines may list */
	enum lane lane;
	bool writes;     /* refused while the channel or account is suspended */
	bool free_query; /* its own affair; `parameters` says nothing */
	bool validates;  /* finds more wrong with a request than guard_check: calls guard_forced */
	enum scenario_effect scenario;
	const char *const *parameters; /* of the query, closed by NULL */
	/* The head has been checked: sets body_limit, or answers ERR_*. NULL: a body is not looked
	 * at. */
	int (*begin)(struct exchange *exchange, struct error *error);
	/* NULL: collected in `body`. */
	int (*data)(struct exchange *exchange, struct slice data, struct error *error);
	/* On a worker of `piece_lane`: reads what is in `body`, of one that comes in pieces. */
	int (*piece)(struct exchange *exchange, struct error *error);
	enum lane piece_lane;
	/* Everything has come: answers (true), or waits and has handed the exchange over (false). NULL:
	 * `work` is done by a worker. */
	bool (*finish)(struct exchange *exchange);
	/* On a worker; answers. A non-zero result becomes answer_error. */
	int (*work)(struct exchange *exchange, struct error *error);
	/* After waiting, when nobody has answered yet. */
	void (*resumed)(struct exchange *exchange);
	/* Answers when the deadline has passed; NULL: 503. */
	void (*late)(struct exchange *exchange);
};

struct route {
	const char *pattern; /* "/v1/events/{event_id}": braces take one segment; {*}: all the rest,
	                      * which is no argument */
	const struct operation *operations[METHOD_COUNT]; /* HEAD goes with GET */
	const char *allow;
};

/* Closed by one without a pattern. */
extern const struct route public_routes[], operators_routes[];
extern const size_t public_route_count;
/* Fills exchange->route, of the loop's, and `arguments` (percent-decoded, in the arena).
 * ERR_NOT_FOUND when no pattern fits, ERR_NO_MEMORY; the route is NULL then. */
int route_find(struct exchange *exchange) MUST_CHECK;
enum method method_parse(const char *method);

extern const struct operation operation_register, operation_list_events, operation_get_event,
	operation_get_content, operation_get_evidence_record, operation_get_channel,
	operation_get_balance, operation_certify, operation_list_certifications,
	operation_get_certification, operation_get_certification_evidence_record, operation_download,
	operation_get_signers, operation_get_signer_list, operation_openapi, operation_webhooks,
	operation_verify, operation_verify_code, operation_verify_asset, operation_check_file,
	operation_error_docs, operation_home, operation_docs, operation_index, operation_reference,
	operation_security, operation_robots, operation_icon, operation_console,
	operation_console_content, operation_console_form, operation_console_try,
	operation_console_call, operation_console_receipt, operation_console_sign_in,
	operation_payment_notice, operation_server_options, operation_live, operation_ready,
	operation_metrics;

#endif
