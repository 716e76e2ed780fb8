/* In builds under the thread sanitizer: what it is told in every process, also in those that start
 * with an empty environment. The libraries are not instrumented, so that it sees their threads but
 * not how they wait for each other; and it takes a thread that pthread_clockjoin_np joined for one
 * that was left. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66:second_deadlock_stack=1"
		   ":report_thread_leaks=0";
}
