/* What requests leave behind at the content store. Ending it may wait for the disk, so a worker
 * does; without memory for that, files are left to the sweep. */
#include <stdlib.h>

#include "http/internal.h"

struct discard {
	struct task task;
	struct content_store *store;
	struct content_writer *writer;
	char name[CONTENT_NAME_MAX]; /* empty: none */
};

static void run(struct task *task)
{
	struct discard *discard = (struct discard *)task;
	content_write_abort(discard->writer);
	if (*discard->name)
		content_discard(discard->store, discard->name);
	free(discard);
}

static void hand_over(struct http_server *server, struct discard given)
{
	struct discard *discard = malloc(sizeof *discard);
	if (!discard)
		return;
	*discard = given;
	discard->task.run = run;
	discard->store = server->service->content;
	worker_clear_up(server->workers[LANE_CONTENT], &discard->task);
}

void writer_discard(struct http_server *server, struct content_writer *writer)
{
	if (writer)
		hand_over(server, (struct discard){.writer = writer});
}

void object_discard(struct http_server *server, const char name[CONTENT_NAME_MAX])
{
	struct discard discard = {0};
	memcpy(discard.name, name, sizeof discard.name);
	hand_over(server, discard);
}
