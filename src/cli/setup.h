/* `setup`: the questions about a new deployment, and the files that follow from the answers. For
 * command_setup.c, setup_questions.c, setup_ask.c and setup_write.c. */
#ifndef CLI_SETUP_H
#define CLI_SETUP_H

#include <limits.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "cli/command.h"
#include "cli/service_user.h"
#include "cli/settings_table.h"
#include "seal/signing_request.h"

#define SETUP_PAIRS_MAX 256
#define SETUP_SECRET_MAX 4096
#define SETUP_BACKUPS_USUAL "/var/backups/constancia" /* made by the package */

enum setup_number {
	SETUP_PUBLIC_URL,
	SETUP_NAME,
	SETUP_STORE,
	SETUP_STORE_PASSWORD,
	SETUP_CONTENT,
	SETUP_CONTENT_ACCESS_KEY,
	SETUP_CONTENT_SECRET_KEY,
	SETUP_TSA_URL,
	SETUP_TSA_KIND,
	SETUP_TSA_ROOTS,
	SETUP_TSA_USER,
	SETUP_TSA_PASSWORD,
	SETUP_TSA_TOKEN,
	SETUP_SEAL_KEY,
	SETUP_SEAL_CHAIN,
	SETUP_SEAL_PASSPHRASE,
	SETUP_COUNTRY,
	SETUP_ORGANIZATION,
	SETUP_ORGANIZATION_ID,
	SETUP_PUBLISH,
	SETUP_TLS_CERTIFICATE,
	SETUP_TLS_KEY,
	SETUP_MAIL,
	SETUP_MAIL_FROM,
	SETUP_MAIL_USER,
	SETUP_MAIL_PASSWORD,
	SETUP_BACKUPS,
	SETUP_SECURITY_CONTACT,
	SETUP_QUESTIONS
};

struct setup;

enum setup_need { SETUP_REQUIRED, SETUP_OPTIONAL, SETUP_FLAG_ONLY };

struct setup_question {
	unsigned topic; /* 1 to 10 */
	const char *flag;
	const char *prompt;
	const char *setting;    /* "section.key"; NULL: none of its own */
	const char *word;       /* the answer that leaves the setting at its default; NULL: none */
	const char *suggestion; /* the answer to an empty line; NULL: none */
	const char *credential; /* a secret: name of its file; the flag names a file with it */
	enum setup_need need;
	bool later;                                 /* valid only together with the next answer */
	bool (*applies)(const struct setup *setup); /* NULL: always */
	const char *(*check)(const char *text);     /* besides the check of the setting; may be NULL */
};

extern const struct setup_question setup_questions[SETUP_QUESTIONS];

/* The answers. Texts belong to the arena. */
struct setup {
	const struct command_line *line;
	struct arena arena;
	const char *path;      /* of the settings file */
	const char *directory; /* of that file */
	bool interactive;
	bool replace;
	struct stat before; /* of the settings file; all zero: none */
	struct service_user owner;
	const char *answers[SETUP_QUESTIONS]; /* NULL: not answered; a secret itself, not its file */
	/* Results. */
	const char *former; /* copy of the former file; NULL: none */
	const char *request;
	bool key_made;
};

/* A setting of the file. */
struct setup_pair {
	const struct setting *setting;
	const char *value;
};

bool setup_applies(const struct setup *setup, enum setup_number number);
/* Returns whether the answer is valid only together with the one before it. */
bool setup_is_second(enum setup_number number);
/* Returns whether the answer is the question's word, such as "none". */
bool setup_is_word(const struct setup *setup, enum setup_number number);
/* Returns whether a request for the certificate of the key is to be made. */
bool setup_wants_request(const struct setup *setup);
/* Returns the path of a file alongside the settings file; NULL: out of memory. */
const char *setup_path(struct setup *setup, const char *name);

/* Fills the settings that follow from the answers. With `reveal`, secrets are in clear, for checks;
 * else they are references to credentials. Returns their number. */
size_t setup_pairs(struct setup *setup, bool reveal, struct setup_pair pairs[SETUP_PAIRS_MAX]);
/* Checks one answer with those before it; of a pair, both with the second. Returns NULL, or what is
 * wrong. */
const char *setup_check(struct setup *setup, enum setup_number number);
/* Checks all answers together; appends a line for each problem. */
void setup_check_all(struct setup *setup, struct buf *problems);

/* setup_ask.c: takes the answers of the options, and on a terminal asks for the others. Returns 0
 * or the exit code. */
int setup_ask(struct setup *setup);
/* setup_write.c: makes the key and its request, writes the credentials and the settings file. */
int setup_write(struct setup *setup, struct error *error) MUST_CHECK;

#endif
