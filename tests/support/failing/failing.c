#include "failing.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

int failing_errno = EIO;

static _Thread_local unsigned armed;
static _Thread_local int countdown;
static _Thread_local const char *failed;
static _Thread_local bool arms_others;

void failing_arm(unsigned kinds, int at)
{
	armed = kinds;
	countdown = at;
	failed = NULL;
	arms_others = false;
}

static _Atomic unsigned others_armed;
static _Atomic int others_countdown;
static const char *_Atomic others_failed;

void failing_arm_others(unsigned kinds, int at)
{
	arms_others = true;
	atomic_store(&others_failed, NULL);
	atomic_store(&others_countdown, at);
	atomic_store(&others_armed, kinds);
}

const char *failing_disarm(void)
{
	armed = 0;
	atomic_store(&others_armed, 0);
	return arms_others ? atomic_load(&others_failed) : failed;
}

static bool is_due(const char *name, unsigned kind)
{
	if (armed & kind && !failed && --countdown <= 0) {
		failed = name;
		return true;
	}
	if (arms_others || !(atomic_load(&others_armed) & kind) ||
	    atomic_fetch_sub(&others_countdown, 1) != 1)
		return false;
	atomic_store(&others_failed, name);
	return true;
}

/* Not every executable has OpenSSL. */
#pragma weak ERR_new
#pragma weak ERR_set_debug
#pragma weak ERR_set_error

__attribute__((used)) int failing_decide(const char *name, unsigned kind);

int failing_decide(const char *name, unsigned kind)
{
	if (!is_due(name, kind))
		return 0;
	if (kind == FAILING_OPENSSL && ERR_new)
		ERR_raise(ERR_LIB_CRYPTO, ERR_R_MALLOC_FAILURE);
	errno = kind == FAILING_MEMORY ? ENOMEM : failing_errno;
	return 1;
}

/* The linker leads every call of NAME here (--wrap), whatever its arguments: they are kept, then it
 * is called, or its value of failure returned. */
#define TEXT(x) #x
#define VALUE(x) TEXT(x)
#define KIND_MEMORY 1
#define KIND_FILES 2
#define KIND_OPENSSL 4
#define KIND_SQLITE 8
#define KIND_POSTGRES 16
#define KIND_POSTGRES_WAIT 32
#define KIND_CURL 64
#define KIND_SYSTEM 128
#define CALL(kind, value, name)                                                                    \
	__asm__(".text\n.weak __real_" #name "\n.globl __wrap_" #name "\n.type __wrap_" #name ", @function\n"                  \
	        "__wrap_" #name ":\n\t.cfi_startproc\n\tendbr64\n"                                                       \
	        "\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n"          \
	        "\tpush %rax\n\t.cfi_adjust_cfa_offset 56\n\tlea 1f(%rip), %rdi\n\tmov $" VALUE(KIND_##kind) ", %esi\n"              \
	        "\tcall failing_decide\n\tmov %eax, %r11d\n"                                            \
	        "\tpop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n"     \
	        "\t.cfi_adjust_cfa_offset -56\n\ttest %r11d, %r11d\n\tjne 2f\n\tjmp __real_" #name "@PLT\n"                           \
	        "2:\tmov $" #value ", %rax\n\tret\n\t.cfi_endproc\n"                                                    \
	        ".section .rodata\n1:\t.asciz \"" #name "\"\n.text\n");
#include "calls.def"
