/* Paths, methods and their operations. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include "http/cors.h"
#include "http/exchange.h"

enum method { METHOD_GET, METHOD_POST, METHOD_COUNT, METHOD_OTHER };

/* Separate worker pools, so that slow tasks do not delay others. */
enum lane {
	LANE_OWN,     /* the pool of the loop: readers or operators */
	LANE_READERS, /* reads of the store */
	LANE_OPERATORS,
	LANE_KEYS,        /* lookups of keys that are not cached */
	LANE_BODIES,      /* long bodies: parsing, checking, canonicalisation and hashing */
	LANE_CONTENT,     /* declared content: waits for the disk or the network */
	LANE_CHECKS,      /* verification of uploaded files: takes CPU seconds */
	LANE_FORMS,       /* forms of the console: a commit, which may wait for a standby */
	LANE_TEST_EVENTS, /* registrations from the console */
	LANE_EXTERNAL,    /* calls to external servers */
	LANE_COUNT
};

struct operation {
	bool open;       /* needs no key; rate limited by client address */
	unsigned bucket; /* open: bucket of the address; 0: public pages and downloads */
	unsigned costs;  /* open: tokens per request; 0: one */
	bool page;       /* an HTML page: errors are pages too, unless JSON is preferred */
	/* open: above its rate it takes a token of public pages and reports the refusal itself */
	bool reports_rate;
	bool listed; /* search engines may index the page */
	enum lane lane;
	bool writes;       /* refused while the channel or account is suspended */
	bool parses_query; /* the operation parses the query itself; `parameters` is unused */
	bool validates;    /* validates further than guard_check, then calls guard_forced_error */
	enum scenario_effect scenario;
	const char *const *parameters; /* query parameters, NULL-terminated */
	/* Called after the head was checked: sets body_limit, or returns ERR_*. NULL: the body is
	 * ignored. */
	int (*begin)(struct exchange *exchange, struct error *error);
	/* Called with received data. NULL: it is collected in `body`. */
	int (*data)(struct exchange *exchange, struct slice data, struct error *error);
	/* Parses the chunk in `body`. On a worker of `chunk_lane`. */
	int (*piece)(struct exchange *exchange, struct error *error);
	enum lane chunk_lane;
	/* Called after the complete request: answers (true), or waits after passing the exchange on
	 * (false). NULL: a worker runs `work`. */
	bool (*finish)(struct exchange *exchange);
	/* Answers; on a worker. A non-zero result is passed to answer_error. */
	int (*work)(struct exchange *exchange, struct error *error);
	/* Called after waiting if there is no answer yet. */
	void (*resumed)(struct exchange *exchange);
	/* Answers if the deadline has passed; NULL: 503. */
	void (*late)(struct exchange *exchange);
};

struct route {
	/* "/v1/events/{event_id}": a placeholder matches one segment; {*} matches the rest and is no
	 * argument */
	const char *pattern;
	const struct operation *operations[METHOD_COUNT]; /* HEAD uses GET */
	const char *allow;
	enum cors cors; /* origins whose pages may read the answers */
};

/* Terminated by an entry without a pattern. */
extern const struct route public_routes[], operators_routes[];
extern const size_t public_route_count;
/* Finds the route among those of the loop; sets exchange->route and `arguments` (percent-decoded,
 * in the arena). ERR_NOT_FOUND: no pattern matches, ERR_NO_MEMORY; the route is then NULL. */
int route_find(struct exchange *exchange) MUST_CHECK;
/* Finds the route of a path of the public interface without reading its arguments; NULL: none. */
const struct route *route_of_path(struct slice path);
enum method method_parse(const char *method);

extern const struct operation operation_register, operation_register_batch, operation_list_events,
	operation_get_event, operation_get_content, operation_get_evidence_record,
	operation_get_channel, operation_get_channel_seals, operation_get_balance,
	operation_list_notices, operation_create_notice, operation_certify,
	operation_list_certifications, operation_get_certification,
	operation_get_certification_evidence_record, operation_download, operation_get_signers,
	operation_get_signer_list, operation_get_log_checkpoint, operation_get_log_tile,
	operation_openapi, operation_webhooks, operation_verify, operation_verify_code,
	operation_verify_asset, operation_check_file, operation_error_docs, operation_home,
	operation_docs, operation_index, operation_reference, operation_security, operation_robots,
	operation_icon, operation_console, operation_console_content, operation_console_form,
	operation_console_try, operation_console_call, operation_console_sign_in,
	operation_payment_notice, operation_server_options, operation_preflight, operation_live,
	operation_ready, operation_metrics;

#endif
