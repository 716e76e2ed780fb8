/* The JSON messages between the client and the program that reads trusted lists. */
#ifndef TRUSTLIST_TRUSTED_LIST_WIRE_H
#define TRUSTLIST_TRUSTED_LIST_WIRE_H

#include "base/arena.h"
#include "trustlist/trusted_list.h"

#define TRUSTED_LIST_NAME "constancia-trusted-list"
#define TRUSTED_LIST_SECONDS 60
#define TRUSTED_LIST_WIRE_MAX ((size_t)32 << 20)

struct list_request {
	struct slice roots_pem;
	int64_t at_us;
	struct list_question *questions;
	size_t count;
};
/* The response. `refused` other than "" is the reason why the list cannot be used. */
struct list_response {
	char refused[ERROR_CAUSE_MAX];
	struct list_facts facts;
	struct list_answer *answers;
	size_t count;
};

int list_request_write(const struct list_request *inquiry, struct buf *out) MUST_CHECK;
int list_response_write(const struct list_response *report, struct buf *out) MUST_CHECK;
/* These functions read a message. The result points into the arena. They return
 * ERR_INVALID_EVIDENCE if the text is not such a message. */
int list_request_read(struct slice text, struct arena *arena, struct list_request *ret_inquiry,
                      struct error *error) MUST_CHECK;
int list_response_read(struct slice text, struct arena *arena, struct list_response *ret_report,
                       struct error *error) MUST_CHECK;

#endif
