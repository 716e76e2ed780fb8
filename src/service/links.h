/* Download links and the secrets behind them. Inside src/service only. */
#ifndef SERVICE_LINKS_H
#define SERVICE_LINKS_H

#include "service/service.h"

int links_open(struct service *service, struct error *error) MUST_CHECK;
void links_close(struct service *service);

#endif
