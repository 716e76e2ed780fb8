/* Connects to every remote service that a node depends on, as the node would: with the same address
 * guard, credentials and time-outs. Leaves nothing changed. */
#ifndef CLI_CONNECTION_PROBE_H
#define CLI_CONNECTION_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/settings.h"

struct connection {
	const char *what;    /* "database", "authority", … */
	const char *setting; /* the setting to correct after a failure */
	bool failed;
	const char *text; /* description of the peer, or the error */
	int64_t took_us;
};

/* `running`: a service runs with the data directory and holds the embedded store. `begin` is called
 * before each check and `end` with its result, in order. `warn` is called between them for settings
 * that work but are not recommended. */
struct connection_probe_listener {
	void (*begin)(void *context, const char *what);
	void (*end)(void *context, const struct connection *connection);
	void (*warn)(void *context, const char *setting, const char *text);
	void *context;
};
/* `keys`: the keys that node_check_start found (cli/node_parts.h). */
struct node_keys;
void probe_connections(const struct settings *settings, const struct node_keys *keys, bool running,
                       const struct connection_probe_listener *listener);

#endif
