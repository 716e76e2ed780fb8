/* Asks everything that a service depends on across a network, as the service would: each address
 * under the same guard, with the same credentials and time-outs. Nothing stays changed. */
#ifndef CLI_CONNECT_H
#define CLI_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "service/settings.h"

struct connection {
	const char *what;    /* "database", "authority", … */
	const char *setting; /* where to mend what failed */
	bool failed;
	const char *text; /* what answered, or why nothing good did */
	int64_t took_us;
};

/* `running`: a service runs with the data directory, and has its embedded store. `begin` is told of
 * what is tried next, `end` what became of it; both in order. `warn`, between them, of what serves
 * but had better be otherwise. */
struct connect_listener {
	void (*begin)(void *context, const char *what);
	void (*end)(void *context, const struct connection *connection);
	void (*warn)(void *context, const char *setting, const char *text);
	void *context;
};
/* `keys`: what node_try found of them (cli/node_parts.h). */
struct node_keys;
void connect_all(const struct settings *settings, const struct node_keys *keys, bool running,
                 const struct connect_listener *listener);

#endif
