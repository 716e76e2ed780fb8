/* What is checked of every request before its body: framing, path and method, key, state, rate,
 * forced scenario and query, in this order. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include "http/exchange.h"

/* Fills exchange->head; slices live as long as the request. */
void guard_read_head(struct exchange *exchange);
/* 0 or ERR_*; fills route, operation, key, rate and parameters. */
int guard_check(struct exchange *exchange, const char *method, struct error *error)
	__attribute__((warn_unused_result));

#endif
