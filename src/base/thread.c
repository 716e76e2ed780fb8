#include "base/thread.h"

_Thread_local bool thread_is_polling;
