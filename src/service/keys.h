/* The cache between the guard and the store. */
#ifndef SERVICE_KEYS_H
#define SERVICE_KEYS_H

#include "service/service.h"

struct key_cache *key_cache_make(void);
void key_cache_free(struct key_cache *cache);

#endif
