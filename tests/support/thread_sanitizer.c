/* For builds with the thread sanitizer: its options in every process, including those started with
 * an empty environment. The libraries are not instrumented, so that it sees their threads but not
 * their synchronization. It also reports a thread joined by pthread_clockjoin_np as leaked. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66:second_deadlock_stack=1"
		   ":report_thread_leaks=0";
}
