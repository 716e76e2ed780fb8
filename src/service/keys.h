/* Key texts, and the cache of key lookups between the request guard and the store. Internal to
 * src/service. */
#ifndef SERVICE_KEYS_H
#define SERVICE_KEYS_H

#include "service/service.h"

/* Generates a key: prefix_mode_ + 30 characters + checksum. */
void key_generate(const char *prefix, enum mode mode, char text[KEY_TEXT_MAX]);
bool key_well_formed(const char *prefix, struct slice key) MUST_CHECK;

struct key_cache *key_cache_make(void);
void key_cache_free(struct key_cache *cache);

#endif
