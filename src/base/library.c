#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>

static int load(struct library *library, struct error *error)
{
	void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return error_cause(error, ERR_UNAVAILABLE, "%s", dlerror());
	for (size_t i = 0; i < library->count; i++) {
		void *address = dlsym(handle, library->functions[i].name);
		if (!address) {
			error_cause(error, ERR_UNAVAILABLE, "%s", dlerror());
			dlclose(handle);
			return ERR_UNAVAILABLE;
		}
		*library->functions[i].place = address;
	}
	atomic_store(&library->loaded, true);
	return OK;
}

int library_load(struct library *library, struct error *error)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	if (atomic_load(&library->loaded))
		return OK;
	pthread_mutex_lock(&one_at_a_time);
	int result = atomic_load(&library->loaded) ? OK : load(library, error);
	pthread_mutex_unlock(&one_at_a_time);
	return result;
}
