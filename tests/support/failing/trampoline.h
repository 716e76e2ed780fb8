/* The linker redirects every call of NAME here (--wrap), whatever its arguments. They are saved;
 * then the function is called, or its value of failure returned. REACH is .weak for names that an
 * executable may lack. */
#ifndef TRAMPOLINE_H
#define TRAMPOLINE_H

#define KIND_MEMORY 1
#define KIND_FILES 2
#define KIND_OPENSSL 4
#define KIND_SQLITE 8
#define KIND_POSTGRES 16
#define KIND_POSTGRES_WAIT 32
#define KIND_CURL 64
#define KIND_TOKEN 4096
#define KIND_SYSTEM 128
#define KIND_PARTS 256
#define KIND_CODES 256 /* PARTS that return failing_code */
#define KIND_ARENAS 512
#define KIND_TRAFFIC 1024
#define KIND_JOURNAL 2048

#define TEXT(x) #x
#define VALUE(x) TEXT(x)
#define ANSWER_MEMORY(value) "mov $" #value ", %rax"
#define ANSWER_FILES ANSWER_MEMORY
#define ANSWER_OPENSSL ANSWER_MEMORY
#define ANSWER_SQLITE ANSWER_MEMORY
#define ANSWER_POSTGRES ANSWER_MEMORY
#define ANSWER_POSTGRES_WAIT ANSWER_MEMORY
#define ANSWER_CURL ANSWER_MEMORY
#define ANSWER_TOKEN ANSWER_MEMORY
#define ANSWER_PARTS ANSWER_MEMORY
#define ANSWER_TRAFFIC ANSWER_MEMORY
#define ANSWER_JOURNAL ANSWER_MEMORY
#define ANSWER_SYSTEM ANSWER_MEMORY
#define ANSWER_ARENAS ANSWER_MEMORY
#define ANSWER_CODES(value) "movslq failing_code(%rip), %rax"

#define KEEP                                                                                       \
	"\tpush %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n"                 \
	"\tpush %rax\n\t.cfi_adjust_cfa_offset 56\n"
#define GIVE_BACK                                                                                  \
	"\tpop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n"           \
	"\t.cfi_adjust_cfa_offset -56\n"
#define TRAMPOLINE(reach, kind, value, name)                                                       \
	__asm__(".text\n" reach " __real_" #name "\n.globl __wrap_" #name "\n"                         \
	        ".type __wrap_" #name ", @function\n"                                                  \
	        "__wrap_" #name ":\n\t.cfi_startproc\n\tendbr64\n" KEEP                                \
	        "\tmov %rdi, %rdx\n\tlea 1f(%rip), %rdi\n\tmov $" VALUE(                               \
				KIND_##kind) ", %esi\n"                                                            \
	                         "\tcall failing_decide\n\tmov %eax, %r11d\n" GIVE_BACK                \
	                         "\ttest %r11d, %r11d\n\tjne 2f\n\tjmp __real_" #name "@PLT\n"         \
	                         "2:\t" ANSWER_##kind(value) "\n\tret\n\t.cfi_endproc\n"               \
	                                                     ".section .rodata\n1:\t.asciz \"" #name   \
	                                                     "\"\n.text\n");

#endif
