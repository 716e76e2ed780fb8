/* The secrets behind download links, for service.c. */
#ifndef SERVICE_LINKS_H
#define SERVICE_LINKS_H

#include "service/service.h"

int links_open(struct service *service, struct error *error) __attribute__((warn_unused_result));
void links_close(struct service *service);

#endif
