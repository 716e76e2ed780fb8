/* A file system that forgets: after a cut only what was synced is there, and by chance some of the
 * rest.
 *
 *     forgetful MOUNTPOINT SECTOR_SIZE SEED WRITE_BACK_IN
 *
 * All is held in memory. Dirty pages are torn at sectors of SECTOR_SIZE bytes; one write in
 * WRITE_BACK_IN makes unsynced data durable (0: never). Prints "mounted", then takes
 * one command a line on standard input and answers each with a line. At the end of its input it
 * unmounts and ends.
 *
 *     freeze N        in the Nth sync from now the power begins to fail: from then on nothing is
 *                     answered; 0: it does so now
 *     fail N          the Nth sync from now fails with EIO, once, and what it should have kept
 *                     stays to be seen, clean, and is never written
 *     refuse N        the Nth sync from now fails with EIO, once, and a later one may keep what it
 *                     should have kept
 *     status          "on|failing|off SYNCS FAILED"
 *     off             the power is off: what was not answered fails, and whatever is asked for
 *     cut PERCENT SEED  makes of what is there what is found after the cut, with so much of what
 *                     was not synced, and puts the power on again: the numbers of pages kept, torn
 *                     and lost, and of names kept and lost. Open files remain as they were, and
 *                     only their openers see them */
#include "operations.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_SIZE 128

/* ---- commands ---- */

static void answer_held(struct file_system *file_system, int error)
{
	if (file_system->held)
		fuse_reply_err(file_system->held, error);
	file_system->held = NULL;
}

static void power_off(struct file_system *file_system)
{
	file_system->power = POWER_OFF;
	answer_held(file_system, EIO);
}

static void cut(struct file_system *file_system, unsigned percent, uint64_t seed)
{
	struct choice choice = {.state = seed, .kept_percent = percent};
	struct cut cut = tree_cut(&file_system->tree, &choice);
	file_system->freeze_in = file_system->fail_in = 0;
	file_system->power = POWER_ON;
	answer_held(file_system, 0);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cut.pages.kept,
	       cut.pages.torn, cut.pages.lost, cut.names_kept, cut.names_lost);
}

static void obey(struct file_system *file_system, const char *command)
{
	static const char *const powers[] = {"on", "failing", "off"};
	uint64_t number = 0;
	unsigned percent = 0;
	if (sscanf(command, "freeze %" SCNu64, &number) == 1) {
		file_system->freeze_in = number;
		if (number == 0)
			file_system->power = POWER_FAILING;
		puts("ok");
	} else if (sscanf(command, "fail %" SCNu64, &number) == 1 ||
	           sscanf(command, "refuse %" SCNu64, &number) == 1) {
		file_system->fail_in = number;
		file_system->failure_forgets = *command == 'f';
		puts("ok");
	} else if (strcmp(command, "status") == 0) {
		printf("%s %" PRIu64 " %" PRIu64 "\n", powers[file_system->power], file_system->syncs,
		       file_system->failed);
	} else if (strcmp(command, "off") == 0) {
		power_off(file_system);
		puts("ok");
	} else if (sscanf(command, "cut %u %" SCNu64, &percent, &number) == 2) {
		cut(file_system, percent, number);
	} else {
		errx(2, "unknown command: %s", command);
	}
	fflush(stdout);
}

/* False at the end of the input. The writer waits for the answer: there is one line at most. */
static bool take_command(struct file_system *file_system)
{
	char command[COMMAND_SIZE];
	ssize_t size = read(STDIN_FILENO, command, sizeof command - 1);
	if (size <= 0)
		return false;
	command[size] = '\0';
	command[strcspn(command, "\n")] = '\0';
	obey(file_system, command);
	return true;
}

/* ---- requests ---- */

/* While the power is off, only what gives something back is listened to. */
static bool refuse(struct fuse_session *session, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *in = buffer->mem;
	switch (in->opcode) {
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_INTERRUPT:
	case FUSE_DESTROY: return false;
	}
	struct {
		struct fuse_out_header header;
		struct fuse_write_out written;
	} out = {.header = {.len = sizeof out.header, .error = -EIO, .unique = in->unique}};
	/* An error of writing back pages of killed processes would be reported to later ones. */
	if (in->opcode == FUSE_WRITE) {
		const struct fuse_write_in *asked = (const struct fuse_write_in *)(in + 1);
		out.header.len = sizeof out;
		out.header.error = 0;
		out.written.size = asked->size;
	}
	if (write(fuse_session_fd(session), &out, out.header.len) < 0 && errno != ENOENT)
		warn("answering");
	return true;
}

static void take_request(struct fuse_session *session, const struct file_system *file_system)
{
	static struct fuse_buf buffer; /* grown once */
	int size = fuse_session_receive_buf(session, &buffer);
	if (size <= 0 || (file_system->power == POWER_OFF && refuse(session, &buffer)))
		return;
	fuse_session_process_buf(session, &buffer);
}

static void serve(struct fuse_session *session, struct file_system *file_system)
{
	struct pollfd waited[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = fuse_session_fd(session), .events = POLLIN},
	};
	while (!fuse_session_exited(session)) {
		if (poll(waited, file_system->power == POWER_FAILING ? 1 : 2, -1) < 0)
			err(1, "poll");
		if (waited[0].revents && !take_command(file_system))
			return;
		if (file_system->power != POWER_FAILING && waited[1].revents)
			take_request(session, file_system);
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		errx(2, "usage: forgetful MOUNTPOINT SECTOR_SIZE SEED WRITE_BACK_IN");
	struct file_system file_system = {0};
	tree_init(&file_system.tree, strtoul(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
	          (unsigned)strtoul(argv[4], NULL, 10));
	char *options[] = {argv[0], "-oallow_other,default_permissions,fsname=forgetful", NULL};
	struct fuse_args arguments = FUSE_ARGS_INIT(2, options);
	struct fuse_session *session =
		fuse_session_new(&arguments, &operations, sizeof operations, &file_system);
	if (!session || fuse_session_mount(session, argv[1]) != 0)
		errx(1, "cannot mount %s", argv[1]);
	/* A request that poll announced is withdrawn when its process is killed. */
	int flags = fcntl(fuse_session_fd(session), F_GETFL);
	if (flags < 0 || fcntl(fuse_session_fd(session), F_SETFL, flags | O_NONBLOCK) != 0)
		err(1, "fcntl");
	signal(SIGINT, SIG_IGN); /* who started it ends it */
	puts("mounted");
	fflush(stdout);
	serve(session, &file_system);
	if (file_system.power == POWER_FAILING)
		power_off(&file_system);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	fuse_opt_free_args(&arguments);
	return 0;
}
