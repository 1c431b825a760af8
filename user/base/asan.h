/* SPDX-License-Identifier: Apache-2.0 */
/* asan — is this built with AddressSanitizer? gcc and clang say it in different ways. */
#ifndef RS_BASE_ASAN_H
#define RS_BASE_ASAN_H

#if defined(__SANITIZE_ADDRESS__)
#define RS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RS_ASAN 1
#endif
#endif

#ifndef RS_ASAN
#define RS_ASAN 0
#endif

#endif
