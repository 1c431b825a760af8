// SPDX-License-Identifier: Apache-2.0
#include "alloc_count.h"

#include <stddef.h>

#include "base/asan.h"

static uint64_t calls;

#if RS_ASAN
/* sanitizer/allocator_interface.h, which gcc does not install */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *));

static void on_malloc(const volatile void *ptr, size_t size)
{
	(void)ptr;
	(void)size;
	calls++;
}

static void on_free(const volatile void *ptr)
{
	(void)ptr;
}

__attribute__((constructor)) static void install(void)
{
	__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}
#else
/* glibc's own, under the names it keeps for those who stand in front of it. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *ptr, size_t size);

void *malloc(size_t size)
{
	calls++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	calls++;
	return __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size)
{
	calls++;
	return __libc_realloc(ptr, size);
}
#endif

uint64_t alloc_count(void)
{
	return calls;
}
