/* Internal to net: encodes a message for sending. */
#ifndef NET_MAIL_COMPOSE_H
#define NET_MAIL_COMPOSE_H

#include "net/mail.h"

/* Appends the message in the form that is sent, with CRLF. ERR_VALIDATION, ERR_NO_MEMORY. */
int mail_compose(const struct mail_message *message, struct buf *out, struct error *error)
	MUST_CHECK;

#endif
