#include "smtp_script.h"

#include <poll.h>

#include "testing.h"
#include "loopback.h"

static const char *const usual[SMTP_STAGES] = {
	"220 ready", NULL, "235 welcome", "250 ok", "250 ok", "354 go on", "250 taken",
};

static bool say(const struct smtp_script *script, int client, enum smtp_stage stage)
{
	const char *answer = script->answers[script->served][stage];
	char text[512];
	if (!answer && stage == SMTP_EHLO)
		snprintf(text, sizeof text, "250-here\r\n%s250 SMTPUTF8\r\n",
		         script->extensions ? script->extensions : "");
	else
		snprintf(text, sizeof text, "%s\r\n", answer ? answer : usual[stage]);
	if (answer && !*answer)
		return false;
	return send(client, text, strlen(text), MSG_NOSIGNAL) > 0;
}

static bool hear_line(struct smtp_script *script, int client, char **ret_line)
{
	*ret_line = script->heard + script->size;
	while (script->size < sizeof script->heard - 1) {
		if (recv(client, script->heard + script->size, 1, 0) != 1)
			return false;
		if (script->heard[script->size++] == '\n')
			return true;
	}
	return false;
}

static bool hear_text(struct smtp_script *script, int client)
{
	char *line;
	do
		if (!hear_line(script, client, &line))
			return false;
	while (strncmp(line, ".\r\n", 3) != 0);
	return true;
}

static bool converse(struct smtp_script *script, int client, const char *line)
{
	char *rest;
	if (strncmp(line, "EHLO", 4) == 0)
		return say(script, client, SMTP_EHLO);
	if (strncmp(line, "AUTH", 4) == 0)
		return send(client, "334 \r\n", 6, MSG_NOSIGNAL) > 0 && hear_line(script, client, &rest) &&
		       say(script, client, SMTP_AUTH);
	if (strncmp(line, "MAIL", 4) == 0)
		return say(script, client, SMTP_MAIL);
	if (strncmp(line, "RCPT", 4) == 0)
		return say(script, client, SMTP_RCPT);
	if (strncmp(line, "DATA", 4) == 0)
		return say(script, client, SMTP_DATA) &&
		       (script->answers[script->served][SMTP_DATA] ||
		        (hear_text(script, client) && say(script, client, SMTP_TEXT)));
	return send(client, "221 bye\r\n", 9, MSG_NOSIGNAL) > 0 && strncmp(line, "QUIT", 4) != 0;
}

static void *serve(void *context)
{
	struct smtp_script *script = context;
	int wanted = script->connections ? script->connections : 1;
	for (; script->served < wanted; script->served++) {
		struct pollfd waiting = {.fd = script->listener, .events = POLLIN};
		char *line;
		if (poll(&waiting, 1, 20000) != 1)
			return NULL;
		int client = accept(script->listener, NULL, NULL);
		if (say(script, client, SMTP_GREETING))
			while (hear_line(script, client, &line) && converse(script, client, line))
				;
		close(client);
	}
	return NULL;
}

void smtp_start(struct smtp_script *script)
{
	script->listener = loopback_listen(&script->port);
	assert_int_equal(pthread_create(&script->thread, NULL, serve, script), 0);
}

void smtp_finish(struct smtp_script *script)
{
	pthread_join(script->thread, NULL);
	close(script->listener);
}
