/* A mail server on loopback that follows a script, for tests. Asserts by cmocka. */
#ifndef SMTP_SCRIPT_H
#define SMTP_SCRIPT_H

#include <pthread.h>
#include <stddef.h>

enum smtp_stage {
	SMTP_GREETING,
	SMTP_EHLO,
	SMTP_AUTH,
	SMTP_MAIL,
	SMTP_RCPT,
	SMTP_DATA,
	SMTP_TEXT,
	SMTP_STAGES
};

#define SMTP_CONNECTIONS_MAX 8

struct smtp_script {
	/* For each connection; NULL: the usual one; "": closes the connection instead. */
	const char *answers[SMTP_CONNECTIONS_MAX][SMTP_STAGES];
	int connections;        /* to serve; 0: one */
	const char *extensions; /* more lines of EHLO's answer */
	int port;
	char heard[65536]; /* all that clients said */
	size_t size;
	int served;
	int listener;
	pthread_t thread;
};

void smtp_start(struct smtp_script *script);
/* Waits until all connections have been served, or none has come for some seconds. */
void smtp_finish(struct smtp_script *script);

#endif
