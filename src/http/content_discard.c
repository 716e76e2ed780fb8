/* Deletes unused data of requests in the content store. This may block on the disk and is done by a
 * worker. Without memory for the task, the files are left to the sweep. */
#include <stdlib.h>

#include "http/http_internal.h"

struct discard {
	struct task task;
	struct http_server *server;
	struct content_writer *writer;
	struct upload_space space;
	char name[CONTENT_NAME_MAX]; /* empty: none */
};

static void run(struct task *task)
{
	struct discard *discard = (struct discard *)task;
	content_write_abort(discard->writer);
	if (*discard->name)
		content_discard(discard->server->service->content, discard->name);
	upload_space_release(&discard->space, discard->server);
	free(discard);
}

static void hand_over(struct http_server *server, struct discard given, struct upload_space *space)
{
	struct discard *discard = malloc(sizeof *discard);
	if (!discard) {
		upload_space_release(space, server);
		return;
	}
	*discard = given;
	discard->task.run = run;
	discard->server = server;
	discard->space = *space;
	space->held = 0;
	worker_submit_cleanup(server->workers[LANE_CONTENT], &discard->task);
}

void writer_discard(struct http_server *server, struct content_writer *writer,
                    struct upload_space *space)
{
	if (writer)
		hand_over(server, (struct discard){.writer = writer}, space);
}

void object_discard(struct http_server *server, const char name[CONTENT_NAME_MAX],
                    struct upload_space *space)
{
	struct discard discard = {0};
	memcpy(discard.name, name, sizeof discard.name);
	hand_over(server, discard, space);
}
