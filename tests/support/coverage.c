/* For builds that measure coverage: makes a process that ends by _exit, as the signing process
 * does, write its counters too. Linked with --wrap=_exit. */
void __gcov_dump(void);
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
