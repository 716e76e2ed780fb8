/* Proxy for tests, which fails in the ways of a network: answers are lost, incomplete or late, and
 * requests are refused for a moment.
 *
 * It accepts plain HTTP/1.1 and sends requests on to an http or https address. At most
 * FAULT_PROXY_CONNECTIONS connections are served at a time, each by a thread; bodies are in unnamed
 * files. */
#ifndef TOOLS_FAULT_PROXY_H
#define TOOLS_FAULT_PROXY_H

#include <stdatomic.h>

#include "tools/fault_plan.h"

#define FAULT_PROXY_CONNECTIONS 64
#define FAULT_PROXY_ADDRESS_SIZE 80

struct fault_report {
	uint64_t number; /* of the request, from 1 */
	enum fault fault;
	const char *method;
	struct slice path; /* without the query, which may open a download */
	int status;        /* of the upstream's answer; 0: not asked, or no answer */
};

struct fault_proxy_options {
	const char *listen;   /* "127.0.0.1:8081", "[::1]:0" */
	const char *upstream; /* address to which the path of a request is appended */
	const char *tls_roots;
	struct fault_plan *plan;
	int64_t hang_us, delay_us;
	unsigned retry_after_seconds;
	/* Called for each request before it is answered, one at a time. */
	void (*report)(void *context, const struct fault_report *report);
	void *context;
};

struct fault_proxy;
/* Listens. The options must outlive the proxy. ERR_USAGE: the address to listen on is not one.
 * ERR_VALIDATION: the upstream. ERR_IO; ERR_NO_MEMORY. */
int fault_proxy_open(const struct fault_proxy_options *options, struct fault_proxy **ret_proxy,
                     struct error *error) MUST_CHECK;
/* Writes "http://127.0.0.1:8081". */
void fault_proxy_address(const struct fault_proxy *proxy, char text[FAULT_PROXY_ADDRESS_SIZE]);
/* Serves until `stop` is set, which a signal handler may do. Returns whether all connections have
 * ended; otherwise their threads still use the proxy. */
bool fault_proxy_run(struct fault_proxy *proxy, atomic_bool *stop) MUST_CHECK;
/* Only after fault_proxy_run returned true, or was not called. NULL-safe. */
void fault_proxy_close(struct fault_proxy *proxy);

#endif
